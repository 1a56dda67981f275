// One flow's requests at this end, in the order in which they are asked for: those that have no room yet, or whose flow is not there yet,
// wait here. One thread at a time.
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
    net::Buffer buffer;  // of no meaning where the request has its own
    uint64_t bytes = 0;
    Bytes own;                // what is sent, or room for what comes
    uint64_t came_bytes = 0;  // of what was received, when it is done
  };

  explicit FlowQueue(Direction direction) : direction_(direction) {}
  FlowQueue(FlowQueue&&) = default;

  // The flow is there, and so many of its requests were asked for and done by somebody else; `port` outlives this. A queue has one flow in
  // its life.
  void SetFlow(net::FlowPort* port, net::FlowRef flow, uint64_t done = 0);
  bool has_flow() const { return port_ != nullptr; }
  net::FlowRef flow() const { return flow_; }

  void Add(Request request) { requests_.push_back(std::move(request)); }
  void AddBytes(net::Buffer buffer, uint64_t bytes) { Add({Request::Kind::kBytes, buffer, bytes, {}}); }
  void AddOwn(Request::Kind kind, Bytes own);
  // Of a sending flow; see FlowPort. What the port does not take is left as it was: a weight says how fast, and not what.
  void SetWeight(double weight);

  // Of a sending flow; see FlowPort.
  void SetDealt(bool dealt);

  // Posts what there is room for.
  void Post();
  // The same, and gives the oldest request that is done and was not given yet.
  std::optional<Request> TakeDone();
  // Nothing is asked for that was not given.
  bool idle() const { return requests_.empty(); }
  // See FlowPort. Empty without a flow.
  std::string Error() const { return has_flow() ? port_->Error(flow_) : ""; }

 private:
  const Direction direction_;
  net::FlowPort* port_ = nullptr;
  net::FlowRef flow_ = 0;
  double weight_ = 1;
  bool dealt_ = false;
  std::deque<Request> requests_;  // those that were not given
  uint64_t given_ = 0;            // of the flow's; requests_ begins there
  uint64_t posted_ = 0;           // the same
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_FLOW_QUEUE_H_
