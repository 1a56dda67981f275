// What a daemon and a process have of the runs of a job that came before, on the same nodes and with the same name.
#include <algorithm>

#include "absl/strings/str_cat.h"
#include "tests/world/judge.h"

namespace r2cc::world {
namespace {

// From the end of a process to its daemon, which runs: a turn, and for one that was stopped its next look at the socket.
constexpr Nanos kEndWithin = kNanosPerSecond;
// From a process that has its turns to the list of its daemon: the longest delay between two attempts is 2 s, and its jitter as long.
constexpr Nanos kAttachedWithin = 5 * kNanosPerSecond;

}  // namespace

Nanos Judge::AwakeFor(const sim::Process& process) const {
  const auto since = awake_since_.find(process.host());
  return since == awake_since_.end() ? 0 : Now() - since->second;
}

// Whoever greets a process by the address of the one before it is turned away.
void Judge::LookForFormerPeers(const sim::Process& process) const {
  for (const auto& [session, peer] : process.recv_peers()) {
    const sim::Process& sender = *processes_[peer->process() - 1];
    if (sender.run() == process.run()) continue;
    Violation("former run", absl::StrCat("process ", process.host(), " has taken a connection of process ", sender.host(), ", which is of ",
                                         sender.run()));
  }
}

const sim::Process* Judge::Known(int node, const v1::Job& job) const {
  const auto id = std::find(ids_.begin(), ids_.end(), job.process_id());
  const sim::Process* const process = id == ids_.end() ? nullptr : processes_[static_cast<size_t>(id - ids_.begin())];
  if (process != nullptr && process->node() == node) return process;
  Violation("former run", absl::StrCat("the daemon of ", cluster::NodeName(node), " knows of a process that never was there"));
  return nullptr;
}

void Judge::OnJobs(int node, const v1::ListJobsReply& jobs, size_t places) {
  const std::string daemon = "the daemon of " + cluster::NodeName(node);
  std::set<int> listed;
  for (const v1::Job& job : jobs.jobs()) {
    const sim::Process* const process = Known(node, job);
    if (process == nullptr) return;
    listed.insert(process->host());
    if (process->dead() && Now() - process->died_at() > kEndWithin && ConnectedFor(node, kEndWithin))
      Violation("former run", absl::StrCat(daemon, " still lists process ", process->host(), ", which ended ",
                                           (Now() - process->died_at()) / kNanosPerMs, " ms ago"));
    const Nanos begun = process->io().options.clock.At(process->begun_at());
    for (const v1::Job::Fault& fault : job.faults())
      if (fault.monotonic_ns() < begun)
        Violation("former run", absl::StrCat("process ", process->host(), " is said to have lost ", fault.rail(), " ",
                                             (begun - fault.monotonic_ns()) / kNanosPerMs, " ms before it began"));
    if (!job.run().empty() && job.run() != process->run())
      Violation("former run", absl::StrCat("process ", process->host(), " is said to be of ", job.run()));
  }
  for (const sim::Process* const process : processes_)
    if (process->node() == node && AwakeFor(*process) > kAttachedWithin && ConnectedFor(node, kAttachedWithin) &&
        !listed.contains(process->host()))
      Violation("former run", absl::StrCat(daemon, " does not list process ", process->host(), ", which runs there"));
  // One that asks has a place, too. A daemon that was stopped has them all ask at once.
  if (places > listed.size() + 1 && ConnectedFor(node, kEndWithin))
    Violation("former run", absl::StrCat(daemon, " counts ", places, " places for ", listed.size(), " processes"));
}

void Judge::OnEnded(int node, const v1::ListJobsReply& jobs) const {
  for (const v1::Job& job : jobs.jobs()) {
    const sim::Process* const process = Known(node, job);
    if (process == nullptr) return;
    if (job.ended_in_order() && !process->exiting())
      Violation("former run", absl::StrCat("process ", process->host(), " is said to have ended in order"));
  }
}

}  // namespace r2cc::world
