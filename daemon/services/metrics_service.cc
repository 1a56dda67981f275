#include "daemon/services/metrics_service.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/release.h"
#include "plan/page/attach.h"
#include "plan/page/page.h"
#include "proto/job_account.h"

namespace r2cc::daemon {
namespace {

constexpr char kSent[] = "sent/", kReceived[] = "received/", kReplayed[] = "replayed/", kFailovers[] = "failovers/",
               kAnswered[] = "answered/";
constexpr char kOther[] = "other";
// Pairs of listener and reason: both are of closed lists.
constexpr size_t kRefusalsMax = 32;

double Seconds(int64_t ns) { return static_cast<double>(ns) / 1e9; }

// REQUIRES: it is not empty.
double Median(std::vector<double>* values) {
  const auto middle = values->begin() + static_cast<ptrdiff_t>(values->size() / 2);
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

const char* StatusLabel(health::NodeStatus status) {
  switch (status) {
    case health::NodeStatus::kHealthy: return "healthy";
    case health::NodeStatus::kDegraded: return "degraded";
    case health::NodeStatus::kUnhealthy: return "unhealthy";
    case health::NodeStatus::kInitializing: return "initializing";
    case health::NodeStatus::kUnreachable: return "unreachable";
  }
  return kOther;
}

}  // namespace

MetricFacts MetricsService::Gather() {
  MetricFacts facts;
  facts.node = parts_.reporter->node();
  facts.release = Release();
  facts.peer_protocol = static_cast<int>(kPeerProtocol);
  facts.attach_version = static_cast<int>(plan::kAttachVersion);
  facts.page_version = static_cast<int>(plan::kPageVersion);
  facts.start_time_s = Seconds(started_ns_);
  AddJobs(&facts);
  AddNics(&facts);
  AddProbes(&facts);
  AddCluster(&facts);
  AddSaved(&facts);
  facts.insecure = parts_.insecure;
  facts.certificate_until_s = static_cast<double>(parts_.certificates->until_s());
  const v1::ConfigState config = parts_.reload->State();
  facts.config_pending = static_cast<uint32_t>(config.needs_restart_size());
  facts.config_refused = static_cast<uint32_t>(config.refused_size());
  facts.alarms = {{"configuration", static_cast<uint32_t>(parts_.reload->Alarms().size())},
                  {"node", static_cast<uint32_t>(parts_.state_alarms->size())},
                  {"plan", static_cast<uint32_t>(parts_.publisher->Alarms().size())},
                  {"rails", 0}};
  for (const RailAlarm& alarm : *parts_.rail_alarms) ++facts.alarms[alarm.kind == RailAlarm::Kind::kFleet ? "fleet" : "rails"];
  if (parts_.refusals != nullptr)
    for (const v1::Refusal& refusal : parts_.refusals->List())
      if (facts.refusals.size() < kRefusalsMax) facts.refusals[{refusal.listener(), refusal.reason()}] = refusal.times();
  facts.job_errors = counters_.job_errors();
  facts.duplicate_nodes = counters_.duplicate_nodes();
  facts.failovers_by_cause = counters_.failovers_by_cause();
  facts.operator_actions = counters_.operator_actions();
  facts.failover_seconds = counters_.failover_seconds();
  if (parts_.turns != nullptr) facts.core_turns = *parts_.turns;
  return facts;
}

void MetricsService::AddSaved(MetricFacts* facts) const {
  const v1::Saved& saved = parts_.report->SavedHere().back();
  SavedFacts& of = facts->saved;
  of.faults_masked = saved.faults_masked();
  of.gpu_low_s = saved.gpu_hours_low() * 3600;
  of.gpu_high_s = saved.gpu_hours_high() * 3600;
  of.alive_s = Seconds(saved.alive_ns());
  of.reduced_s = Seconds(saved.reduced_ns());
  for (const Death death : kDeaths) of.died[DeathName(death)] = 0;
  for (const v1::Saved::Died& died : saved.died()) of.died[died.cause()] = died.jobs();
}

void MetricsService::AddJobs(MetricFacts* facts) {
  const plan::Plan& plan = parts_.publisher->plan();
  std::set<std::string> usable;  // NICs of this node
  for (const plan::PlannedNic& nic : plan.nics)
    if (nic.node == facts->node && nic.weight_permille > 0) usable.insert(nic.nic);
  GrowingSums::Counts traffic, dropped;
  std::map<std::string, JobFacts> jobs;
  parts_.jobs->registry().ForEach([&](JobId id, const v1::Job& job) {
    const std::string source = absl::StrCat(id);
    uint32_t rails_usable = 0;
    for (const v1::RailTotals& rail : job.rails()) {
      if (rail.nic().empty()) continue;
      rails_usable += usable.contains(rail.nic()) ? 1 : 0;
      traffic[kSent + rail.nic()][source] += rail.sent_bytes();
      traffic[kReceived + rail.nic()][source] += rail.received_bytes();
      traffic[kReplayed + rail.nic()][source] += rail.replayed_bytes();
      traffic[kFailovers + rail.nic()][source] += rail.failovers();
    }
    dropped[""][source] = job.evidence_dropped();
    // Invented names make no series.
    const bool known = jobs.contains(job.job()) || jobs.size() < kJobFactsMax;
    JobFacts& of = jobs[known ? job.job() : kOther];
    of.rails_usable = of.processes == 0 ? rails_usable : std::min(of.rails_usable, rails_usable);
    of.rails = std::max(of.rails, static_cast<uint32_t>(job.rails_size()));
    of.faults += static_cast<uint32_t>(job.faults_size()) + job.faults_untold();
    of.waited_s = std::max(of.waited_s, Seconds(parts_.jobs->hangs().WaitedBy(id)));
    ++of.processes;
  });
  for (auto& [name, job] : jobs) {
    job.job = name;
    facts->jobs.push_back(std::move(job));
  }
  traffic_.Update(std::move(traffic));
  dropped_.Update(std::move(dropped));
  facts->evidence_dropped = dropped_.Of("");
  facts->jobs_attached = static_cast<uint32_t>(parts_.jobs->registry().size());
  facts->jobs_of_other_releases = parts_.jobs->registry().OfOtherReleases(Release());
  facts->attach_refused = parts_.jobs->refused();
}

void MetricsService::AddNics(MetricFacts* facts) {
  const health::NodeEntry* const own = parts_.view->Find(facts->node);
  if (own == nullptr) return;
  std::map<std::string, uint16_t> weights;
  for (const plan::PlannedNic& nic : parts_.publisher->plan().nics)
    if (nic.node == facts->node) weights[nic.nic] = nic.weight_permille;
  const Moment now = parts_.reporter->Now();
  for (const health::NicStatus& nic : own->state.nics) {
    const std::string& name = nic.identity.name;
    NicFacts& of = facts->nics.emplace_back();
    of.nic = name;
    const auto port = parts_.rdma_paths->PortOf(name);
    of.device = port.has_value() ? port->device : nic.identity.interface;
    of.port = port.has_value() ? absl::StrCat(port->port) : "1";
    of.interface = nic.identity.interface;
    of.pci = nic.identity.pci;
    of.address = nic.identity.address;
    of.state = health::NicStateName(nic.state);
    of.since_s = Seconds(now.realtime_ns - (now.monotonic_ns - nic.since));
    of.weight = weights[name] / 1000.0;
    of.speed_bytes_per_s = static_cast<double>(nic.rate_bits_per_s) / 8;
    of.link_up = nic.link_up;
    of.drill = nic.drill_failed;
    of.probing = nic.probe_port != 0 && nic.probe_trouble.empty();
    of.flaps = nic.flaps_total;
    of.verdicts = counters_.VerdictsOn(name);
    of.sent_bytes = traffic_.Of(kSent + name);
    of.received_bytes = traffic_.Of(kReceived + name);
    of.replayed_bytes = traffic_.Of(kReplayed + name);
    of.failovers = traffic_.Of(kFailovers + name);
  }
}

void MetricsService::AddProbes(MetricFacts* facts) {
  GrowingSums::Counts probes;
  std::map<std::string, std::vector<double>> loss, round_trips;
  for (const health::RailPairStatus& pair : parts_.rails->Pairs()) {
    const std::string source = absl::StrCat(pair.key.peer.node, "/", pair.key.peer.nic);
    probes[kSent + pair.key.own.nic][source] = pair.measures.sent;
    probes[kAnswered + pair.key.own.nic][source] = pair.measures.answered;
    if (pair.measures.recent > 0) loss[pair.key.own.nic].push_back(static_cast<double>(pair.measures.recent_lost) / pair.measures.recent);
    if (pair.measures.round_trip > 0) round_trips[pair.key.own.nic].push_back(Seconds(pair.measures.round_trip));
  }
  probes_.Update(std::move(probes));
  for (NicFacts& nic : facts->nics) {
    nic.probes = probes_.Of(kSent + nic.nic);
    nic.probes_answered = probes_.Of(kAnswered + nic.nic);
    if (const auto found = loss.find(nic.nic); found != loss.end())
      nic.loss_worst = *std::max_element(found->second.begin(), found->second.end());
    if (const auto found = round_trips.find(nic.nic); found != round_trips.end()) nic.round_trip_s = Median(&found->second);
  }
  const health::RailProbeCounts& counts = parts_.rails->counts();
  facts->probes_sent = counts.sent;
  const RailSockets& sockets = parts_.rails->sockets();
  facts->probes_refused = {{"malformed", counts.malformed},  {"strangers", counts.unknown},      {"forged", counts.forged},
                           {"misrouted", counts.misrouted},  {"unexpected", counts.unexpected},  {"icmp", sockets.icmp_errors()},
                           {"filtered", sockets.filtered()}, {"overflow", sockets.overflowed()}, {"over_rate", sockets.over_rate()}};
}

void MetricsService::AddCluster(MetricFacts* facts) const {
  facts->nodes = {{"healthy", 0}, {"degraded", 0}, {"unhealthy", 0}, {"initializing", 0}, {"unreachable", 0}};
  for (const auto& [node, entry] : parts_.view->nodes()) ++facts->nodes[StatusLabel(parts_.view->StatusOf(entry))];
  for (const v1::PeerStatus& peer : parts_.peer_set->Peers()) ++(peer.connected() ? facts->peers_connected : facts->peers_lost);
  const std::string& store = parts_.peer_set->store_state();
  if (!store.empty()) facts->store_connected = absl::StartsWith(store, "serving") || absl::StartsWith(store, "connected");
  facts->plan_refused = !parts_.publisher->trouble().empty();
  facts->plan_published_s = Seconds(counters_.plan_published_ns());
  facts->plan_entries = parts_.publisher->plan().nics.size();
  facts->plan_entries_max = plan::kPageEntriesMax;
}

}  // namespace r2cc::daemon
