// Tracks one flow at the receiver: which buffers were posted, which path writes which chunk, and what is placed. Pure.
//
// Contract (docs/internals/lossless-contract.md, 3-5): a chunk is placed at most once. Nothing is written for a message that was reported
// placed. A message counts as placed only when all its chunks are placed and no path holds a claim on any of them. An eager message that
// comes before its buffer waits in the ledger's own memory.
//
// A chunk that a device has written to GPU memory has landed. It is placed when the GPU sees it: each path that carried a part of the
// message is flushed first. Until then nothing reports it, and it is sent again if the path is lost, because no other device can flush what
// the lost device wrote.
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
    kDiscard,  // it is here already: read the bytes and drop them
    kRefuse,   // the peer breaks the protocol: end this path
  };
  // A chunk's header arrived on `epoch`. The header is not trusted: every field is checked against what was posted.
  Verdict Begin(const Chunk& header, PathEpoch epoch, std::byte** destination);

  // The chunk that Begin() allowed `epoch` to place is whole. True if placed_through() grew.
  bool Finish(MessageId message, uint32_t index, PathEpoch epoch);

  // The processors cannot write the buffer that was posted for the message.
  bool OnDevice(MessageId message) const {
    return message >= placed_through_ && message < posted_through() && messages_[message - placed_through_].to.is_device();
  }
  // The flushes that became due since the last call. All of the message has landed, and each of these paths is to be flushed.
  struct Flush {
    FlushName name;
    PathEpoch epoch = 0;
    Buffer to;
  };
  std::vector<Flush> TakeFlushes() { return std::exchange(flushes_, {}); }
  // The flush is done. A stale name is ignored. True if placed_through() grew.
  bool Flushed(const FlushName& name, PathEpoch epoch);

  // `epoch` was fenced: releases its claims on half-read chunks. A read may still be in flight, but none is when a chunk is replayed.
  void Drop(PathEpoch epoch);

  // A staged message is larger than the buffer that was posted for it: the flow cannot go on.
  bool overflowed() const { return overflowed_; }

  // Actual size of a message below placed_through(); kept for the last kSizesKept messages.
  uint64_t SizeOf(MessageId message) const;

  FlowArrivals Arrivals() const;
  // Buffer sizes of the messages from placed_through() to posted_through(): what to grant.
  std::vector<uint64_t> Capacities() const;
  // The places of those buffers; empty if no region that has them was announced to the sender.
  std::vector<BufferPlace> Places(const RegionGenerations& generations) const;

  MessageId placed_through() const { return placed_through_; }
  MessageId posted_through() const { return placed_through_ + messages_.size(); }
  // The sender waits for the acknowledgement of all messages below this; it has copies of all later ones.
  MessageId awaited_through() const { return awaited_through_; }
  // The last message placed was an eager one: more of them may be expected.
  bool last_eager() const { return last_eager_; }

 private:
  static constexpr size_t kSizesKept = 256;
  static constexpr PathEpoch kAbsent = 0xffff;
  static constexpr PathEpoch kPlaced = 0xfffe;
  static constexpr PathEpoch kLanded = 0x8000;  // or-ed with the path's epoch
  static_assert(kLinksMax < kLanded);

  struct Message {
    Buffer to;
    uint64_t capacity_bytes = 0;
    uint64_t bytes = 0;
    uint32_t chunk_bytes = 0;
    uint32_t missing = 0;
    bool eager = false;
    uint32_t unflushed = 0;  // chunks that have landed and are not placed
    uint32_t round = 0;      // of the flushes of this message
    PathEpochs claim;        // by chunk; empty until the first header states the chunk size
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
