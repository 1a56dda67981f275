#include "daemon/services/operator_service.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/names.h"
#include "health/probe/reports.h"

namespace r2cc::daemon {
namespace {

// A disk that takes longer may not hold up the operator: the setting is in force, and is written when the disk permits it.
constexpr Nanos kSaveWait = kNanosPerSecond / 2;

// A line stays a line in a large cluster.
constexpr size_t kNamesShown = 16;

struct Action {
  health::EvidenceKind kind;
  std::string verb;
};

std::optional<Action> ActionFor(const v1::NicActionRequest& request) {
  const bool all = request.job().empty();
  switch (request.action()) {
    case v1::DRAIN: return Action{all ? health::EvidenceKind::kDrain : health::EvidenceKind::kDrainJob, "drain"};
    case v1::DRAIN_NOW: return Action{health::EvidenceKind::kDrainNow, "drain"};
    case v1::UNDRAIN: return Action{all ? health::EvidenceKind::kUndrain : health::EvidenceKind::kUndrainJob, "undrain"};
    case v1::SET_WEIGHT: return Action{health::EvidenceKind::kWeight, "weight"};
    case v1::FAIL: return Action{health::EvidenceKind::kDrillFail, "fail"};
    case v1::RESTORE: return Action{health::EvidenceKind::kDrillRestore, "restore"};
    default: return std::nullopt;
  }
}

// The NIC carries nothing afterwards.
bool TakesAway(const v1::NicActionRequest& request) {
  return request.action() == v1::DRAIN || request.action() == v1::DRAIN_NOW || request.action() == v1::FAIL ||
         (request.action() == v1::SET_WEIGHT && request.weight_permille() == 0);
}

std::string Length(Nanos time) { return absl::FormatDuration(absl::Nanoseconds(time)); }

std::string Clean(const std::string& name) { return CleanText(name.data(), std::min<size_t>(name.size(), kNodeNameBytesMax)); }

}  // namespace

void OperatorService::Act(const v1::NicActionRequest& request, const Caller& caller, const absl::Status& may,
                          Answer<v1::NicActionReply> answer) {
  const bool here = request.node() == parts_.reporter->node();
  absl::Status status = may;
  if (status.ok()) status = Check(request, caller);
  if (status.ok() && !here) return Forward(request, caller, std::move(answer));
  const absl::StatusOr<v1::NicActionReply> reply = status.ok() ? ActHere(request) : status;
  if (!reply.ok()) {
    Note(request, caller, reply.status(), "");
    return answer(reply.status());
  }
  Note(request, caller, absl::OkStatus(), reply->changed() ? "" : "it already was so");
  if (!reply->changed()) {
    v1::NicActionReply amended = *reply;
    amended.set_not_kept(std::string(parts_.keeper->trouble().message()));
    return answer(std::move(amended));
  }
  const auto kept = [answer, reply](const std::string& why_not) {
    v1::NicActionReply amended = *reply;
    amended.set_not_kept(why_not);
    answer(std::move(amended));
  };
  Save([kept](const absl::Status& status) { kept(std::string(status.message())); });
  parts_.executor->RunAfter(kSaveWait, [kept] { kept("the disk has not answered yet"); });
}

absl::Status OperatorService::Check(const v1::NicActionRequest& request, const Caller& caller) const {
  const std::string& own = parts_.reporter->node();
  if (!ActionFor(request).has_value())
    return absl::InvalidArgumentError(
        absl::StrCat("action ", static_cast<int>(request.action()), " is unknown to this r2ccd, which is older than the caller"));
  if (request.action() == v1::SET_WEIGHT && request.weight_permille() > health::kFullWeightPermille)
    return absl::InvalidArgumentError(
        absl::StrCat("weight ", request.weight_permille(), " is out of range; it is from 0 to ", health::kFullWeightPermille, " permille"));
  if (request.action() == v1::FAIL && request.drill_ns() != 0 &&
      (request.drill_ns() < health::kDrillMin || request.drill_ns() > health::kDrillMax))
    return absl::InvalidArgumentError(
        absl::StrCat("a drill lasts ", Length(health::kDrillMin), " to ", Length(health::kDrillMax), ", not ", Length(request.drill_ns())));
  if (!request.job().empty())
    if (const absl::Status job = CheckJob(request); !job.ok()) return job;
  if (request.node() == own)
    return parts_.local->health().Has(request.nic()) ? CheckNotLast(request, JobsOn(request)) : UnknownNic(request.nic());
  if (caller.forwarded())
    return absl::FailedPreconditionError(absl::StrCat("this is node ", own, ", not ", Clean(request.node()),
                                                      ": correct the peer addresses in the configuration of the daemon that was asked"));
  const bool known = parts_.view->Find(request.node()) != nullptr || parts_.peer_set->IsPeer(request.node());
  return known ? absl::OkStatus() : UnknownNode(request.node());
}

absl::Status OperatorService::CheckJob(const v1::NicActionRequest& request) const {
  if (!IsJobName(request.job()))
    return absl::InvalidArgumentError(absl::StrCat("'", Clean(request.job()), "' is no job's name: that is R2CC_JOB, up to ",
                                                   kNodeNameBytesMax, " printable characters without blanks and /"));
  if (request.action() != v1::DRAIN && request.action() != v1::UNDRAIN)
    return absl::InvalidArgumentError("only drain and undrain are for one job; weight, drills and a drain at once are for all");
  if (request.action() != v1::DRAIN || request.node() != parts_.reporter->node()) return absl::OkStatus();
  const health::OperatorSettings settings = parts_.local->health().settings();
  const auto setting = settings.find(request.nic());
  if (setting == settings.end() || setting->second.drained_jobs.size() < health::kDrainedJobsMax ||
      setting->second.drained_jobs.contains(request.job()))
    return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat(request.node(), "/", Clean(request.nic()), " is drained for ", health::kDrainedJobsMax,
                                                   " jobs already: undrain it for one of ",
                                                   absl::StrJoin(setting->second.drained_jobs, ", "), ", or drain it for all"));
}

void OperatorService::Forward(const v1::NicActionRequest& request, const Caller& caller, Answer<v1::NicActionReply> answer) {
  const absl::StatusOr<PeerSpec> peer = parts_.peer_set->FindSpec(request.node());
  if (!peer.ok()) {
    Note(request, caller, peer.status(), "");
    return answer(peer.status());
  }
  v1::NicActionRequest forwarded = request;
  *forwarded.mutable_asker() = ToAsker(caller, parts_.reporter->node());
  // The answer comes on any thread.
  const auto note = [this, alive = alive_, core = parts_.executor, request, caller](const absl::Status& status, bool changed) {
    core->Post([this, alive, request, caller, status, changed] {
      if (*alive) Note(request, caller, status, status.ok() && !changed ? "it already was so" : "", /*forwarded=*/true);
    });
  };
  parts_.peers->Act(*peer, forwarded, [note, answer = std::move(answer)](const absl::StatusOr<v1::NicActionReply>& reply) {
    note(reply.status(), reply.ok() && reply->changed());
    answer(reply);
  });
}

absl::StatusOr<v1::NicActionReply> OperatorService::ActHere(const v1::NicActionRequest& request) {
  const health::NodeHealth& health = parts_.local->health();
  const Action action = *ActionFor(request);
  const health::OperatorSettings before = health.settings();
  const int64_t value = request.action() == v1::SET_WEIGHT ? request.weight_permille()
                        : request.action() == v1::FAIL     ? request.drill_ns()
                                                           : 0;
  const health::NicKey nic{parts_.reporter->node(), request.nic()};
  parts_.local->Handle(health::OperatorEvidence(nic.node, nic, action.kind, value, parts_.executor->Now(), request.job()));

  v1::NicActionReply reply;
  const health::NodeState state = health.Snapshot();
  *reply.mutable_nic() = ToProto(*state.Find(request.nic()), parts_.reporter->Now());
  reply.set_changed(health.settings() != before);
  if (TakesAway(request))
    for (const std::string& job : JobsOn(request)) reply.add_jobs(job);
  return reply;
}

void OperatorService::Note(const v1::NicActionRequest& request, const Caller& caller, const absl::Status& status, const std::string& result,
                           bool forwarded) {
  const std::optional<Action> action = ActionFor(request);
  Audit::Entry entry{
      action.has_value() ? action->verb : "unknown action", Clean(request.node()), Clean(request.nic()), "", status, result, forwarded};
  if (request.action() == v1::SET_WEIGHT) entry.more = absl::StrCat(request.weight_permille() / 10.0, "%");
  if (request.action() == v1::FAIL)
    entry.more = absl::StrCat("for ", Length(request.drill_ns() == 0 ? health::kDrillDefault : request.drill_ns()));
  if (request.action() == v1::DRAIN_NOW) entry.more = "at once";
  if (!request.job().empty()) entry.more = absl::StrCat("for job ", Clean(request.job()));
  if (request.force()) absl::StrAppend(&entry.more, entry.more.empty() ? "" : " ", "by force");
  parts_.audit->Add(entry, caller);
}

void OperatorService::OnDrillEnd(const std::string& nic) {
  ReportDrillOver(nic, "its time has passed");
  Save(nullptr);
}

void OperatorService::ReportEndedBefore(const std::string& nic) { ReportDrillOver(nic, "its time passed while r2ccd did not run"); }

void OperatorService::ReportDrillOver(const std::string& nic, const std::string& why) {
  v1::Event event = parts_.reporter->New("drill", absl::StrCat("the drill on ", parts_.reporter->node(), "/", nic, " is over: ", why));
  event.set_nic(nic);
  parts_.audit->AddOwn(std::move(event), "drill-end");
}

void OperatorService::Tick() {
  const health::OperatorSettings settings = parts_.local->health().settings();
  if (std::any_of(settings.begin(), settings.end(), [](const auto& entry) { return entry.second.drill_failed; })) Save(nullptr);
}

std::vector<std::string> OperatorService::JobsOn(const v1::NicActionRequest& request) const {
  return parts_.jobs_on ? parts_.jobs_on(request.nic(), request.job()) : std::vector<std::string>();
}

absl::Status OperatorService::CheckNotLast(const v1::NicActionRequest& request, const std::vector<std::string>& jobs) const {
  if (!TakesAway(request) || request.force()) return absl::OkStatus();
  const health::NodeState state = parts_.local->health().Snapshot();
  // For `job`; empty: for those that no NIC is drained for.
  const auto carries = [](const health::NicStatus& nic, const std::string& job) {
    return health::CarriesTraffic(nic.state) && nic.operator_weight_permille > 0 &&
           !std::binary_search(nic.drained_jobs.begin(), nic.drained_jobs.end(), job);
  };
  const auto is_last = [&](const std::string& job) {
    return carries(*state.Find(request.nic()), job) &&
           std::none_of(state.nics.begin(), state.nics.end(),
                        [&](const health::NicStatus& nic) { return nic.identity.name != request.nic() && carries(nic, job); });
  };
  // A setting for all jobs takes it also from those that run here and that other NICs are drained for.
  std::set<std::string> affected = {request.job()};
  if (request.job().empty() && parts_.jobs_on)
    for (const health::NicStatus& nic : state.nics)
      for (const std::string& name : nic.drained_jobs)
        if (!parts_.jobs_on(request.nic(), name).empty()) affected.insert(name);
  const auto job = std::find_if(affected.begin(), affected.end(), is_last);
  if (job == affected.end()) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      state.node, "/", request.nic(), " is the last NIC of ", state.node, job->empty() ? "" : absl::StrCat(" for job ", *job),
      " that carries traffic, and ", jobs.empty() ? "no job uses it now" : absl::StrCat("these jobs use it: ", absl::StrJoin(jobs, ", ")),
      "; --force does it all the same"));
}

void OperatorService::Save(StateKeeper::Done done) {
  settings_ = MergeSettings(std::move(settings_), parts_.local->nic_names(), parts_.local->health().settings());
  cabled_.merge(parts_.local->health().cabled());
  SavedState state = ToSave(settings_, parts_.boot_now());
  state.cabled = cabled_;
  parts_.keeper->Save(state, std::move(done));
}

void OperatorService::KeepCabled() {
  const std::set<std::string> cabled = parts_.local->health().cabled();
  if (!std::includes(cabled_.begin(), cabled_.end(), cabled.begin(), cabled.end())) Save(nullptr);
}

absl::Status OperatorService::UnknownNode(const std::string& node) const {
  std::set<std::string> names;
  for (const auto& [name, entry] : parts_.view->nodes()) names.insert(name);
  for (const auto& peer : parts_.peer_set->Peers()) names.insert(peer.node());
  const size_t more = names.size() > kNamesShown ? names.size() - kNamesShown : 0;
  names.erase(std::next(names.begin(), static_cast<ptrdiff_t>(names.size() - more)), names.end());
  return absl::NotFoundError(absl::StrCat("there is no node '", Clean(node), "'; the nodes are ", absl::StrJoin(names, " "),
                                          more > 0 ? absl::StrCat(" and ", more, " more: `r2ccctl nic list` names all") : ""));
}

absl::Status OperatorService::UnknownNic(const std::string& nic) const {
  const auto names = parts_.local->nic_names();
  return absl::NotFoundError(absl::StrCat("node ", parts_.reporter->node(), " has no NIC '", Clean(nic), "'; it has ",
                                          names.empty() ? "none" : absl::StrJoin(names, " ")));
}

}  // namespace r2cc::daemon
