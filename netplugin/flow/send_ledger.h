// The sender's account of one flow: which messages were posted and granted, which carrier each chunk was entrusted to, and what the
// receiver has acknowledged. Pure: no I/O, no clock, no thread of its own.
//
// Contract (DESIGN: lossless contract 1-3): only granted messages are handed out; a chunk is entrusted to at most one carrier at a
// time; a chunk goes back to "ready" only by Reclaim(), that is, after the receiver has fenced the carrier and said what it has;
// the buffer of a message belongs to the ledger until AckThrough() passes it.
#ifndef R2CC_NETPLUGIN_FLOW_SEND_LEDGER_H_
#define R2CC_NETPLUGIN_FLOW_SEND_LEDGER_H_

#include <cstdint>
#include <deque>
#include <span>
#include <vector>

#include "netplugin/flow/types.h"

namespace r2cc::net {

class SendLedger {
 public:
  // `order` is shared by all flows of a session: it numbers messages as they become sendable, so that links serve the oldest first.
  SendLedger(FlowId flow, uint32_t chunk_base_bytes, uint64_t* order) : flow_(flow), chunk_base_bytes_(chunk_base_bytes), order_(order) {}

  // The buffer must stay until acked_through() > the returned id.
  MessageId Post(const void* data, uint64_t bytes);

  // The receiver's buffers for messages first, first+1, ...: idempotent. False if it leaves a gap or changes what was granted before
  // (a peer that breaks the protocol).
  bool Grant(MessageId first, std::span<const uint64_t> capacities);

  // A posted message is larger than its grant: NCCL's caller made a mistake, and the flow cannot go on.
  bool overflowed() const { return overflowed_; }

  // The oldest message that has a ready chunk.
  struct Ready {
    bool any = false;
    bool begun = false;  // other chunks of it were entrusted already: it is to be finished, or replayed
    uint64_t order = 0;
  };
  Ready NextReady() const;

  // Entrusts the oldest ready chunk to `carrier`. False if there is none.
  bool Pull(Carrier carrier, Chunk* out);

  // The receiver has ended `carrier` and told what it has: everything else that was entrusted to it is ready again. Returns the bytes
  // to replay.
  uint64_t Reclaim(Carrier carrier, const FlowArrivals& arrivals);

  // All messages below `through` are placed: idempotent. False if it speaks of messages that were never posted.
  bool AckThrough(MessageId through);

  // Bytes entrusted to `carrier` and not known to be placed.
  uint64_t EntrustedBytes(Carrier carrier) const;

  MessageId acked_through() const { return acked_through_; }
  MessageId posted_through() const { return acked_through_ + messages_.size(); }
  MessageId granted_through() const { return granted_through_; }

 private:
  static constexpr Carrier kReady = 0xffff;
  static constexpr Carrier kPlaced = 0xfffe;

  struct Message {
    const std::byte* data = nullptr;
    uint64_t bytes = 0;
    uint32_t chunk_bytes = 0;
    uint32_t ready = 0;        // how many chunks are kReady
    uint32_t first_ready = 0;  // no chunk below it is kReady
    uint64_t order = 0;
    std::vector<Carrier> holder;  // by chunk; empty until the message is sendable
  };

  void MakeSendable(MessageId id);

  const FlowId flow_;
  const uint32_t chunk_base_bytes_;
  uint64_t* const order_;
  MessageId acked_through_ = 0;
  MessageId granted_through_ = 0;
  std::deque<Message> messages_;     // from acked_through_ on
  std::deque<uint64_t> capacities_;  // from acked_through_ to granted_through_
  bool overflowed_ = false;
};

// True for carriers that the ledgers can hold.
constexpr bool IsCarrier(Carrier carrier) { return carrier < 0xfffe; }

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_SEND_LEDGER_H_
