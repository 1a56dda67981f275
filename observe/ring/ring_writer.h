// The producer's end of the host's ring. Records that no registered reader still wants may be overwritten; without readers the ring keeps
// the latest records. One thread at a time. Cost: a step reads at most 16 cursors, and only where the ring's old records are in the way.
#ifndef R2CC_OBSERVE_RING_RING_WRITER_H_
#define R2CC_OBSERVE_RING_RING_WRITER_H_

#include <array>
#include <cstdint>
#include <deque>
#include <span>
#include <string>

#include "base/core/clock.h"
#include "observe/record/account.h"
#include "observe/record/layout.h"
#include "observe/ring/control.h"

namespace r2cc::observe {

class RingWriter {
 public:
  // Over memory that is zero but for its header and identity, `ring` being the bytes behind RingStart. It outlives the writer.
  RingWriter(ControlMemory* control, std::span<uint8_t> ring, CursorsMemory* cursors, Nanos reader_timeout_ns)
      : control_(control), ring_(ring), cursors_(cursors), reader_timeout_ns_(reader_timeout_ns) {}

  // `bytes`: of the record, a multiple of kRecordAlignment. Null: a registered reader, or a record that is not committed yet, is in
  // the way. Several may be open at a time; they are committed in this order.
  uint8_t* Reserve(uint64_t bytes, Nanos now);
  // The oldest that is open: whole now.
  void Commit(Nanos arrival, uint64_t dropped_host);
  // The newest that is open: as if it had never been.
  void Abandon();

  // False: there is no room for another layout.
  bool AddLayout(const Layout& layout);
  // The counts that readers see; before the Commit() of the record that they count.
  void Publish(const Counts& counts);
  // Nothing comes any more. `cause`: why it failed.
  void Close(const std::string& cause);

  uint64_t bytes() const { return ring_.size(); }
  uint64_t cut_off() const { return control_->cut_off; }
  uint64_t lied() const { return control_->lied; }

 private:
  struct Open {
    uint64_t pad, begin, bytes;  // with the frame
  };
  struct Seen {
    uint64_t word = 0;
    Nanos since = 0;
  };

  RingFrame* FrameAt(uint64_t position) { return reinterpret_cast<RingFrame*>(ring_.data() + position % ring_.size()); }
  // All below `from` may be overwritten.
  bool Reclaim(uint64_t from, Nanos now);
  // Whether the reader holds up what lies below `from`. One that lies or stalls is cut off first.
  bool InTheWay(size_t reader, uint64_t from, Nanos now);
  void CutOff(size_t reader, uint64_t word);

  ControlMemory* control_;
  std::span<uint8_t> ring_;
  CursorsMemory* cursors_;
  Nanos reader_timeout_ns_;
  uint64_t head_ = 0, oldest_ = 0, reserved_ = 0;
  std::deque<Open> open_;
  std::array<Seen, kReadersMax> seen_;
};

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_RING_RING_WRITER_H_
