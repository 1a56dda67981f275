// Keeps the fences that the acceptor has not answered: incarnations whose arrivals are not known yet. Pure.
#ifndef R2CC_NETPLUGIN_LINK_OPEN_FENCES_H_
#define R2CC_NETPLUGIN_LINK_OPEN_FENCES_H_

#include <algorithm>
#include <vector>

#include "base/core/clock.h"
#include "base/core/function_ref.h"
#include "netplugin/flow/types.h"
#include "netplugin/link/action.h"

namespace r2cc::net {

class OpenFences {
 public:
  struct Fence {
    LinkId link = 0;
    Incarnation incarnation = 0;
    PathEpoch epoch = 0;
    LinkFault fault;
    Nanos since = 0;
    Nanos unanswered = 0;  // for how long, counting only time in which the peer answered other frames
  };

  void Add(const Fence& fence) { fences_.push_back(fence); }
  bool Uses(PathEpoch epoch) const {
    return std::any_of(fences_.begin(), fences_.end(), [epoch](const Fence& fence) { return fence.epoch == epoch; });
  }
  // The answer for an incarnation also answers for all earlier ones: removes and returns their fences.
  std::vector<Fence> TakeAnswered(LinkId link, Incarnation through) {
    std::vector<Fence> answered;
    std::erase_if(fences_, [&](const Fence& fence) {
      if (fence.link != link || fence.incarnation > through) return false;
      answered.push_back(fence);
      return true;
    });
    return answered;
  }
  // Ages the fences. The peer has answered other frames for `answering` since the last call. Calls `expired` once for each fence that
  // stayed unanswered for `deadline` of such time. The chunks of its incarnation can never be replayed: see action.h.
  void Age(Nanos answering, Nanos deadline, FunctionRef<void(LinkId, PathEpoch)> expired) {
    for (Fence& fence : fences_) {
      const bool was_due = fence.unanswered >= deadline;
      fence.unanswered += answering;
      if (!was_due && fence.unanswered >= deadline) expired(fence.link, fence.epoch);
    }
  }

 private:
  std::vector<Fence> fences_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_OPEN_FENCES_H_
