#include "netplugin/transport/job_tally.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace r2cc::net {
namespace {

// What a process keeps; a flapping rail makes many.
constexpr size_t kFaultsMost = 4096;
constexpr size_t kFailuresMost = 64;
// Losses of two seconds.
constexpr size_t kUndecidedMost = 1024;

}  // namespace

void JobTally::Began(Nanos now) {
  const MutexLock lock(mutex_);
  began_ = since_ = now;
}

JobTally::Fault* JobTally::Find(uint16_t rail, Nanos when) {
  for (auto fault = faults_.rbegin(); fault != faults_.rend(); ++fault)
    if (fault->rail == rail && std::abs(fault->when - when) <= kNanosPerSecond) return &*fault;
  return nullptr;
}

void JobTally::Lost(const Loss& loss, Nanos now) {
  const MutexLock lock(mutex_);
  Fault* fault = Find(loss.rail, loss.when);
  if (fault == nullptr) {
    if (faults_.size() >= kFaultsMost) return void(++faults_more_);
    fault = &faults_.emplace_back(Fault{.rail = loss.rail, .when = loss.when});
  }
  ++fault->links;
  fault->taken |= loss.cause == plan::EvidenceCause::kSimulated;
  fault->real |= !plan::MayBeOnPurpose(loss.cause);
  if (plan::MayBeOnPurpose(loss.cause) && undecided_.size() < kUndecidedMost) undecided_.push_back({loss, now});
}

void JobTally::Judge(const PageView& page, Nanos now) {
  const MutexLock lock(mutex_);
  std::erase_if(undecided_, [&](const Undecided& one) R2CC_REQUIRES(mutex_) {
    const Loss& loss = one.loss;
    if (!page.OnPurpose(loss.node, loss.nic) && !page.OnPurpose(loss.peer_node, loss.peer_nic))
      return now - one.last_received >= plan::kOnPurposeKnown;
    if (Fault* const fault = Find(loss.rail, loss.when); fault != nullptr) fault->taken = true;
    return true;
  });
}

void JobTally::Passed(uint16_t rail, Nanos lost, Nanos stall) {
  const MutexLock lock(mutex_);
  longest_ = std::max(longest_, stall);
  if (Fault* const fault = Find(rail, lost); fault != nullptr) ++fault->passed;
}

void JobTally::Use(uint32_t usable, uint32_t rails, Nanos when) {
  const MutexLock lock(mutex_);
  if (usable_ < rails_) reduced_[{usable_, rails_}] += std::max<Nanos>(when - since_, 0);
  usable_ = usable;
  rails_ = rails;
  since_ = when;
}

bool JobTally::Failed(const std::string& peer, uint64_t failure) {
  const MutexLock lock(mutex_);
  return failures_.size() < kFailuresMost && failures_.emplace(peer, failure).second;
}

std::string JobTally::Line(const std::string& report, Nanos now) const {
  const MutexLock lock(mutex_);
  uint64_t survived = faults_more_, open = 0, on_purpose = 0;
  for (const Fault& fault : faults_) ++(fault.taken && !fault.real ? on_purpose : fault.passed >= fault.links ? survived : open);
  if (faults_.empty() && reduced_.empty() && usable_ >= rails_) return "";
  char text[160];
  std::snprintf(text, sizeof(text), "R2CC: %llu NIC fault%s survived", static_cast<unsigned long long>(survived), survived == 1 ? "" : "s");
  // A rail that was lost from the job's begin on, or that no traffic had needed, is no fault that the job survived.
  std::string line = survived + open == 0 ? "R2CC: no NIC fault" : text;
  if (open > 0) line += ", " + std::to_string(open) + " not";
  if (on_purpose > 0) line += ", " + std::to_string(on_purpose) + " on purpose";
  if (longest_ > 0) {
    std::snprintf(text, sizeof(text), ", longest stall %.2f s", static_cast<double>(longest_) / kNanosPerSecond);
    line += text;
  }
  auto reduced = reduced_;
  if (usable_ < rails_) reduced[{usable_, rails_}] += std::max<Nanos>(now - since_, 0);
  const auto ran = static_cast<double>(std::max<Nanos>(now - began_, 1));
  for (const auto& [rails, time] : reduced) {
    const double percent = 100 * static_cast<double>(time) / ran;
    std::snprintf(text, sizeof(text), percent < 1 ? ", %.1f %% of the run at %u/%u bandwidth" : ", %.0f %% of the run at %u/%u bandwidth",
                  percent, rails.first, rails.second);
    line += text;
  }
  return line + "; r2ccctl job report " + report;
}

}  // namespace r2cc::net
