// Queues one flow's requests at this end in their order: those that have no room yet, or whose flow does not exist yet, wait here. One
// thread at a time.
#ifndef R2CC_NETPLUGIN_COLLNET_FLOW_QUEUE_H_
#define R2CC_NETPLUGIN_COLLNET_FLOW_QUEUE_H_

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <utility>

#include "netplugin/collnet/message.h"
#include "netplugin/flow/flow_port.h"

namespace r2cc::collnet {

class FlowQueue {
 public:
  enum class Direction : uint8_t { kSends, kReceives };
  struct Request {
    enum class Kind : uint8_t {
      kGreeting,
      kOffer,
      kBytes,    // of an operation
      kMessage,  // of the control flow
    };
    Kind kind = Kind::kBytes;
    net::Buffer buffer;  // unused if the request has its own memory
    uint64_t bytes = 0;
    Bytes own;                // the bytes to send, or room for those that come
    uint64_t came_bytes = 0;  // bytes that were received, when it is done
  };

  explicit FlowQueue(Direction direction) : direction_(direction) {}
  FlowQueue(FlowQueue&&) = default;

  // The flow exists, and its first `done` requests were posted and completed elsewhere; `port` outlives this. A queue has one flow in its
  // life.
  void SetFlow(net::FlowPort* port, net::FlowRef flow, uint64_t done = 0);
  bool has_flow() const { return port_ != nullptr; }
  net::FlowRef flow() const { return flow_; }

  void Add(Request request) { requests_.push_back(std::move(request)); }
  void AddBytes(net::Buffer buffer, uint64_t bytes) { Add({Request::Kind::kBytes, buffer, bytes, {}}); }
  void AddOwn(Request::Kind kind, Bytes own);
  // For a sending flow; see FlowPort. A weight that the port refuses changes nothing: it affects the speed, not the result.
  void SetWeight(double weight);

  // For a sending flow; see FlowPort.
  void SetDealt(bool dealt);

  // Posts the requests that there is room for.
  void Post();
  // Posts, and returns the oldest request that is done and was not returned yet.
  std::optional<Request> TakeDone();
  // Every request was returned.
  bool idle() const { return requests_.empty(); }
  // See FlowPort. Empty without a flow.
  std::string Error() const { return has_flow() ? port_->Error(flow_) : ""; }

 private:
  const Direction direction_;
  net::FlowPort* port_ = nullptr;
  net::FlowRef flow_ = 0;
  double weight_ = 1;
  bool dealt_ = false;
  std::deque<Request> requests_;  // those that were not returned
  uint64_t given_ = 0;            // the number of the flow's requests that were returned; requests_ begins there
  uint64_t posted_ = 0;           // the number of the flow's requests that were posted
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_FLOW_QUEUE_H_
