// The sockets of one link at the initiator's end. With the peer's turn.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_SEND_LINK_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_SEND_LINK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "netplugin/flow/stripe.h"
#include "netplugin/transport/tcp/bulk.h"
#include "netplugin/transport/tcp/call.h"
#include "netplugin/transport/tcp/errand.h"
#include "netplugin/transport/tcp/lane_socket.h"
#include "netplugin/transport/tcp/poller.h"

namespace r2cc::net {

class SendLink {
 public:
  struct Bulk {
    std::unique_ptr<BulkSender> sender;  // null until it is greeted
    Poller::Token token = 0;
    bool blocked = false;  // full, as far as is known
    Hire hire;             // off: whoever has the turn writes

    bool has_room() const { return sender != nullptr && !blocked && !hire.on(); }
  };

  Incarnation incarnation = 0;
  std::vector<std::unique_ptr<Call>> calls;  // being greeted
  std::unique_ptr<LaneSocket> control;       // null until it is greeted
  std::vector<Bulk> bulk;
  bool stirred = false;  // there may be more to carry than when its movers looked last

  // What is unsent or unread is lost, at both ends.
  void Close(Poller* poller, Movers* movers);
  bool greeted() const;
  void Prove(uint64_t session, LinkId link);
  // What the kernel says of all its bulk sockets.
  Account Measure();
  // How much each socket queues - with the kernel, and of chunks that leave together - and how many take chunks: see QueueLimitBytes,
  // HoldLimitBytes and SocketsInUse.
  void Adapt(double rate_bytes_per_s, bool spread);
  size_t in_use() const { return in_use_; }
  void LimitQueue(const BulkSender& joined) const;
  uint32_t limit_bytes() const { return limit_bytes_; }
  // No call is being made on any of its sockets, nor will be while the turn lasts.
  void Await() const;
  // See BulkSender. Await() comes first.
  bool AnyUnsent(FunctionRef<bool(const Chunk&)> is_so) const;
  void Rebase(FlowId flow, MessageId message, const std::byte* copy);

 private:
  uint32_t limit_bytes_ = QueueLimitBytes(0, false);
  uint64_t held_bytes_ = HoldLimitBytes(0, 0, false);
  Nanos round_trip_ = 0;
  size_t in_use_ = SocketsInUse(0, SIZE_MAX);
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_SEND_LINK_H_
