// The sockets of one link at the initiator's end. With the peer's turn.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_SEND_LINK_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_SEND_LINK_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "netplugin/transport/tcp/bulk.h"
#include "netplugin/transport/tcp/call.h"
#include "netplugin/transport/tcp/lane_socket.h"
#include "netplugin/transport/tcp/poller.h"

namespace r2cc::net {

class SendLink {
 public:
  struct Bulk {
    std::unique_ptr<BulkSender> sender;  // null until it is greeted
    Poller::Token token = 0;
    bool blocked = false;  // full, as far as is known

    bool has_room() const { return sender != nullptr && !blocked; }
  };

  Incarnation incarnation = 0;
  std::vector<std::unique_ptr<Call>> calls;  // being greeted
  std::unique_ptr<LaneSocket> control;       // null until it is greeted
  std::vector<Bulk> bulk;

  // What is unsent or unread is lost, at both ends.
  void Close(Poller* poller);
  bool greeted() const;
  void Prove(uint64_t session, LinkId link);
  // What the kernel says of all its bulk sockets. Fits the limit of their queues to it.
  Account Measure();
  // See QueueLimitBytes. Call again when a socket has joined.
  void LimitQueues(bool spread);
  // See BulkSender.
  bool AnyUnsent(FunctionRef<bool(const Chunk&)> is_so) const;
  void Rebase(FlowId flow, MessageId message, const std::byte* copy);

 private:
  void Limit();

  Account counted_;  // up to the last estimate
  double rate_bytes_per_s_ = 0;
  bool spread_ = false;
  uint32_t limit_bytes_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_SEND_LINK_H_
