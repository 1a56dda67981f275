#include "daemon/operator_service.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/names.h"
#include "health/probe/reports.h"

namespace r2cc::daemon {
namespace {

// A disk that takes longer may not hold up the operator: what was said is in force, and is written when the disk lets it.
constexpr Nanos kSaveWait = kNanosPerSecond / 2;

// A line stays a line in a large cluster.
constexpr size_t kNamesShown = 16;

struct Action {
  health::EvidenceKind kind;
  std::string verb;
};

std::optional<Action> ActionFor(v1::NicAction action) {
  switch (action) {
    case v1::DRAIN: return Action{health::EvidenceKind::kDrain, "drain"};
    case v1::UNDRAIN: return Action{health::EvidenceKind::kUndrain, "undrain"};
    case v1::SET_WEIGHT: return Action{health::EvidenceKind::kWeight, "weight"};
    case v1::FAIL: return Action{health::EvidenceKind::kDrillFail, "fail"};
    case v1::RESTORE: return Action{health::EvidenceKind::kDrillRestore, "restore"};
    default: return std::nullopt;
  }
}

// The NIC carries nothing afterwards.
bool TakesAway(const v1::NicActionRequest& request) {
  return request.action() == v1::DRAIN || request.action() == v1::FAIL ||
         (request.action() == v1::SET_WEIGHT && request.weight_permille() == 0);
}

std::string Clean(const std::string& name) { return CleanText(name.data(), std::min<size_t>(name.size(), kNodeNameBytesMax)); }

}  // namespace

void OperatorService::Act(const v1::NicActionRequest& request, const Caller& caller, Answer<v1::NicActionReply> answer) {
  const std::string& own = parts_.reporter->node();
  if (!ActionFor(request.action()).has_value())
    return answer(absl::InvalidArgumentError(
        absl::StrCat("action ", static_cast<int>(request.action()), " is unknown to this r2ccd; it is older than the one who asks")));
  if (request.action() == v1::SET_WEIGHT && request.weight_permille() > health::kFullWeightPermille)
    return answer(absl::InvalidArgumentError(absl::StrCat("weight ", request.weight_permille(), " is out of range; it is from 0 to ",
                                                          health::kFullWeightPermille, " permille")));
  if (request.node() == own) return ActHere(request, caller, std::move(answer));
  if (caller.forwarded())
    return answer(
        absl::FailedPreconditionError(absl::StrCat("this is node ", own, ", not ", Clean(request.node()),
                                                   ": correct the peer addresses in the configuration of the daemon that was asked")));
  if (parts_.view->Find(request.node()) == nullptr && !parts_.peer_set->IsPeer(request.node())) return answer(UnknownNode(request.node()));
  v1::NicActionRequest forwarded = request;
  *forwarded.mutable_asker() = ToAsker(caller, own);
  const absl::StatusOr<PeerSpec> peer = parts_.peer_set->WhereIs(request.node());
  if (!peer.ok()) return answer(peer.status());
  parts_.peers->Act(*peer, forwarded, std::move(answer));
}

void OperatorService::ActHere(const v1::NicActionRequest& request, const Caller& caller, Answer<v1::NicActionReply> answer) {
  const health::NodeHealth& health = parts_.local->health();
  if (!health.Has(request.nic())) return answer(UnknownNic(request.nic()));
  const Action action = *ActionFor(request.action());
  const std::vector<std::string> jobs = parts_.jobs_on ? parts_.jobs_on(request.nic()) : std::vector<std::string>();
  if (const absl::Status status = CheckNotLast(request, jobs); !status.ok()) return answer(status);
  const health::OperatorSettings before = health.settings();
  const int64_t value = request.action() == v1::SET_WEIGHT ? request.weight_permille() : 0;
  const health::NicKey nic{parts_.reporter->node(), request.nic()};
  parts_.local->Handle(health::OperatorEvidence(nic.node, nic, action.kind, value, parts_.executor->Now()));

  v1::NicActionReply reply;
  const health::NodeState state = health.Snapshot();
  *reply.mutable_nic() = ToProto(*state.Find(request.nic()), parts_.reporter->Now());
  reply.set_changed(health.settings() != before);
  if (TakesAway(request))
    for (const std::string& job : jobs) reply.add_jobs(job);
  if (!reply.changed()) return answer(reply);

  v1::Event event =
      parts_.reporter->New("operator", absl::StrCat(action.verb, " ", nic.ToString(),
                                                    request.action() == v1::SET_WEIGHT ? absl::StrCat(" ", value, " permille") : "",
                                                    ", said by ", Describe(caller)));
  event.set_nic(request.nic());
  parts_.reporter->Tell(std::move(event));
  Save([answer, reply] { answer(reply); });
  parts_.executor->RunAfter(kSaveWait, [answer, reply] { answer(reply); });
}

absl::Status OperatorService::CheckNotLast(const v1::NicActionRequest& request, const std::vector<std::string>& jobs) const {
  if (!TakesAway(request) || request.force()) return absl::OkStatus();
  const health::NodeState state = parts_.local->health().Snapshot();
  const auto carries = [](const health::NicStatus& nic) { return health::CarriesTraffic(nic.state) && nic.operator_weight_permille > 0; };
  const bool another = std::any_of(state.nics.begin(), state.nics.end(),
                                   [&](const health::NicStatus& nic) { return nic.identity.name != request.nic() && carries(nic); });
  if (another || !carries(*state.Find(request.nic()))) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat(state.node, "/", request.nic(), " is the last NIC of ", state.node, " that carries traffic, and ",
                   jobs.empty() ? "no job uses it now" : absl::StrCat("these jobs use it: ", absl::StrJoin(jobs, ", ")),
                   "; --force does it all the same"));
}

void OperatorService::Save(std::function<void()> done) {
  saved_.settings = MergeSettings(std::move(saved_.settings), parts_.local->nic_names(), parts_.local->health().settings());
  saved_.cabled.merge(parts_.local->health().cabled());
  parts_.keeper->Save(saved_, std::move(done));
}

void OperatorService::KeepCabled() {
  const std::set<std::string> cabled = parts_.local->health().cabled();
  if (!std::includes(saved_.cabled.begin(), saved_.cabled.end(), cabled.begin(), cabled.end())) Save(nullptr);
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
