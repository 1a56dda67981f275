// The decisions of a copy thread: it copies the records that a device has published, one lane, to the ring that readers read. It never
// waits; the owner of the thread calls Turn() again. Pure but for the device, which is a narrow interface, and the ring.
#ifndef R2CC_OBSERVE_PRODUCER_PUMP_H_
#define R2CC_OBSERVE_PRODUCER_PUMP_H_

#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "observe/gather/step.h"
#include "observe/record/account.h"
#include "observe/record/layout.h"
#include "observe/ring/ring_writer.h"

namespace r2cc::observe {

// A copy engine. Copies may end in any order.
class CopyEngine {
 public:
  virtual ~CopyEngine() = default;
  enum class State { kUnderWay, kDone, kFailed };
  // False: refused. `failure()` has the cause, as after kFailed.
  virtual bool Start(uint64_t from, void* to, uint64_t bytes, uint64_t* ticket) = 0;
  virtual State StateOf(uint64_t ticket) = 0;
  virtual std::string failure() const = 0;
};

// A step whose tensors wait on the device until they are copied from where they are.
struct Held {
  uint64_t id = 0;  // not 0, ascending
  uint32_t layout = 0, rows = 0;
  uint64_t groups = 0;
  Slots slots;
  std::vector<uint64_t> tags, taps;  // addresses; 0: off
};

class Pump {
 public:
  static constexpr uint64_t kCopyPieceBytes = uint64_t{16} << 20;  // other users of the link wait no longer than for these
  static constexpr size_t kPiecesMax = 4;
  static constexpr size_t kOpenMax = 8;

  // All outlive it. `words` are the lane's own. `ring`: the device's address. A record waits at most `block_ns` for readers, then it is
  // dropped.
  Pump(CopyEngine* engine, RingWriter* host, const Published* published, HostWords* words, uint64_t ring, uint64_t ring_bytes,
       Nanos block_ns = 0)
      : engine_(engine), host_(host), published_(published), words_(words), ring_(ring), ring_bytes_(ring_bytes), block_ns_(block_ns) {}

  void Hold(Held held) { holds_.emplace(held.id, std::move(held)); }
  // Tensors of holds up to this one are not needed any more.
  uint64_t released() const { return released_hold_; }

  // True: something moved.
  bool Turn(Nanos now);
  // All that was published has its outcome, and no hold waits that was not taken.
  bool Drained() const;
  // The device does nothing more, and all is drained: the last counts, and the end.
  void Finish();

  const Counts& counts() const { return counts_; }
  const std::string& failure() const { return failure_; }

 private:
  struct Piece {
    uint64_t from, bytes;
    uint8_t* to;
    uint64_t ticket = 0;
    enum { kWaits, kUnderWay, kDone } state = kWaits;
  };
  struct Item {
    DirectoryEntry entry;
    uint64_t sequence;
    uint8_t* to = nullptr;  // null: dropped
    uint64_t bytes = 0;
    Held held;
    std::vector<Piece> pieces;
  };

  // False: the record waits for readers.
  bool Take(uint64_t sequence, Nanos now);
  void AddPieces(Item* item, uint64_t from, uint64_t offset, uint64_t bytes);
  bool MovePieces();
  // The oldest item has all its bytes, or is dropped.
  void End(Item* item, Nanos now);
  bool CheckCopied(const Item& item);
  void WriteEnds(const Item& item);
  void Free(const DirectoryEntry& entry, uint64_t sequence);
  void ForgetHolds(uint64_t up_to);
  void ForgetUntaken(uint64_t outcome, uint64_t records);
  void Fail(const std::string& cause);

  CopyEngine* engine_;
  RingWriter* host_;
  const Published* published_;
  HostWords* words_;
  uint64_t ring_, ring_bytes_;
  Nanos block_ns_;
  std::optional<Nanos> waits_since_;  // the record that is next
  uint64_t next_ = 0;                 // sequence
  uint64_t released_hold_ = 0;
  size_t under_way_ = 0;
  std::deque<Item> items_;
  std::map<uint64_t, Held> holds_;
  Counts counts_;
  std::string failure_;
};

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_PRODUCER_PUMP_H_
