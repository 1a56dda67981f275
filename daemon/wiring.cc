#include "daemon/wiring.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/core/release.h"
#include "base/log.h"
#include "daemon/reload/config_change.h"

namespace r2cc::daemon {
namespace {

constexpr Nanos kOwnEntryInterval = 2 * kNanosPerSecond;
// As often as /sys is read: a rail that was renumbered is pinged again about as soon as the plugin uses it.
constexpr Nanos kFollowInterval = kNanosPerSecond;
constexpr Nanos kRailAlarmInterval = kNanosPerSecond;

}  // namespace

Wiring::Wiring(Config config, World world)
    : config_(std::move(config)),
      nics_(config_.nics),
      world_(std::move(world)),
      peer_address_(config_.listen),
      events_(world_.events_max),
      reporter_(&events_, config_.node, world_.core, world_.realtime_ns),
      kept_(world_, config_, &reporter_, &alarms_),
      configured_(world_, config_, &reporter_, &alarms_, &kept_.audit, ConfiguredOutputs()),
      cluster_(config_.node),
      probes_(world_, config_, kept_.operator_settings, kept_.saved.cabled, &cluster_, &reporter_, ProbeOutputs()),
      peer_set_(config_, world_.incarnation, &cluster_, &reporter_, PeerOutputs()),
      publisher_(world_.page, world_.jobs, &reporter_),
      jobs_(&reporter_, world_.netns_inode, JobOutputs()),
      services_({.world = &world_,
                 .config = &config_,
                 .alive = alive_,
                 .peer_address = &peer_address_,
                 .events = &events_,
                 .broadcaster = &broadcaster_,
                 .reporter = &reporter_,
                 .alarms = &alarms_,
                 .kept = &kept_,
                 .configured = &configured_,
                 .view = &cluster_,
                 .probes = &probes_,
                 .peer_set = &peer_set_,
                 .publisher = &publisher_,
                 .jobs = &jobs_}) {
  pace_.epoch = {world_.incarnation, 0};
}

ConfiguredParts::Outputs Wiring::ConfiguredOutputs() {
  return {.apply = [this](const Config& next, const RolePolicy& roles) { Apply(next, roles); },
          .now_s = [this] { return reporter_.Now().realtime_ns / kNanosPerSecond; },
          .set_certificate_alarm = [this](const std::string& alarm) { alarms_.Set("certificates", alarm); }};
}

ProbeParts::Outputs Wiring::ProbeOutputs() {
  return {.on_state = [this] { ScheduleAdvance(); },
          .on_drill_end = [this](const std::string& nic) { services_.operators.OnDrillEnd(nic); },
          .on_sample = [this] { FollowAddresses(); }};
}

PeerSet::Outputs Wiring::PeerOutputs() {
  return {.evidence = [this](const std::vector<health::Evidence>& evidence) { probes_.local.Handle(evidence); },
          .on_view = [this] { ScheduleAdvance(); },
          .on_message = [this](const std::string& node) { probes_.rails.NoteAlive(node); },
          .on_own_entry_lost = [this] { PublishAgain(); }};
}

JobService::Outputs Wiring::JobOutputs() {
  return {.nics = [this] { return probes_.local.Matchable(); },
          .evidence = [this](const std::vector<health::Evidence>& evidence) { probes_.local.Handle(evidence); },
          .refused = [this] { return world_.jobs->refused(); },
          .look = [this](const std::string& nic, const health::NicKey& peer) { probes_.rails.Suspect(nic, peer); },
          .taken =
              [this](const health::NicKey& nic) {
                const health::NicStatus* const status = cluster_.Find(nic);
                return status != nullptr && status->on_purpose();
              }};
}

Wiring::~Wiring() { Stop(); }

// With the samples of /sys: a wake-up for this alone would cost more than the question.
void Wiring::FollowAddresses() {
  if (world_.core->Now() - pace_.addresses_followed < kFollowInterval) return;
  pace_.addresses_followed = world_.core->Now();
  const auto news = ChangedAddresses(nics_, probes_.local.health().Snapshot(), world_.addresses->ByInterface());
  for (const auto& [nic, address] : news) {
    v1::Event event = reporter_.New("nic-address", absl::StrCat("it has another address: ", address));
    event.set_nic(nic);
    reporter_.Report(std::move(event));
    probes_.SetAddress(nic, address);
  }
}

absl::Status Wiring::Start() {
  if (!kept_.loaded.ok()) return kept_.loaded.status();
  RestoreFormerRuns();
  if (world_.refusals != nullptr)
    world_.refusals->Subscribe([this, alive = alive_, core = world_.core](const Refusals::Line& line) {
      // The handler of a request audits the refusal of a known caller.
      if (line.reason == "role") return;
      core->Post([this, alive, line] {
        if (*alive) kept_.audit.AddRefused({line.listener, line.reason, line.who, line.what, line.times});
      });
    });
  reporter_.Report("daemon-started", absl::StrCat("r2ccd ", Release(), " on node ", config_.node, " with ", config_.nics.size(),
                                                  " NICs and ", config_.peers.size(), " peers; ",
                                                  kept_.first_start ? "it has no files of an earlier run"
                                                  : kept_.same_boot ? "it ran before in this boot"
                                                                    : "the machine was rebooted"));
  if (config_.nics.empty()) LogWarning("this node has no NICs: name them in the configuration", {{"node", config_.node}});
  for (const std::string& nic : kept_.ended_drills) services_.operators.ReportEndedBefore(nic);
  services_.operators.Save(nullptr);
  ReadTopology();
  if (auto status = probes_.local.Start(); !status.ok()) return status;
  probes_.rdma.Start();
  Advance();
  if (auto status = world_.jobs->Start(jobs_.Callbacks()); !status.ok()) return status;
  OfferRails(config_.nics_by_default);
  world_.peers->Start(&broadcaster_, peer_set_.PeerCallbacks());
  FollowJobs();
  world_.store->Start(config_.nodes_prefix(), peer_set_.StoreCallbacks());

  Every(plan::kPageHeartbeatInterval, [this] {
    world_.page->Heartbeat(world_.core->Now());
    peer_set_.Tick();
    world_.jobs->DrainRings();
    jobs_.Tick();
    FollowJobs();
    FollowReleases();
    if (const auto come = configured_.missing.Look(nics_, probes_.local.health().Snapshot(), config_.parts, world_.core->Now()))
      FollowNics(*come);
    KeepJobs();
    ScheduleAdvance();
  });
  Every(kRailAlarmInterval, [this] { FollowRailAlarms(); });
  Every(kDrillSaveInterval, [this] { services_.operators.Tick(); });
  configured_.missing.SetLackingGlobs(config_.lacking_globs);
  configured_.certificates.Look();
  Every(CertificateWatch::kInterval, [this] { configured_.certificates.Look(); });
  Every(kKeepAliveInterval, [this] {
    v1::NodeView view = *broadcaster_.Get();
    view.set_clock_ns(reporter_.Now().realtime_ns);
    broadcaster_.Set(std::move(view));
  });
  return absl::OkStatus();
}

void Wiring::FollowJobs() {
  std::vector<PeerSpec> peers = peer_set_.DirectPeers(jobs_.registry().peers());
  probes_.rails.SetJobPeers(jobs_.registry().peers());
  publisher_.SetJobPeers(jobs_.registry().peers());
  if (std::exchange(pace_.direct_peers, peers) != peers) world_.peers->SetPeers(peers);
}

void Wiring::FollowReleases() {
  const uint32_t others = jobs_.registry().OfOtherReleases(Release());
  if (std::exchange(pace_.other_releases, others) != others) PublishNewEpoch();
}

void Wiring::Reload(const Caller& caller, std::function<void()> done) {
  configured_.reload.Reload(caller, absl::OkStatus(), [done = std::move(done)](const absl::StatusOr<v1::ReloadReply>& reply) {
    if (!reply.ok()) LogError(absl::StrCat("the configuration was refused, and the one before is in force: ", reply.status().message()));
    done();
  });
}

void Wiring::Apply(const Config& config, const RolePolicy& roles) {
  configured_.roles.Set(roles);
  SetMinSeverity(config.log_level.value_or(Severity::kInfo));
  configured_.missing.SetLackingGlobs(config.lacking_globs);
  FollowNics(config.nics);
  OfferRails(config.nics_by_default);
  world_.jobs->SetAccess(config.attach);
  peer_set_.SetLimits(config);
  peer_set_.SetConfigured(config.peers);
  FollowJobs();
}

void Wiring::FollowNics(const std::vector<NicSpec>& next) {
  const auto among = [](const std::vector<NicSpec>& nics, const NicSpec& nic) {
    return std::any_of(nics.begin(), nics.end(), [&](const NicSpec& one) { return SameNic(one, nic); });
  };
  const std::vector<NicSpec> before = std::exchange(nics_, next);
  if (!std::all_of(before.begin(), before.end(), [&](const NicSpec& nic) { return among(nics_, nic); })) services_.operators.Save(nullptr);
  for (const NicSpec& nic : before) {
    if (among(nics_, nic)) continue;
    probes_.Remove(nic.name);
  }
  const std::vector<health::NicIdentity> identities = IdentitiesOf(nics_, world_.addresses->ByInterface());
  for (size_t i = 0; i < nics_.size(); ++i) {
    if (among(before, nics_[i])) {
      probes_.local.SetRate(nics_[i].name, nics_[i].rate_bits_per_s);
      continue;
    }
    probes_.Add(identities[i], services_.operators.SettingOf(identities[i].name), services_.operators.WasCabled(identities[i].name));
  }
}

void Wiring::ReadTopology() {
  world_.disk->Post([this, alive = alive_, source = world_.topology, core = world_.core] {
    auto topology = source->Read();
    core->Post([this, alive, topology = std::move(topology)]() mutable {
      if (!*alive) return;
      if (topology.ok()) return services_.explain.SetTopology(*std::move(topology));
      LogWarning("which GPU is near which NIC is not known", {{"reason", std::string(topology.status().message())}});
    });
  });
}

void Wiring::Stop() {
  if (!std::exchange(*alive_, false)) return;
  if (world_.refusals != nullptr) world_.refusals->Subscribe(nullptr);
  probes_.rails.Stop();
  world_.jobs->DrainRings();
  kept_.jobs.Save(jobs_.registry().ToKeep(reporter_.Now().realtime_ns));
  reporter_.Flush();
  kept_.history.End();
  kept_.audit.End();
  world_.jobs->Stop();
  world_.peers->Stop();
  world_.store->Stop();
}

void Wiring::Every(Nanos interval, std::function<void()> task) {
  world_.core->RunAfter(world_.core->UntilNext(interval), [this, alive = alive_, interval, task = std::move(task)]() mutable {
    if (!*alive) return;
    task();
    Every(interval, std::move(task));
  });
}

void Wiring::ScheduleAdvance() {
  if (std::exchange(pace_.advance_scheduled, true)) return;
  world_.core->Post([this, alive = alive_] {
    if (*alive) Advance();
  });
}

void Wiring::Advance() {
  pace_.advance_scheduled = false;
  services_.operators.KeepCabled();
  const Nanos now = world_.core->Now();
  const bool changed = UpdateOwn(now);
  // Jobs first: the page is what moves bytes.
  UpdatePlan(now);
  if (changed) PublishOwnView();
}

bool Wiring::UpdateOwn(Nanos now) {
  const health::NodeState& verdicts = probes_.local.health().Snapshot();
  for (const health::NicStatus& nic : verdicts.nics) {
    probes_.rails.SetLink(nic.identity.name, nic.link_up);
    probes_.rails.SetMtu(nic.identity.name, nic.mtu);
  }
  if (std::exchange(pace_.railed_changes, cluster_.changes()) != cluster_.changes()) probes_.rails.OnView();
  health::NodeState own = health::WithRails(verdicts, probes_.rails.Report());
  own.rdma_ends = probes_.rdma_paths.Report();
  own.epoch = pace_.own.epoch;
  if (own == pace_.own) return false;
  if (const Nanos when = pace_.pacer.PublishAt(pace_.own, own, probes_.rails.Inconclusive()); when > now) {
    AdvanceAt(when);
    return false;
  }
  own.epoch = NextEpoch();
  pace_.own = std::move(own);
  pace_.pacer.Published(now);
  cluster_.SetOwn(pace_.own, now);
  return true;
}

void Wiring::UpdatePlan(Nanos now) {
  if (cluster_.revision() == publisher_.revision()) return;
  // A change of the own node does not wait: only this daemon informs its jobs.
  const health::NodeEntry* const own = cluster_.Find(config_.node);
  const bool own_changed = own != nullptr && own->revision > publisher_.revision();
  if (const Nanos when = pace_.pacer.PlanAt(cluster_.nodes().size()); when > now && !own_changed) return AdvanceAt(when);
  if (publisher_.Update(cluster_, [this] { return NextEpoch(); })) pace_.pacer.Planned(now);
}

void Wiring::AdvanceAt(Nanos when) {
  if (!pace_.pacer.Wait(when)) return;
  world_.core->RunAfter(when - world_.core->Now(), [this, alive = alive_, when] {
    if (*alive && pace_.pacer.Rang(when)) Advance();
  });
}

void Wiring::PublishOwnView() {
  v1::NodeView view = ToProto(pace_.own, pace_.own.status, reporter_.Now());
  view.set_peer_address(peer_address_);
  view.set_release(Release());
  view.set_protocol(kPeerProtocolLeast);
  view.set_protocol_newest(kPeerProtocol);
  view.set_jobs_of_other_releases(pace_.other_releases);
  peer_set_.SetOwn(view);
  const std::string value = view.SerializeAsString();
  view.set_clock_ns(reporter_.Now().realtime_ns);
  broadcaster_.Set(std::move(view));
  world_.store->Put(config_.nodes_prefix() + config_.node, value, kNodeLeaseMs);
}

void Wiring::PublishAgain() {
  if (std::exchange(pace_.again_scheduled, true)) return;
  // If two daemons have one name, each does so: not as fast as the store turns.
  world_.core->RunAfter(kOwnEntryInterval, [this, alive = alive_] {
    if (!*alive) return;
    pace_.again_scheduled = false;
    PublishOwnView();
  });
}

void Wiring::SetPeerAddress(const std::string& address) {
  // Rail probes come to the same number as peers do, so that one number is to be opened in a firewall.
  if (const auto parsed = ParseHostPort(address, /*allow_port_zero=*/true); parsed.ok()) probes_.rails.Start(parsed->port);
  if (std::exchange(peer_address_, address) != address) PublishNewEpoch();
}

void Wiring::PublishNewEpoch() {
  pace_.own.epoch = NextEpoch();
  cluster_.SetOwn(pace_.own, world_.core->Now());
  PublishOwnView();
}

std::string Wiring::StatusLine() const {
  std::string ill;
  for (const health::NicStatus& nic : pace_.own.nics)
    if (nic.state != health::NicState::kHealthy && nic.state != health::NicState::kUncabled)
      absl::StrAppend(&ill, ill.empty() ? " (" : ", ", nic.identity.name, " ", health::NicStateName(nic.state));
  const std::vector<v1::PeerStatus> peers = peer_set_.Peers();
  const auto connected = std::count_if(peers.begin(), peers.end(), [](const v1::PeerStatus& peer) { return peer.connected(); });
  // An operator looks first at the service manager's status after a reload.
  std::vector<std::string> alarms = configured_.reload.Alarms();
  for (const auto& [about, alarm] : alarms_.named) alarms.push_back(alarm);
  return absl::StrCat(alarms.empty() ? "" : alarms.front() + "; ", "node ", config_.node, ": ", pace_.own.nics.size(), " NICs", ill,
                      ill.empty() ? "" : ")", "; ", connected, " of ", peers.size(), " peers connected; ", jobs_.registry().size(),
                      " jobs; plan ", publisher_.plan().epoch.counter);
}

Epoch Wiring::NextEpoch() {
  ++pace_.epoch.counter;
  return pace_.epoch;
}

}  // namespace r2cc::daemon
