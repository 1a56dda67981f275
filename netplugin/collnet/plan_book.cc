#include "netplugin/collnet/plan_book.h"

#include <algorithm>

#include "netplugin/collnet/mutant.h"

namespace r2cc::collnet {
namespace {

std::string Named(const Stamp& stamp) {
  return "plan " + std::to_string(stamp.epoch) + " for operations " + std::to_string(stamp.from) + " up to " +
         std::to_string(stamp.through);
}

}  // namespace

std::string PlanBook::Add(const Stamp& stamp) {
  if (stamp.through <= stamp.from) return Named(stamp) + ", which are none";
  if (!stamps_.empty() && stamp.epoch < stamps_.front().epoch) return "";  // said again, of what is done
  const auto known = std::find_if(stamps_.begin(), stamps_.end(), [&](const Stamp& each) { return each.epoch == stamp.epoch; });
  if (known != stamps_.end()) {
    if (stamp.from != known->from || stamp.plan != known->plan) return "another " + Named(stamp) + " than before";
    if (stamp.through <= known->through) return "";
    if (known->epoch != stamps_.back().epoch) return Named(stamp) + ", of which some follow a later plan";
    known->through = stamp.through;
    return "";
  }
  const uint64_t expected = stamps_.empty() ? 1 : stamps_.back().epoch + 1;
  if (stamp.epoch != expected || stamp.from != through())
    return Named(stamp) + " where plan " + std::to_string(expected) + " from operation " + std::to_string(through()) + " on is the next";
  stamps_.push_back(stamp);
  return "";
}

const Stamp* PlanBook::Find(OperationId operation) const {
  for (const Stamp& stamp : stamps_)
    if (stamp.from <= operation && operation < stamp.through) return &stamp;
  if (IsActive(CollNetMutant::kStampNotAwaited) && !stamps_.empty() && operation >= through()) return &stamps_.back();
  return nullptr;
}

void PlanBook::ForgetBefore(OperationId operation) {
  while (stamps_.size() > 1 && stamps_.front().through <= operation) stamps_.pop_front();
}

std::optional<Stamp> Stamper::Next(OperationId called) {
  // Again when half of it is used up, so that a word takes its time without holding anybody up.
  if (last_.has_value() && called + (ahead_ + 1) / 2 <= last_->through) return std::nullopt;
  const OperationId through = called + ahead_;
  if (!last_.has_value()) {
    last_ = Stamp{1, 0, through, plan_};
  } else if (last_->plan == plan_) {
    last_->through = through;
  } else {
    // A change of mind about what others may have begun.
    const OperationId from = IsActive(CollNetMutant::kStampChanged) ? last_->through - 1 : last_->through;
    last_ = Stamp{last_->epoch + 1, from, through, plan_};
  }
  return last_;
}

}  // namespace r2cc::collnet
