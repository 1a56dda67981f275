// When this node's state is published and when a new plan is made, so that many changes at once cost no more than a few. Pure: time is an
// argument.
#ifndef R2CC_DAEMON_PAGE_PACER_H_
#define R2CC_DAEMON_PAGE_PACER_H_

#include <cstddef>

#include "base/core/clock.h"
#include "health/view/node_state.h"

namespace r2cc::daemon {

// Interval of messages to peers and the store when nothing changes.
constexpr Nanos kKeepAliveInterval = 500 * kNanosPerMs;
// Least interval of publications by a node whose pairs fall silent one after another: while a switch dies, hundreds of nodes publish, each
// to all others.
constexpr Nanos kSilenceInterval = 50 * kNanosPerMs;
// Above this number of nodes, plans keep a distance that grows with the cluster. Otherwise a rack that dies, or a cluster that starts,
// would occupy a core: a plan after the change of one of 1,024 nodes takes 0.7 to 1 ms, most of it for the page.
constexpr size_t kPlanAtOnceNodes = 64;
constexpr Nanos kPlanIntervalPerNode = 10'000;

class Pacer {
 public:
  // The time at which `next` may be published after `last`. `inconclusive`: another node explains a silence, and waits for this node's
  // results. A change of the node or of its NICs: at once (0). A change of its pairs only: an interval after the last publication.
  Nanos PublishAt(const health::NodeState& last, const health::NodeState& next, bool inconclusive) const;
  void Published(Nanos now) { published_at_ = now; }

  // When changes of other nodes, of a cluster of `nodes`, may be planned. A change of the own node does not wait.
  Nanos PlanAt(size_t nodes) const;
  void Planned(Nanos now) { planned_at_ = now; }

  // Something waits until `when`. True: the caller sets a timer for that; false: an earlier one is set.
  bool Wait(Nanos when);
  // The timer for `when` rang. True: it is time; false: an earlier one has replaced it.
  bool Rang(Nanos when);

 private:
  Nanos published_at_ = 0;
  Nanos planned_at_ = 0;
  Nanos timer_at_ = 0;  // 0: none is set
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_PAGE_PACER_H_
