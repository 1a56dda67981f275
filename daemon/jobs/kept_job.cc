#include "daemon/jobs/kept_job.h"

#include <algorithm>
#include <string>

#include "base/names.h"
#include "daemon/jobs/held_operations.h"
#include "daemon/jobs/job_registry.h"
#include "daemon/jobs/job_ways.h"
#include "daemon/jobs/reduced_rails.h"
#include "plan/page/attach.h"

namespace r2cc::daemon {
namespace {

// Enough for a line that a process gave up with, and far more than names have.
constexpr size_t kKeptTextMax = 1024;

std::string CleanKept(const std::string& text) { return CleanText(text.data(), std::min(text.size(), kKeptTextMax)); }

template <typename List>
void Cut(List* list, int most) {
  if (list->size() > most) list->DeleteSubrange(most, list->size() - most);
}

}  // namespace

v1::Job Cleaned(v1::Job job) {
  Cut(job.mutable_rails(), static_cast<int>(plan::kAttachRailsMax));
  Cut(job.mutable_faults(), JobRegistry::kFaultsMax);
  Cut(job.mutable_failures(), JobRegistry::kFailuresMax);
  Cut(job.mutable_ways(), kJobWaysMax);
  Cut(job.mutable_gave_up(), JobRegistry::kGaveUpMax);
  Cut(job.mutable_reduced(), kReducedMax);
  Cut(job.mutable_peer_nodes(), static_cast<int>(JobRegistry::kPeersPerUserMax));
  for (std::string* const text : {job.mutable_job(), job.mutable_process_id(), job.mutable_run(), job.mutable_release()})
    *text = CleanKept(*text);
  for (std::string& peer : *job.mutable_peer_nodes()) peer = CleanKept(peer);
  for (v1::RailTotals& rail : *job.mutable_rails()) {
    rail.set_rail(CleanKept(rail.rail()));
    rail.set_nic(CleanKept(rail.nic()));
  }
  for (v1::Job::Fault& fault : *job.mutable_faults()) {
    for (std::string* const text : {fault.mutable_rail(), fault.mutable_nic(), fault.mutable_cause()}) *text = CleanKept(*text);
    fault.clear_nodes();
    CleanHeldOf(&fault);
  }
  for (v1::AllReduceWay& way : *job.mutable_ways()) {
    way.set_way(CleanKept(way.way()));
    way.clear_node();
  }
  for (v1::JobFailure& failure : *job.mutable_failures()) failure.set_peer_node(CleanKept(failure.peer_node()));
  if (job.has_waiting()) {
    v1::JobWaiting& waiting = *job.mutable_waiting();
    for (std::string* const text :
         {waiting.mutable_peer_node(), waiting.mutable_peer_nic(), waiting.mutable_rail(), waiting.mutable_text()})
      *text = CleanKept(*text);
  }
  for (v1::GaveUp& gave_up : *job.mutable_gave_up()) {
    gave_up.set_text(CleanKept(gave_up.text()));
    gave_up.set_peer_node(CleanKept(gave_up.peer_node()));
    Cut(gave_up.mutable_rails(), static_cast<int>(plan::kAttachRailsMax));
    for (v1::GaveUp::Rail& rail : *gave_up.mutable_rails())
      for (std::string* const text : {rail.mutable_rail(), rail.mutable_nic(), rail.mutable_peer_nic(), rail.mutable_cause()})
        *text = CleanKept(*text);
  }
  return job;
}

}  // namespace r2cc::daemon
