#include "daemon/services/explain_service.h"

#include <algorithm>
#include <deque>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/names.h"
#include "daemon/page/plan_model.h"
#include "daemon/services/fleet_pages.h"
#include "plan/planner.h"
#include "plan/routes.h"

namespace r2cc::daemon {
namespace {

constexpr size_t kEvidenceShown = 32;
constexpr size_t kEventsShown = 16;
constexpr size_t kNamesShown = 4;
// Several intervals of the probes of a pair that no job uses.
constexpr Nanos kAnswersOfLate = 2 * kNanosPerSecond;

std::string Clean(const std::string& text) { return CleanText(text.data(), std::min(text.size(), kNodeNameBytesMax)); }

std::string Names(const std::vector<health::NicKey>& nics) {
  std::string text;
  for (size_t i = 0; i < nics.size() && i < kNamesShown; ++i) absl::StrAppend(&text, i == 0 ? "" : ", ", nics[i].ToString());
  return nics.size() > kNamesShown ? absl::StrCat(text, " and ", nics.size() - kNamesShown, " more") : text;
}

std::string InterfaceOf(const health::NicStatus& status) {
  return status.identity.interface.empty() ? status.identity.name : status.identity.interface;
}

NicVerdict VerdictOfDownLink(const health::NicKey& nic, const health::NicStatus& status, const health::NicKey* cable,
                             const health::NicStatus* far_end) {
  const std::string name = nic.ToString();
  // The text of health/probe/link_probe.cc.
  if (status.reason.starts_with("interface ") && status.reason.ends_with(" is gone"))
    return {
        "port",
        absl::StrCat(name, ": ", nic.node, " has no interface ", InterfaceOf(status), ": it has another name now, or its device is gone"),
        {absl::StrCat("on ", nic.node, ": `ip -br link` lists the interfaces; if it has another name, set nics { interface } and run ",
                      "`r2ccctl config reload`"),
         "if the device is missing: `lspci` and `dmesg`, then the NIC itself"}};
  const std::string look = absl::StrCat("on ", nic.node, ": `ip link show dev ", InterfaceOf(status), "`");
  if (cable == nullptr)
    return {"port",
            absl::StrCat("port of ", name, " (NIC, cable or switch port): the kernel of its node reports: ", status.reason),
            {absl::StrCat(look, "; then the cable and the switch port that it leads to")}};
  const std::string between = absl::StrCat(name, " and ", cable->ToString());
  if (far_end == nullptr)
    return {"cannot-tell",
            absl::StrCat("cable between ", between, ", or the port at one of its ends: nothing is known of the other end"),
            {absl::StrCat("start r2ccd on ", cable->node), look}};
  if (far_end->link_up)
    return {"port",
            absl::StrCat("port of ", name, ": its link is down (", status.reason, ") while ", cable->ToString(), " has a carrier"),
            {look}};
  return {"cable",
          absl::StrCat("cable between ", between, ", or the port at one of its ends: both ends lost their link"),
          {absl::StrCat("check the cable; ", look)}};
}

std::vector<std::string> AdviceFor(const health::NicKey& nic, const health::NicStatus& status, const health::Fault& fault) {
  switch (fault.kind) {
    case health::FaultKind::kPort:
      return {
          absl::StrCat("the link of ", nic.ToString(), " is up at this end, so check the far end first: the switch port's state and VLAN"),
          absl::StrCat("then the cable, then the NIC (on ", nic.node, ": `ip -s link show dev ", InterfaceOf(status), "`)")};
    case health::FaultKind::kPath: return {"both ports work: check the switches, routes and access lists between them"};
    case health::FaultKind::kPeers: return {"nothing here; ask `r2ccctl nic why` of the other end"};
    case health::FaultKind::kCable: return {"check the cable, and the link at both of its ends"};
    case health::FaultKind::kRail: return {"check the switch of this rail"};
    case health::FaultKind::kInconclusive:
      return {LookAtBothEnds(nic, InterfaceOf(status), fault.peers), absl::StrCat("missing: ", fault.missing)};
    case health::FaultKind::kNone: break;
  }
  return {};
}

std::vector<std::string> LargeAdvice(const health::NicKey& nic, const health::LargeFault& large) {
  if (large.fault.kind == health::FaultKind::kPeers) return {"nothing here; ask `r2ccctl nic why` of the other end"};
  const std::string where = large.fault.kind == health::FaultKind::kPort
                                ? absl::StrCat("the MTU of the switch port that ", nic.ToString(), " leads to, then that of its interface")
                                : "the MTU of every switch port, tunnel and interface between the two ends";
  return {absl::StrCat("check ", where, ": packets of ", large.loss.packet_bytes, " bytes have to pass, because both ends have this MTU"),
          absl::StrCat("`r2ccctl doctor` on ", nic.node, " pings with whole packets and shows which paths lose them")};
}

NicVerdict VerdictOfState(const health::NicKey& nic, const health::NicStatus& status) {
  const std::string name = nic.ToString();
  switch (status.state) {
    case health::NicState::kHealthy: return {"none", absl::StrCat("nothing is wrong with ", name), {}};
    case health::NicState::kProving: return {"none", absl::StrCat(name, " works again and is observed: ", status.reason), {}};
    case health::NicState::kDegraded:
      return {"measured",
              absl::StrCat(name, " carries less than its due: ", status.reason),
              {"check the cable and the transceiver, and what the switch port negotiated"}};
    case health::NicState::kSuspect:
      return {"cannot-tell",
              absl::StrCat(name, " is under suspicion: ", status.reason),
              {LookAtBothEnds(nic, InterfaceOf(status), {}), "missing: this daemon's own probes do not confirm it"}};
    case health::NicState::kFailed: return {"cannot-tell", absl::StrCat(name, " failed: ", status.reason), {}};
    case health::NicState::kDrained:
    case health::NicState::kUncabled: break;
  }
  return {"none", status.reason, {}};
}

v1::PairStatus ToProto(const health::RailPairStatus& pair, const Moment& now) {
  v1::PairStatus out;
  out.set_nic(pair.key.own.nic);
  out.set_peer_node(pair.key.peer.node);
  out.set_peer_nic(pair.key.peer.nic);
  out.set_state(health::PairStateName(pair.state));
  out.set_since_ns(now.ToRealtime(pair.since));
  out.set_active(pair.active);
  out.set_sent(pair.measures.sent);
  out.set_answered(pair.measures.answered);
  out.set_recent(pair.measures.recent);
  out.set_recent_lost(pair.measures.recent_lost);
  out.set_round_trip_ns(pair.measures.round_trip);
  out.set_round_trip_last_ns(pair.measures.round_trip_last);
  if (pair.large != health::PairVerdict::kUnknown) out.set_large(pair.large == health::PairVerdict::kSilent ? "lost" : "passes");
  if (pair.measures.last_answer != 0) out.set_last_answer_ns(now.ToRealtime(pair.measures.last_answer));
  return out;
}

}  // namespace

NicVerdict MakeVerdict(const health::NicKey& nic, const health::NicStatus& status, const health::Fault& fault, const health::NicKey* cable,
                       const health::NicStatus* far_end, const health::LargeFault& large) {
  NicVerdict verdict;
  if (status.drill_failed) {
    verdict = {"operator",
               absl::StrCat("a drill: an operator has failed ", nic.ToString()),
               {absl::StrCat("r2ccctl restore-nic ", nic.ToString())}};
  } else if (status.state == health::NicState::kUncabled) {
    verdict = {"none",
               absl::StrCat("nothing is known to be wrong with ", nic.ToString(), ": ", status.reason),
               {absl::StrCat("put a cable in, or leave ", nic.ToString(), " out of the configuration of ", nic.node)}};
  } else if (!status.link_up) {
    verdict = VerdictOfDownLink(nic, status, cable, far_end);
  } else if (fault.kind != health::FaultKind::kNone) {
    verdict = {health::FaultKindName(fault.kind), health::FaultText(nic, fault), AdviceFor(nic, status, fault)};
  } else if (large.fault.kind != health::FaultKind::kNone) {
    verdict = {health::FaultKindName(large.fault.kind), health::LargeFaultText(nic, large.fault, large.loss), LargeAdvice(nic, large)};
  } else {
    verdict = VerdictOfState(nic, status);
  }
  if (status.drained) {
    if (verdict.kind == "none") verdict = {"operator", absl::StrCat(nic.ToString(), " is drained by an operator"), {}};
    verdict.advice.push_back(absl::StrCat("r2ccctl nic undrain ", nic.ToString()));
  }
  for (const std::string& job : status.drained_jobs)
    verdict.advice.push_back(absl::StrCat("an operator keeps job ", job, " off it: r2ccctl nic undrain ", nic.ToString(), " --job ", job));
  return verdict;
}

NicVerdict MakeVerdictFromAfar(const health::NicKey& nic, const std::vector<health::NicKey>& answers,
                               const std::vector<health::NicKey>& silent, const std::vector<health::NicKey>& others) {
  const std::string name = nic.ToString();
  if (!answers.empty())
    return {"cannot-tell",
            absl::StrCat(name, " answers the rail probes of ", Names(answers), ", so it works; only its daemon cannot be asked"),
            {absl::StrCat("missing: the daemon of ", nic.node)}};
  if (silent.empty())
    return {"cannot-tell",
            absl::StrCat("the daemon of ", nic.node, " cannot be asked, and no rail of this node leads to ", name),
            {absl::StrCat("missing: a node that probes ", name)}};
  const std::string elsewhere = others.empty() ? ", or this rail"
                                               : absl::StrCat("; not the rail of ", Names(silent), ", where ", Names(others),
                                                              others.size() == 1 ? " answers" : " answer");
  return {"cannot-tell",
          absl::StrCat("neither ", name, " nor the daemon of ", nic.node, " answers: the node or its NIC", elsewhere),
          {absl::StrCat("missing: a path to ", nic.node, " in addition to this rail (a management network, or a second rail)")}};
}

absl::Status ExplainService::CheckTarget(const std::string& node, const Caller& caller) const {
  const std::string& own = parts_.reporter->node();
  if (node == own) return absl::OkStatus();
  if (caller.forwarded())
    return absl::FailedPreconditionError(absl::StrCat("this is node ", own, ", not ", Clean(node),
                                                      ": correct the peer addresses in the configuration of the daemon that was asked"));
  if (parts_.view->Find(node) == nullptr && !parts_.peer_set->IsPeer(node)) return parts_.operators->UnknownNode(node);
  return absl::UnavailableError("");
}

void ExplainService::ExplainNic(const v1::ExplainNicRequest& request, const Caller& caller, Answer<v1::ExplainNicReply> answer) const {
  const absl::Status who = CheckTarget(request.node(), caller);
  if (absl::IsUnavailable(who)) {
    const health::NicKey nic = {request.node(), request.nic()};
    v1::ExplainNicRequest forwarded = request;
    *forwarded.mutable_asker() = ToAsker(caller, parts_.reporter->node());
    const Answer<v1::ExplainNicReply> or_from_afar = [this, nic, answer](absl::StatusOr<v1::ExplainNicReply> reply) {
      const health::NicStatus* status = absl::IsUnavailable(reply.status()) ? parts_.view->Find(nic) : nullptr;
      answer(status == nullptr ? std::move(reply) : ExplainFromAfar(nic, *status, std::string(reply.status().message())));
    };
    const absl::StatusOr<PeerSpec> peer = parts_.peer_set->FindSpec(nic.node);
    if (!peer.ok()) return or_from_afar(peer.status());
    return parts_.peers->ExplainNic(*peer, forwarded, or_from_afar);
  }
  if (!who.ok()) return answer(who);
  // So that the verdict and the state that follows from it are shown together.
  parts_.rails->Judge();
  const health::NicStatus* status = parts_.local->health().Snapshot().Find(request.nic());
  if (status == nullptr) return answer(parts_.operators->UnknownNic(request.nic()));
  answer(Explain(*status, request.job()));
}

v1::ExplainNicReply ExplainService::ExplainFromAfar(const health::NicKey& nic, const health::NicStatus& status,
                                                    const std::string& why) const {
  const Nanos now = parts_.reporter->Now().monotonic_ns;
  const std::vector<health::RailPairStatus> pairs = parts_.rails->Pairs();
  const auto answers_now = [&](const health::RailPairStatus& pair) {
    return pair.measures.last_answer != 0 && now - pair.measures.last_answer < kAnswersOfLate;
  };
  std::vector<health::NicKey> answers, silent, others;
  for (const auto& pair : pairs)
    if (pair.key.peer == nic) (answers_now(pair) ? answers : silent).push_back(pair.key.own);
  for (const auto& pair : pairs)
    if (pair.key.peer.node != nic.node && answers_now(pair) && std::find(silent.begin(), silent.end(), pair.key.own) != silent.end())
      others.push_back(pair.key.peer);
  NicVerdict verdict = MakeVerdictFromAfar(nic, answers, silent, others);
  verdict.advice.push_back(absl::StrCat("this is its last known state; ", why));
  return Reply(nic, status, verdict);
}

v1::ExplainNicReply ExplainService::Explain(const health::NicStatus& status, const std::string& job) const {
  const health::NicKey nic = {parts_.reporter->node(), status.identity.name};
  const health::NicKey* cable = parts_.rails->CableTo(nic.nic);
  const NicVerdict verdict = MakeVerdict(nic, status, parts_.rails->Verdict(nic.nic), cable,
                                         cable == nullptr ? nullptr : parts_.view->Find(*cable), parts_.rails->LargeVerdict(nic.nic));
  v1::ExplainNicReply reply = Reply(nic, status, verdict);
  for (const RailAlarm& alarm : parts_.rails->Alarms())
    if (alarm.kind != RailAlarm::Kind::kSuspect && (alarm.nic.empty() || alarm.nic == nic.nic)) reply.add_advice(alarm.text);
  AddPairs([&](const health::PairKey& key) { return key.own == nic; }, reply.mutable_pairs());
  if (parts_.inventory) *reply.mutable_inventory() = parts_.inventory(status.identity);
  if (parts_.traffic) *reply.mutable_traffic() = parts_.traffic(nic.nic, job);
  return reply;
}

v1::ExplainNicReply ExplainService::Reply(const health::NicKey& nic, const health::NicStatus& status, const NicVerdict& verdict) const {
  const Moment now = parts_.reporter->Now();
  v1::ExplainNicReply reply;
  reply.set_node(nic.node);
  *reply.mutable_nic() = daemon::ToProto(status, now);
  reply.set_verdict(verdict.kind);
  reply.set_verdict_text(verdict.text);
  for (const std::string& advice : verdict.advice) reply.add_advice(advice);
  plan::Plan one;
  for (const plan::PlannedNic& planned : parts_.publisher->plan().nics)
    if (planned.node == nic.node && planned.nic == nic.nic) one.nics.push_back(planned);
  if (!one.nics.empty()) *reply.mutable_planned() = daemon::ToProto(one).nics(0);
  for (const health::EvidenceEntry& entry : parts_.local->health().log().About(nic, kEvidenceShown)) {
    auto* shown = reply.add_evidence();
    shown->set_first_ns(now.ToRealtime(entry.first_when));
    shown->set_last_ns(now.ToRealtime(entry.evidence.when));
    shown->set_times(entry.times);
    shown->set_observer(entry.evidence.observer);
    shown->set_kind(health::EvidenceKindName(entry.evidence.kind));
    shown->set_value(entry.evidence.value);
    if (!entry.evidence.peer.nic.empty()) shown->set_peer(entry.evidence.peer.ToString());
    shown->set_detail(entry.evidence.detail);
  }
  std::deque<v1::Event> done;
  for (auto event = parts_.events->After(0); event.has_value(); event = parts_.events->After(event->sequence())) {
    if (event->node() != nic.node || event->nic() != nic.nic) continue;
    done.push_front(*event);
    if (done.size() > kEventsShown) done.pop_back();
  }
  for (v1::Event& event : done) *reply.add_done() = std::move(event);
  return reply;
}

void ExplainService::AddPairs(const std::function<bool(const health::PairKey&)>& wanted,
                              google::protobuf::RepeatedPtrField<v1::PairStatus>* out) const {
  const Moment now = parts_.reporter->Now();
  for (const health::RailPairStatus& pair : parts_.rails->Pairs())
    if (wanted(pair.key)) *out->Add() = ToProto(pair, now);
}

void ExplainService::ProbePaths(const v1::ProbePathsRequest& request, const Caller& caller, Answer<v1::ProbePathsReply> answer) const {
  const absl::Status who = CheckTarget(request.node(), caller);
  if (absl::IsUnavailable(who)) {
    v1::ProbePathsRequest forwarded = request;
    *forwarded.mutable_asker() = ToAsker(caller, parts_.reporter->node());
    const absl::StatusOr<PeerSpec> peer = parts_.peer_set->FindSpec(request.node());
    if (!peer.ok()) return answer(peer.status());
    return parts_.peers->ProbePaths(*peer, forwarded, std::move(answer));
  }
  if (!who.ok()) return answer(who);
  if (request.peer() == request.node())
    return answer(absl::InvalidArgumentError(absl::StrCat("rails are probed between two nodes; ", Clean(request.peer()), " is one")));
  if (!request.peer().empty() && parts_.view->Find(request.peer()) == nullptr && !parts_.peer_set->IsPeer(request.peer()))
    return answer(parts_.operators->UnknownNode(request.peer()));
  v1::ProbePathsReply reply;
  reply.set_node(request.node());
  reply.set_peer(request.peer());
  AddPairs([&](const health::PairKey& key) { return request.peer().empty() || key.peer.node == request.peer(); }, reply.mutable_pairs());
  answer(std::move(reply));
}

v1::ExplainPlanReply ExplainService::ExplainPlan(const std::string& after_node) const {
  v1::ExplainPlanReply reply;
  const plan::Plan& plan = parts_.publisher->plan();
  *reply.mutable_epoch() = daemon::ToProto(plan.epoch);
  reply.set_trouble(parts_.publisher->trouble());
  const plan::ClusterModel model = ToModel(*parts_.view);
  std::map<std::string_view, const plan::NodeModel*> nodes;
  for (const plan::NodeModel& node : model.nodes) nodes[node.name] = &node;
  const v1::Plan shown = daemon::ToProto(PlanPage(plan, after_node, reply.mutable_next_after()));
  for (const v1::PlannedNic& planned : shown.nics()) {
    auto* reason = reply.add_reasons();
    *reason->mutable_planned() = planned;
    const auto node = nodes.find(planned.node());
    if (node == nodes.end()) continue;
    for (const plan::NicModel& nic : node->second->nics)
      if (nic.name == planned.nic()) reason->set_reason(plan::WeightReason(*node->second, nic));
    // A fault that takes nothing of its weight: some of its paths may be forbidden.
    const health::NicStatus* const status = parts_.view->Find(health::NicKey{planned.node(), planned.nic()});
    if (status != nullptr && status->state == health::NicState::kDegraded)
      reason->set_reason(absl::StrCat(reason->reason(), "; ", status->reason));
  }
  if (!after_node.empty()) return reply;
  std::vector<plan::PlannedNic> own;
  std::copy_if(plan.nics.begin(), plan.nics.end(), std::back_inserter(own),
               [&](const plan::PlannedNic& nic) { return nic.node == parts_.reporter->node(); });
  const std::vector<plan::GpuModel> gpus = ToGpuModels(topology_, parts_.local->health().Snapshot(), own);
  const std::vector<plan::GpuRoute> routes = plan::MakeRoutes(gpus, own);
  if (const std::string wrong = plan::CheckRoutes(routes, gpus, own); !wrong.empty()) {
    reply.set_trouble(wrong);
    return reply;
  }
  for (const plan::GpuRoute& route : routes) {
    auto* out = reply.add_routes();
    out->set_gpu_pci(route.gpu);
    for (const plan::GpuHop& hop : route.chain) {
      auto* step = out->add_chain();
      step->set_nic(hop.nic);
      step->set_distance(hop.distance == plan::kDistanceUnknown ? "unknown"
                                                                : PcieDistanceName(static_cast<health::PcieDistance>(hop.distance)));
      step->set_weight_permille(hop.weight_permille);
    }
  }
  return reply;
}

}  // namespace r2cc::daemon
