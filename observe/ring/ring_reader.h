// A reader's end of the ring, over memory of a process that may be foreign, dead or hostile: nothing of it is believed unchecked, and each
// word is judged as it was copied. One thread at a time.
#ifndef R2CC_OBSERVE_RING_RING_READER_H_
#define R2CC_OBSERVE_RING_RING_READER_H_

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "observe/record/account.h"
#include "observe/record/layout.h"
#include "observe/ring/control.h"

namespace r2cc::observe {

// One record, as long as nothing else is asked of the reader.
struct RecordView {
  RecordHeader header{};
  uint64_t arrival_ns = 0;
  Counts gap;  // what is missing before it, without records
  const Layout* layout = nullptr;
  const Slots* slots = nullptr;
  std::span<const uint8_t> bytes;  // all of it
};

class RingReader {
 public:
  // `cursors`: null for a reader that can only copy.
  RingReader(const ControlMemory* control, std::span<const uint8_t> ring, CursorsMemory* cursors, uint64_t own_pid);
  ~RingReader() { Unregister(); }
  RingReader(const RingReader&) = delete;

  // From now on the ring keeps what this reader has not read, until it stalls. False: 16 are registered already.
  bool Register();
  void Unregister();
  bool registered() const { return word_ != 0; }

  enum class Found {
    kRecord,
    kNothing,  // now
    kEnd,      // it is closed, and all has been read; view->gap is what was missing at the end
    kBroken,   // error() names what makes no sense; the present content of the ring is skipped
  };
  Found Next(RecordView* view);
  // The view of before is not used any more. False: the reader was cut off meanwhile, and what it has read in place may be wrong.
  bool Release();

  // The producer is gone without having closed: what the ring holds is all.
  void AssumeClosed() { assume_closed_ = true; }

  const Counts& counts() const { return account_.counts(); }
  uint64_t times_cut_off() const { return times_cut_off_; }
  const std::string& error() const { return error_; }
  // The producer's state, with its cause.
  Life life() const;
  std::string Cause() const;

 private:
  struct Known {
    Layout layout;
    std::map<std::pair<uint64_t, uint32_t>, Slots> slots;  // by groups and rows
  };

  Found Broken(const std::string& what);
  Found End(RecordView* view);
  // The next whole record at position_, or why there is none.
  Found Take(RecordView* view);
  // The bytes at `position` as they are for good: in place, or copied. Empty: overwritten.
  std::span<const uint8_t> Bytes(uint64_t position, uint64_t bytes);
  // Nothing of the ring from `position` on was overwritten until now.
  bool StillThere(uint64_t position) const;
  bool StillRegistered() const;
  void NoticeCutOff();
  Known* LayoutOf(uint32_t id);
  const Slots* SlotsFor(Known* known, uint64_t groups, uint32_t rows);

  const ControlMemory* control_;
  std::span<const uint8_t> ring_;
  CursorsMemory* cursors_;
  uint64_t own_pid_;
  uint64_t position_ = 0, next_ = 0;  // the record of the view begins, and ends
  size_t place_ = 0;                  // among the cursors
  uint64_t generation_ = 0, word_ = 0;
  uint64_t times_cut_off_ = 0;
  uint64_t layouts_read_ = 0;
  bool assume_closed_ = false, ended_ = false;
  std::map<uint32_t, Known> layouts_;
  std::vector<uint8_t> copy_;
  Account account_;
  std::string error_;
};

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_RING_RING_READER_H_
