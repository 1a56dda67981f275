#include "daemon/jobs/held_operations.h"

#include <algorithm>
#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/names.h"
#include "daemon/jobs/job_sums.h"

namespace r2cc::daemon {
namespace {

constexpr size_t kTextMax = 64;

std::string Clean(const std::string& text) { return CleanText(text.data(), std::min(text.size(), kTextMax)); }

bool IsSame(const v1::HeldOperation& a, const v1::HeldOperation& b) {
  return a.function() == b.function() && a.number() == b.number() && a.communicator() == b.communicator() && a.rank() == b.rank() &&
         a.node() == b.node();
}

}  // namespace

v1::HeldOperation HeldOf(const plan::EvidenceRecord& record) {
  v1::HeldOperation held;
  held.set_function(CleanText(record.peer_nic, sizeof(record.peer_nic)));
  held.set_number(record.number);
  held.set_communicator(record.bytes);
  held.set_communicator_name(CleanText(record.peer_node, sizeof(record.peer_node)));
  held.set_rank(static_cast<uint32_t>(record.replayed_bytes >> 32));
  held.set_ranks(static_cast<uint32_t>(record.replayed_bytes));
  held.set_held_ns(static_cast<int64_t>(std::min<uint64_t>(record.duration_ns, kStallMostNs)));
  return held;
}

v1::HeldOperation CleanHeld(v1::HeldOperation held) {
  for (std::string* const text : {held.mutable_function(), held.mutable_communicator_name(), held.mutable_node()}) *text = Clean(*text);
  held.set_held_ns(std::clamp<int64_t>(held.held_ns(), 0, kStallMostNs));
  return held;
}

void CleanHeldOf(v1::Job::Fault* fault) {
  auto& all = *fault->mutable_held();
  if (all.size() > kHeldOperationsMax) all.DeleteSubrange(kHeldOperationsMax, all.size() - kHeldOperationsMax);
  for (v1::HeldOperation& held : all) held = CleanHeld(std::move(held));
}

void AddHeld(const v1::HeldOperation& held, v1::Job::Fault* fault) {
  if (fault == nullptr) return;
  auto& all = *fault->mutable_held();
  const auto same = std::find_if(all.begin(), all.end(), [&](const v1::HeldOperation& one) { return IsSame(one, held); });
  if (same != all.end())
    same->set_held_ns(std::max(same->held_ns(), held.held_ns()));
  else
    *all.Add() = held;
  std::stable_sort(all.begin(), all.end(),
                   [](const v1::HeldOperation& a, const v1::HeldOperation& b) { return a.held_ns() > b.held_ns(); });
  if (all.size() <= kHeldOperationsMax) return;
  all.RemoveLast();
  fault->set_held_more(fault->held_more() + 1);
}

void AddAllHeld(const v1::Job::Fault& from, v1::Job::Fault* to) {
  to->set_held_more(to->held_more() + from.held_more());
  for (const v1::HeldOperation& held : from.held()) AddHeld(held, to);
}

std::string HeldText(const v1::HeldOperation& held) {
  const std::string number = held.number() > 0 ? absl::StrCat(" ", held.number()) : "";
  const std::string name = held.communicator_name().empty() ? absl::StrFormat("%x", held.communicator()) : held.communicator_name();
  const std::string ranks = held.ranks() > 0 ? absl::StrCat(" of ", held.ranks()) : "";
  return absl::StrFormat("%s%s of communicator %s (rank %d%s) for %.1f ms", held.function(), number, name, held.rank(), ranks,
                         static_cast<double>(held.held_ns()) / kNanosPerMs);
}

void HeldEvents::Note(const Fault& report, Nanos now) {
  const auto is_it = [&](const Fault& one) {
    return one.uid == report.uid && one.job == report.job && one.rail == report.rail && std::abs(one.lost - report.lost) <= kOneFaultNs;
  };
  auto fault = std::find_if(faults_.begin(), faults_.end(), is_it);
  if (fault == faults_.end()) {
    if (faults_.size() >= kFaultsMax) return;
    fault = faults_.insert(faults_.end(), report);
    fault->operations = 0;
    fault->first = now;
  }
  ++fault->operations;
  if (report.longest.held_ns() <= fault->longest.held_ns()) return;
  fault->longest = report.longest;
  fault->pid = report.pid;
}

std::vector<HeldEvents::Fault> HeldEvents::TakeDue(Nanos now) {
  std::vector<Fault> due;
  std::erase_if(faults_, [&](Fault& fault) {
    if (now - fault.first < kCollect) return false;
    due.push_back(std::move(fault));
    return true;
  });
  return due;
}

}  // namespace r2cc::daemon
