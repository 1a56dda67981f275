#include "tests/sim/group_job.h"

#include <algorithm>

namespace r2cc::sim {

GroupJob::GroupJob(Checker* checker, const std::vector<Process*>& processes, const GroupPlan& plan, Excused excused)
    : checker_(checker),
      processes_(processes),
      plan_(plan),
      excused_(std::move(excused)),
      members_(processes.size()),
      over_(processes.size()),
      left_(processes.size()) {
  for (Process* const process : processes_) {
    process->Listen(0);
    process->io().network->timeline()->At(plan_.start, [process] { process->Wake(); });
  }
}

void GroupJob::Progress(Process* process) {
  const size_t host = static_cast<size_t>(process->host());
  const Nanos now = process->io().now();
  if (now < plan_.start || left_[host]) return;
  if (members_[host] == nullptr) {
    const GroupMember::Options options{static_cast<uint32_t>(processes_.size()), static_cast<uint32_t>(host), plan_.count};
    members_[host] = std::make_unique<GroupMember>(
        process, options, [this, sender = process->host()](int member, net::FlowId flow) { checker_->Ignore(sender, member, flow); });
  }
  GroupMember& member = *members_[host];
  const uint64_t due = plan_.gap == 0 ? plan_.operations : static_cast<uint64_t>((now - plan_.start) / plan_.gap) + 1;
  member.Progress(std::min(due, plan_.operations), process->rails_up(), process->io().local_now());
  Judge(*process, member);
  if (due <= plan_.operations)
    process->io().network->timeline()->At(plan_.start + static_cast<Nanos>(due) * plan_.gap, [process] { process->Wake(); });
}

void GroupJob::Leave(const Process& process) {
  const size_t host = static_cast<size_t>(process.host());
  if (left_[host]) return;
  over_[host] = left_[host] = true;
  if (members_[host] != nullptr) members_[host]->Leave();
}

void GroupJob::Judge(const Process& process, const GroupMember& member) {
  const size_t host = static_cast<size_t>(process.host());
  const std::string who = "member " + std::to_string(host);
  if (member.wrong() > 0) checker_->Violation("wrong result", who + " has " + std::to_string(member.wrong()) + " wrong elements");
  if (const collnet::Stamp* const stamp = member.driver().newest_plan(); stamp != nullptr) {
    const auto known = schedules_.try_emplace(stamp->epoch, stamp->from, stamp->plan).first;
    if (known->second != std::pair(stamp->from, stamp->plan))
      checker_->Violation("two schedules", who + " follows another plan " + std::to_string(stamp->epoch) + " than a member before it");
  }
  if (!member.driver().error().empty() && !over_[host] && !excused_())
    checker_->Violation("false error", who + " of the group failed without a reason that the contract knows: " + member.driver().error());
  over_[host] = over_[host] || !member.driver().error().empty() || member.done() == plan_.operations;
}

bool GroupJob::IsDone(size_t host) const { return over_[host] || processes_[host]->dead() || processes_[host]->exiting(); }

bool GroupJob::done() const {
  for (size_t host = 0; host < processes_.size(); ++host)
    if (!IsDone(host)) return false;
  return true;
}

std::vector<std::string> GroupJob::Unfinished() const {
  std::vector<std::string> lines;
  for (size_t host = 0; host < processes_.size(); ++host)
    if (!IsDone(host))
      lines.push_back("member " + std::to_string(host) + " has done " +
                      std::to_string(members_[host] == nullptr ? 0 : members_[host]->done()) + " of " + std::to_string(plan_.operations) +
                      " operations");
  return lines;
}

}  // namespace r2cc::sim
