// Which plan an operation follows. Member 0 stamps ahead, and what is stamped never changes: "operations 16 up to 32 follow plan 3". Nobody
// begins an operation that is not stamped. So all members switch at the same operation: one that has not heard of the new plan has not been
// told that it may go that far. The first stamp is made when member 0 is called for the first time, with what it knows by then.
//
// Stamps reach a member in the order in which they were made, by each of the ways that lead to it.
#ifndef R2CC_NETPLUGIN_COLLNET_PLAN_BOOK_H_
#define R2CC_NETPLUGIN_COLLNET_PLAN_BOOK_H_

#include <deque>
#include <optional>
#include <string>

#include "netplugin/collnet/message.h"

namespace r2cc::collnet {

// What a member has been told.
class PlanBook {
 public:
  // Empty if it follows from what is there, or says it again; otherwise what it would change.
  std::string Add(const Stamp& stamp);
  // The stamp that an operation falls under; null: none yet, or forgotten.
  const Stamp* Find(OperationId operation) const;
  // Not stamped: this operation and all after it.
  OperationId through() const { return stamps_.empty() ? 0 : stamps_.back().through; }
  // Those that are not forgotten, in order.
  const std::deque<Stamp>& stamps() const { return stamps_; }
  // The one that was told last; null: none.
  const Stamp* newest() const { return stamps_.empty() ? nullptr : &stamps_.back(); }
  // Nobody will ask for an operation before this one.
  void ForgetBefore(OperationId operation);

 private:
  std::deque<Stamp> stamps_;  // one an epoch, each from where the one before ends
};

// Member 0's part.
class Stamper {
 public:
  // So many operations ahead of what member 0 was called for. A change of plan takes effect after those that are stamped, so this is how
  // long it takes; and a member that is ahead of member 0 by more waits.
  explicit Stamper(PlanSpec first, OperationId ahead) : plan_(std::move(first)), ahead_(ahead) {}

  // From the next operation on that is not stamped.
  void SetPlan(PlanSpec plan) { plan_ = std::move(plan); }
  // `called`: of member 0, so far. What all members are to be told now, if anything.
  std::optional<Stamp> Next(OperationId called);

 private:
  PlanSpec plan_;
  OperationId ahead_;
  std::optional<Stamp> last_;
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_PLAN_BOOK_H_
