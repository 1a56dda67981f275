// Tracks one flow at the sender: which messages were posted and granted, on which path epoch each chunk is in flight, and what the receiver
// has acknowledged. Pure: no I/O, no clock, no thread of its own.
//
// Contract (docs/internals/lossless-contract.md, 1-3): only granted messages are handed out, and eager ones within the receiver's window. A
// chunk is in flight on at most one path at a time. Only Reclaim() makes a chunk ready again, after the receiver has fenced the path and
// reported what it has. The buffer of a message belongs to the ledger until done_through() passes it. The copy of an eager message lives
// until its acknowledgement.
#ifndef R2CC_NETPLUGIN_FLOW_SEND_LEDGER_H_
#define R2CC_NETPLUGIN_FLOW_SEND_LEDGER_H_

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "netplugin/flow/buffer_pool.h"
#include "netplugin/flow/path_epochs.h"
#include "netplugin/flow/types.h"

namespace r2cc::net {

class SendLedger {
 public:
  struct Limits {
    uint32_t chunk_base_bytes = 128 * 1024;  // see ChunkBytesFor()
    uint32_t eager_bytes = 0;                // messages up to this size take the eager path; 0: none
  };
  // All flows of a session share both: `order` numbers messages as they become sendable, so that links serve the oldest first, and `pool`
  // has the memory for eager messages. Both must outlive the ledger.
  SendLedger(FlowId flow, const Limits& limits, uint64_t* order, BufferPool* pool);

  // The receiver stages `messages` eager messages beyond the last acknowledged one. Until it has announced that, there is no eager path.
  void set_eager_window(uint32_t messages) { eager_window_ = messages; }

  // The buffer must stay until done_through() > the returned id.
  MessageId Post(const Buffer& from, uint64_t bytes) { return Post(from, bytes, limits_.chunk_base_bytes); }
  // In chunks of `chunk_base_bytes`; an eager message is one chunk. `rails`: those whose devices may read the buffer.
  MessageId Post(const Buffer& from, uint64_t bytes, uint32_t chunk_base_bytes, RailSet rails = kAllRails);

  // The set of devices that can read that memory has changed.
  void SetRails(RegionId memory, RailSet rails);

  // Post() and Pull() in one call, for a message that may travel eagerly. True: its only chunk is in flight. False: nothing is posted.
  bool PostEagerly(const Buffer& from, uint64_t bytes, PathEpoch epoch, Chunk* out);

  // If the message travels eagerly: copies it, so that its buffer may be given back, and returns the copy, which lives until the
  // acknowledgement. Else null.
  const std::byte* Release(MessageId id);
  // That copy, for readers that need it beyond the acknowledgement; null if there is none.
  std::shared_ptr<const std::byte[]> Copy(MessageId id) const;

  // Enters the receiver's buffers for messages first, first+1, ..., and their places if `places` has them. Idempotent. Keys change, buffers
  // do not: false if the grant leaves a gap or changes anything but generations, which breaks the protocol.
  bool Grant(MessageId first, std::span<const uint64_t> capacities, std::span<const BufferPlace> places = {});
  // Where the buffer of a message lies; null: the receiver has not announced it.
  const BufferPlace* PlaceOf(MessageId id) const;

  // A posted message is larger than its grant: the caller of NCCL made a mistake, and the flow cannot go on.
  bool overflowed() const { return overflowed_; }

  // The oldest message that has a ready chunk.
  struct Ready {
    bool any = false;
    bool begun = false;  // other chunks of it were in flight already: it has to be finished, or replayed
    bool eager = false;
    uint64_t order = 0;
    RegionId region = 0;        // the region of its buffer; 0: any link may carry it
    RailSet rails = kAllRails;  // those whose devices may read it
    uint32_t chunk_bytes = 0;   // of its next chunk, at most
  };
  Ready NextReady() const;
  // Of all chunks that are ready.
  uint64_t ready_bytes() const { return ready_bytes_; }
  // How many chunks are ready, counted up to `most`.
  uint32_t ReadyChunks(uint32_t most) const;

  // Puts the oldest ready chunk in flight on `epoch`. False if there is none.
  bool Pull(PathEpoch epoch, Chunk* out);

  // The receiver has reported what it has. Those chunks never travel again, through whichever path they came. Idempotent; arrivals that do
  // not fit the messages are ignored.
  void Arrived(const FlowArrivals& arrivals);
  // The receiver has ended `epoch`, and Arrived() has entered everything that it has. Makes everything else that was in flight on the epoch
  // ready again. Returns the bytes to replay.
  uint64_t Reclaim(PathEpoch epoch);

  // All messages below `through` are placed. Idempotent. False if it acknowledges messages that were never posted.
  bool AckThrough(MessageId through);

  // One more than the newest message with a chunk that is in flight on `epoch` and not known to be placed; 0: there is none.
  MessageId HeldThrough(PathEpoch epoch) const;
  bool Holds(PathEpoch epoch) const { return HeldThrough(epoch) != 0; }

  // See EagerWindowLowAt().
  bool window_low() const { return eager_window_ > 0 && messages_.size() >= EagerWindowLowAt(eager_window_); }

  // True if the newest message waits for a grant that the receiver may delay, because small messages came before.
  bool wants_grant() const { return wants_grant_; }

  MessageId acked_through() const { return acked_through_; }
  MessageId done_through() const { return done_through_; }
  MessageId posted_through() const { return acked_through_ + messages_.size(); }
  MessageId granted_through() const { return granted_through_; }

 private:
  static constexpr PathEpoch kReady = 0xffff;
  static constexpr PathEpoch kPlaced = 0xfffe;

  struct Message {
    Buffer from;
    RailSet rails = kAllRails;
    uint64_t bytes = 0;
    uint32_t chunk_bytes = 0;
    uint32_t ready = 0;        // how many chunks are kReady
    uint32_t first_ready = 0;  // no chunk below it is kReady
    uint64_t order = 0;
    bool eager = false;
    bool released = false;
    BufferPool::Block copy;
    PathEpochs holder;  // by chunk; empty until the message is sendable
  };

  bool MayBeEager(MessageId id, uint64_t bytes) const;
  Message& At(MessageId id) { return messages_[id - acked_through_]; }
  bool Replace(MessageId id, const BufferPlace& place);
  void MakeSendable(MessageId id);
  void AdvanceDone();

  const FlowId flow_;
  const Limits limits_;
  uint64_t* const order_;
  BufferPool* const pool_;
  uint32_t eager_window_ = 0;
  MessageId acked_through_ = 0;
  MessageId done_through_ = 0;
  MessageId granted_through_ = 0;
  std::deque<Message> messages_;     // from acked_through_ on
  std::deque<uint64_t> capacities_;  // from acked_through_ to granted_through_
  std::deque<BufferPlace> places_;   // the same, or empty while no buffer has a place
  uint64_t ready_bytes_ = 0;
  size_t first_ready_ = 0;           // no message before it, counted from acked_through_, has a ready chunk
  bool last_eager_ = false;
  bool wants_grant_ = false;
  bool overflowed_ = false;
};

// True for epochs that the ledgers can hold.
constexpr bool IsPathEpoch(PathEpoch epoch) { return epoch < 0xfffe; }

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_SEND_LEDGER_H_
