// Records which plan each operation follows. Member 0 stamps ahead, and a stamp never changes: "operations 16 up to 32 follow plan 3". No
// member begins an operation that is not stamped. So all members switch at the same operation: a member that has not received the new plan
// has not received permission to go that far. The first stamp is made when member 0 is called for the first time, with what it knows by
// then.
//
// Stamps reach a member in the order in which they were made, on each path that leads to it.
#ifndef R2CC_NETPLUGIN_COLLNET_PLAN_BOOK_H_
#define R2CC_NETPLUGIN_COLLNET_PLAN_BOOK_H_

#include <deque>
#include <optional>
#include <string>

#include "netplugin/collnet/message.h"

namespace r2cc::collnet {

// The stamps that a member has received.
class PlanBook {
 public:
  // Empty if the stamp continues or repeats the known ones; otherwise what it would change.
  std::string Add(const Stamp& stamp);
  // The stamp that has the operation; null: none yet, or forgotten.
  const Stamp* Find(OperationId operation) const;
  // This operation and all after it are not stamped.
  OperationId through() const { return stamps_.empty() ? 0 : stamps_.back().through; }
  // The stamps that are not forgotten, in order.
  const std::deque<Stamp>& stamps() const { return stamps_; }
  // The last stamp; null: none.
  const Stamp* newest() const { return stamps_.empty() ? nullptr : &stamps_.back(); }
  // No later call will name an operation before this one.
  void ForgetBefore(OperationId operation);

 private:
  std::deque<Stamp> stamps_;  // one for each epoch; each begins where the last one ends
};

// Member 0's part.
class Stamper {
 public:
  // Stamps `ahead` operations beyond member 0's calls. A change of plan takes effect after the stamped ones, so `ahead` is its delay. A
  // member that is further ahead of member 0 waits.
  explicit Stamper(PlanSpec first, OperationId ahead) : plan_(std::move(first)), ahead_(ahead) {}

  // Takes effect with the first operation that is not stamped.
  void SetPlan(PlanSpec plan) { plan_ = std::move(plan); }
  // `called`: how many operations member 0 has called. Returns the stamp that all members need now, if any.
  std::optional<Stamp> Next(OperationId called);

 private:
  PlanSpec plan_;
  OperationId ahead_;
  std::optional<Stamp> last_;
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_PLAN_BOOK_H_
