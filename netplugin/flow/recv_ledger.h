// The receiver's account of one flow: which buffers were posted, which path is writing which chunk, and what is placed. Pure.
//
// Contract (docs/internals/lossless-contract.md, 3-5): a chunk is placed at most once; nothing is written for a message that was reported
// placed; a message counts as placed only when all its chunks are and no path holds a claim on any of them. An eager message that comes
// before its buffer waits in memory of the ledger's own.
//
// What a device has written to a GPU's memory has landed, and is placed when the GPU sees it: each path that carried some of the message is
// flushed first. Until then nobody was told of it, and it is sent again if the path is lost: what its device wrote can be flushed by no
// other one.
#ifndef R2CC_NETPLUGIN_FLOW_RECV_LEDGER_H_
#define R2CC_NETPLUGIN_FLOW_RECV_LEDGER_H_

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "netplugin/flow/memory_ops.h"
#include "netplugin/flow/path_epochs.h"
#include "netplugin/flow/region_keys.h"
#include "netplugin/flow/types.h"

namespace r2cc::net {

class RecvLedger {
 public:
  explicit RecvLedger(FlowId flow, MemoryOps* memory = &host_memory) : flow_(flow), memory_(memory) {}

  // The buffer belongs to the ledger until placed_through() > the returned id. A message that is staged already is placed at once.
  MessageId Post(const Buffer& to, uint64_t capacity_bytes);

  enum class Verdict {
    kPlace,    // write the chunk's bytes to *destination, then Finish()
    kDiscard,  // it is here already: read the bytes and forget them
    kRefuse,   // the peer breaks the protocol: end this path
  };
  // A chunk's header arrived on `epoch`. The header is not trusted: every field is checked against what was posted.
  Verdict Begin(const Chunk& header, PathEpoch epoch, std::byte** destination);

  // The chunk that Begin() let `epoch` place is whole. True if placed_through() grew.
  bool Finish(MessageId message, uint32_t index, PathEpoch epoch);

  // The buffer that was posted for the message is not the processors' to write.
  bool OnDevice(MessageId message) const {
    return message >= placed_through_ && message < posted_through() && messages_[message - placed_through_].to.is_device();
  }
  // Since the last call: all of the message has landed, and each of these paths is to be flushed.
  struct Flush {
    FlushName name;
    PathEpoch epoch = 0;
    Buffer to;
  };
  std::vector<Flush> TakeFlushes() { return std::exchange(flushes_, {}); }
  // It was, or never mind: the round is over. True if placed_through() grew.
  bool Flushed(const FlushName& name, PathEpoch epoch);

  // `epoch` was fenced: its half-read chunks are nobody's again. A read may still be in flight, but not when a chunk is replayed.
  void Drop(PathEpoch epoch);

  // A staged message is larger than the buffer that was posted for it: the flow cannot go on.
  bool overflowed() const { return overflowed_; }

  // Actual size of a message below placed_through(); kept for the last kSizesKept messages.
  uint64_t SizeOf(MessageId message) const;

  FlowArrivals Arrivals() const;
  // Buffer sizes of the messages from placed_through() to posted_through(): what to grant.
  std::vector<uint64_t> Capacities() const;
  // Where they lie; empty if that is nowhere that the sender was told of.
  std::vector<Place> Places(const RegionGenerations& generations) const;

  MessageId placed_through() const { return placed_through_; }
  MessageId posted_through() const { return placed_through_ + messages_.size(); }
  // The sender waits for the acknowledgement of all messages below; what lies beyond it, it has copies of.
  MessageId awaited_through() const { return awaited_through_; }
  // The last message placed was an eager one: more of them may be expected.
  bool last_eager() const { return last_eager_; }

 private:
  static constexpr size_t kSizesKept = 256;
  static constexpr PathEpoch kAbsent = 0xffff;
  static constexpr PathEpoch kPlaced = 0xfffe;
  static constexpr PathEpoch kLanded = 0x8000;  // or-ed to the path's
  static_assert(kLinksMax < kLanded);

  struct Message {
    Buffer to;
    uint64_t capacity_bytes = 0;
    uint64_t bytes = 0;
    uint32_t chunk_bytes = 0;
    uint32_t missing = 0;
    bool eager = false;
    uint32_t unflushed = 0;  // chunks that have landed and are not placed
    uint32_t round = 0;      // of its flushes
    PathEpochs claim;        // by chunk; empty until the first header says how the message is cut
  };
  // An eager message whose buffer was not posted when it began to arrive.
  struct Staged {
    PathEpoch claim = kAbsent;
    uint32_t chunk_bytes = 0;
    uint32_t bytes = 0;
    std::shared_ptr<std::byte[]> data;
  };

  Verdict BeginStaged(const Chunk& header, PathEpoch epoch, std::byte** destination);
  // Moves a whole staged message to its buffer.
  void Unstage(MessageId id);
  void BeginFlushes(MessageId id, Message* message);
  bool Advance();

  const FlowId flow_;
  MemoryOps* const memory_;
  MessageId placed_through_ = 0;
  MessageId awaited_through_ = 0;
  bool last_eager_ = false;
  bool overflowed_ = false;
  std::deque<Message> messages_;  // from placed_through_ on
  std::map<MessageId, Staged> staged_;
  std::vector<Flush> flushes_;
  std::vector<uint64_t> sizes_ = std::vector<uint64_t>(kSizesKept, 0);
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_RECV_LEDGER_H_
