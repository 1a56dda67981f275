#include "daemon/wiring.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "base/core/release.h"
#include "base/log.h"
#include "daemon/nics/nic_inventory.h"
#include "daemon/nics/port_claims.h"
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
      reporter_(&events_, config_.node, world_.core, world_.realtime_ns),
      keeper_(world_.files, world_.disk, world_.core, config_.state_file(), OnTurnOf(config_.state_file(), "the operator's words")),
      audit_(world_.files, world_.disk, world_.core, config_.audit_file(), &reporter_, OnTurnOf(config_.audit_file(), "the audit")),
      missing_(world_.addresses, &state_alarms_),
      certificates_({world_.core, world_.disk, world_.config, [this] { return reporter_.Now().realtime_ns / kNanosPerSecond; },
                     [this](const std::string& alarm) { SetAlarm("certificates", alarm); }},
                    config_),
      history_(world_.files, world_.disk, world_.core, config_.state_dir + "/events.log",
               OnTurnOf(config_.state_dir + "/events.log", "the history of events")),
      job_keeper_(world_.files, world_.disk, world_.core, config_.state_dir + "/jobs",
                  OnTurnOf(config_.state_dir + "/jobs", "what jobs met")),
      roles_(world_.roles),
      reload_({world_.core, world_.disk, world_.config, &reporter_, &audit_,
               [this](const Config& next, const RolePolicy& roles) { Apply(next, roles); }},
              config_),
      loaded_(keeper_.Load(&state_trouble_)),
      saved_(loaded_.ok() ? *loaded_ : SavedState()),
      words_(Resume(saved_, BootNow(), &ended_drills_)),
      first_start_(saved_.boot_id.empty()),
      same_boot_(saved_.boot_id == world_.boot_id),
      epoch_{world_.incarnation, 0},
      cluster_(config_.node),
      local_(config_.node, IdentitiesOf(nics_, world_.addresses->ByInterface()), words_, saved_.cabled,
             {world_.core, world_.links, world_.sysfs, world_.addresses}, &reporter_,
             {[this] { ScheduleAdvance(); }, [this](const std::string& nic) { rails_.Suspect(nic); },
              [this](const std::string& nic) { operator_.OnDrillEnd(nic); },
              [this](const std::string& nic, const health::PortFacts& facts) {
                fabric_.OnFacts(nic, facts);
                rdma_.OnFacts(nic, facts);
                FollowAddresses();
              }}),
      fabric_(config_.node, world_.fabric, world_.core, [this](uint64_t port_guid) { return NicOfPort(cluster_, config_.node, port_guid); },
              {[this](const health::Evidence& evidence) { local_.Handle(evidence); },
               [this](const health::NicKey& nic, const std::string& text) { reporter_.TellFabric(nic, text); }}),
      rdma_(config_.node, IdentitiesOf(nics_, world_.addresses->ByInterface()), world_.rdma, world_.core,
            {[this](const health::Evidence& evidence) { local_.Handle(evidence); }, [this](const std::string& nic) { local_.Look(nic); },
             [this](const std::string& nic, const std::optional<health::RdmaPortName>& port) {
               rdma_paths_.SetPort(nic, port, world_.core->Now());
             }}),
      rdma_paths_(config_.node, world_.rdma_pairs, &cluster_, world_.incarnation,
                  {[this](const std::string& nic, const std::string& why) { rdma_.SetFault(nic, why); }, [this] { ScheduleAdvance(); }}),
      rails_(config_.node, IdentitiesOf(nics_, world_.addresses->ByInterface()), world_.new_probe_secret, Cables(), &cluster_,
             {world_.core, world_.datagrams},
             {[this](const health::Evidence& evidence) { local_.Handle(evidence); }, [this] { ScheduleAdvance(); },
              [this](const health::RailPing& ping) { rdma_paths_.OnPing(ping, world_.core->Now()); },
              [this](const std::vector<health::RailTarget>& targets) { rdma_paths_.SetTargets(targets, world_.core->Now()); }}),
      peer_set_(config_, world_.incarnation, &cluster_, &reporter_,
                {[this](const std::vector<health::Evidence>& evidence) { local_.Handle(evidence); }, [this] { ScheduleAdvance(); },
                 [this](const std::string& node) { rails_.Heard(node); }, [this] { PublishAgain(); }}),
      publisher_(world_.page, world_.jobs, &reporter_),
      jobs_(&reporter_, world_.netns_inode,
            {[this] { return local_.Matchable(); }, [this](const std::vector<health::Evidence>& evidence) { local_.Handle(evidence); },
             [this] { return world_.jobs->refused(); },
             [this](const std::string& nic, const health::NicKey& peer) { rails_.Suspect(nic, peer); }}),
      operator_({world_.core, &local_, &cluster_, &peer_set_, world_.peers, &keeper_, &audit_, &reporter_,
                 [this](const std::string& nic, const std::string& job) { return jobs_.JobsOn(nic, job); }, [this] { return BootNow(); }},
                words_, saved_.cabled),
      forget_({world_.core, &cluster_, &peer_set_, world_.peers, &audit_, &reporter_,
               [this](const std::string& node) { return operator_.UnknownNode(node); }}),
      report_({world_.core, &jobs_.registry(), &peer_set_, world_.peers, &reporter_, &cluster_}),
      explain_({&local_, &rails_, &cluster_, &peer_set_, &operator_, &publisher_, &events_, &reporter_, world_.peers,
                [this](const std::string& nic, const std::string& job) { return jobs_.TrafficOn(nic, job); },
                [this](const health::NicIdentity& nic) {
                  const auto port = rdma_paths_.PortOf(nic.name);
                  return InventoryOf(*world_.sysfs, nic.interface, port.has_value() ? port->device : "", nic.pci);
                }}),
      metrics_({&cluster_, &reporter_, &peer_set_, &publisher_, &jobs_, &rails_, &rdma_paths_, &reload_, &certificates_, world_.refusals,
                world_.turns, config_.insecure, &state_alarms_, &rail_alarms_, &report_}),
      backend_(config_.node, {world_.core, &cluster_,       &reporter_,       &peer_set_,     &publisher_,    &jobs_,   &operator_,
                              &forget_,    &report_,        &explain_,        &reload_,       &peer_address_, &events_, &broadcaster_,
                              &roles_,     world_.refusals, config_.insecure, &state_alarms_, &rail_alarms_,  &metrics_},
               alive_) {}

Wiring::~Wiring() { Stop(); }

// With the samples of /sys: a wake-up for this alone would cost more than the question.
void Wiring::FollowAddresses() {
  if (world_.core->Now() - followed_ < kFollowInterval) return;
  followed_ = world_.core->Now();
  const auto news = ChangedAddresses(nics_, local_.health().Snapshot(), world_.addresses->ByInterface());
  for (const auto& [nic, address] : news) {
    v1::Event event = reporter_.New("nic-address", absl::StrCat("it has another address: ", address));
    event.set_nic(nic);
    reporter_.Tell(std::move(event));
    rails_.SetAddress(nic, address);
    local_.SetAddress(nic, address);
  }
}

std::map<std::string, health::NicKey> Wiring::Cables() const {
  std::map<std::string, health::NicKey> cables;
  for (const NicSpec& nic : config_.nics)
    if (!nic.cable_node.empty()) cables[nic.name] = {nic.cable_node, nic.cable_nic};
  return cables;
}

std::function<void(const absl::Status&)> Wiring::OnTurnOf(const std::string& file, const std::string& what) {
  return [this, file, what](const absl::Status& status) {
    if (status.ok()) {
      state_alarms_.erase(file);
      return reporter_.Tell("state", absl::StrCat(file, " can be written again: ", what, " is kept"));
    }
    const std::string alarm = absl::StrCat(what, " will be lost at a restart: ", status.message());
    state_alarms_[file] = alarm;
    LogError(alarm);
    reporter_.Tell("state", alarm);
  };
}

void Wiring::SetAlarm(const std::string& about, const std::string& alarm) {
  if (alarm.empty())
    state_alarms_.erase(about);
  else
    state_alarms_[about] = alarm;
}

absl::Status Wiring::Start() {
  if (!loaded_.ok()) return loaded_.status();
  RestoreFormerLives();
  if (world_.refusals != nullptr)
    world_.refusals->Tell([this, alive = alive_, core = world_.core](const Refusals::Line& line) {
      // What a known person may not do is written where he asked for it.
      if (line.reason == "role") return;
      core->Post([this, alive, line] {
        if (*alive) audit_.AddStranger({line.listener, line.reason, line.who, line.what, line.times});
      });
    });
  reporter_.Tell("daemon-started", absl::StrCat("r2ccd ", Release(), " on node ", config_.node, " with ", config_.nics.size(), " NICs and ",
                                                config_.peers.size(), " peers; ",
                                                first_start_ ? "nothing is kept of a former life"
                                                : same_boot_ ? "it ran before in this boot"
                                                             : "the machine was started anew"));
  if (config_.nics.empty()) LogWarning("this node has no NICs: name them in the configuration", {{"node", config_.node}});
  for (const std::string& nic : ended_drills_) operator_.TellEndedBefore(nic);
  operator_.Save(nullptr);
  ReadTopology();
  if (auto status = local_.Start(); !status.ok()) return status;
  rdma_.Start();
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
    if (const auto come = missing_.Look(nics_, local_.health().Snapshot(), config_.parts, world_.core->Now())) FollowNics(*come);
    KeepJobs();
    ScheduleAdvance();
  });
  Every(kRailAlarmInterval, [this] { FollowRailAlarms(); });
  Every(kDrillSaveInterval, [this] { operator_.Tick(); });
  missing_.SetLackingGlobs(config_.lacking_globs);
  certificates_.Look();
  Every(CertificateWatch::kInterval, [this] { certificates_.Look(); });
  Every(kKeepAliveInterval, [this] {
    v1::NodeView view = *broadcaster_.Get();
    view.set_clock_ns(reporter_.Now().realtime_ns);
    broadcaster_.Set(std::move(view));
  });
  return absl::OkStatus();
}

void Wiring::FollowJobs() {
  std::vector<PeerSpec> peers = peer_set_.DirectPeers(jobs_.registry().peers());
  rails_.SetJobPeers(jobs_.registry().peers());
  publisher_.SetJobPeers(jobs_.registry().peers());
  if (std::exchange(direct_peers_, peers) != peers) world_.peers->SetPeers(peers);
}

void Wiring::FollowReleases() {
  const uint32_t others = jobs_.registry().OfOtherReleases(Release());
  if (std::exchange(told_other_releases_, others) != others) PublishAnew();
}

void Wiring::Reload(const Caller& caller, std::function<void()> done) {
  reload_.Reload(caller, absl::OkStatus(), [done = std::move(done)](const absl::StatusOr<v1::ReloadReply>& reply) {
    if (!reply.ok()) LogError(absl::StrCat("the configuration was refused, and the one before is in force: ", reply.status().message()));
    done();
  });
}

void Wiring::Apply(const Config& config, const RolePolicy& roles) {
  roles_.Set(roles);
  SetLogLevel(config.log_level.value_or(LogLevel::kInfo));
  missing_.SetLackingGlobs(config.lacking_globs);
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
  if (!std::all_of(before.begin(), before.end(), [&](const NicSpec& nic) { return among(nics_, nic); })) operator_.Save(nullptr);
  for (const NicSpec& nic : before) {
    if (among(nics_, nic)) continue;
    rails_.Remove(nic.name);
    local_.Remove(nic.name);
    fabric_.Remove(nic.name);
    rdma_.Remove(nic.name);
    rdma_paths_.SetPort(nic.name, std::nullopt, world_.core->Now());
  }
  const std::vector<health::NicIdentity> identities = IdentitiesOf(nics_, world_.addresses->ByInterface());
  for (size_t i = 0; i < nics_.size(); ++i) {
    if (among(before, nics_[i])) {
      local_.SetRate(nics_[i].name, nics_[i].rate_bits_per_s);
      continue;
    }
    rails_.Add(identities[i]);
    rdma_.Add(identities[i]);
    local_.Add(identities[i], operator_.WordsAbout(identities[i].name), operator_.WasCabled(identities[i].name));
  }
}

void Wiring::ReadTopology() {
  world_.disk->Post([this, alive = alive_, source = world_.topology, core = world_.core] {
    auto topology = source->Read();
    core->Post([this, alive, topology = std::move(topology)]() mutable {
      if (!*alive) return;
      if (topology.ok()) return explain_.SetTopology(*std::move(topology));
      LogWarning("which GPU is near which NIC is not known", {{"reason", std::string(topology.status().message())}});
    });
  });
}

void Wiring::Stop() {
  if (!std::exchange(*alive_, false)) return;
  if (world_.refusals != nullptr) world_.refusals->Tell(nullptr);
  rails_.Stop();
  world_.jobs->DrainRings();
  job_keeper_.Save(jobs_.registry().ToKeep(reporter_.Now().realtime_ns));
  reporter_.Flush();
  history_.Flush();
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
  if (std::exchange(advance_scheduled_, true)) return;
  world_.core->Post([this, alive = alive_] {
    if (*alive) Advance();
  });
}

void Wiring::Advance() {
  advance_scheduled_ = false;
  operator_.KeepCabled();
  const Nanos now = world_.core->Now();
  const bool changed = UpdateOwn(now);
  // Jobs first: the page is what moves bytes.
  UpdatePlan(now);
  if (changed) PublishOwnView();
}

bool Wiring::UpdateOwn(Nanos now) {
  const health::NodeState& verdicts = local_.health().Snapshot();
  for (const health::NicStatus& nic : verdicts.nics) {
    rails_.SetLink(nic.identity.name, nic.link_up);
    rails_.SetMtu(nic.identity.name, nic.mtu);
  }
  if (std::exchange(railed_changes_, cluster_.changes()) != cluster_.changes()) rails_.OnView();
  health::NodeState own = health::WithRails(verdicts, rails_.Report());
  own.rdma_ends = rdma_paths_.Report();
  own.epoch = own_.epoch;
  if (own == own_) return false;
  if (const Nanos when = pacer_.PublishAt(own_, own, rails_.InDoubt()); when > now) {
    AdvanceAt(when);
    return false;
  }
  own.epoch = NextEpoch();
  own_ = std::move(own);
  pacer_.Published(now);
  cluster_.SetOwn(own_, now);
  return true;
}

void Wiring::UpdatePlan(Nanos now) {
  if (cluster_.revision() == publisher_.revision()) return;
  // A change of the own node does not wait: only this daemon tells its jobs.
  const health::NodeEntry* const own = cluster_.Find(config_.node);
  const bool own_changed = own != nullptr && own->revision > publisher_.revision();
  if (const Nanos when = pacer_.PlanAt(cluster_.nodes().size()); when > now && !own_changed) return AdvanceAt(when);
  if (publisher_.Update(cluster_, [this] { return NextEpoch(); })) pacer_.Planned(now);
}

void Wiring::AdvanceAt(Nanos when) {
  if (!pacer_.Wait(when)) return;
  world_.core->RunAfter(when - world_.core->Now(), [this, alive = alive_, when] {
    if (*alive && pacer_.Rang(when)) Advance();
  });
}

void Wiring::PublishOwnView() {
  v1::NodeView view = ToProto(own_, own_.status, reporter_.Now());
  view.set_peer_address(peer_address_);
  view.set_release(Release());
  view.set_protocol(kPeerProtocolLeast);
  view.set_protocol_newest(kPeerProtocol);
  view.set_jobs_of_other_releases(told_other_releases_);
  peer_set_.SetOwn(view);
  const std::string value = view.SerializeAsString();
  view.set_clock_ns(reporter_.Now().realtime_ns);
  broadcaster_.Set(std::move(view));
  world_.store->Put(config_.nodes_prefix() + config_.node, value, kNodeLeaseMs);
}

void Wiring::PublishAgain() {
  if (std::exchange(again_scheduled_, true)) return;
  // Where two daemons have one name, each does so: not as fast as the store turns.
  world_.core->RunAfter(kOwnEntryInterval, [this, alive = alive_] {
    if (!*alive) return;
    again_scheduled_ = false;
    PublishOwnView();
  });
}

void Wiring::SetPeerAddress(const std::string& address) {
  // Rail probes come to the same number as peers do, so that one number is to be opened in a firewall.
  if (const auto parsed = ParseHostPort(address, /*allow_port_zero=*/true); parsed.ok()) rails_.Start(parsed->port);
  if (std::exchange(peer_address_, address) != address) PublishAnew();
}

void Wiring::PublishAnew() {
  own_.epoch = NextEpoch();
  cluster_.SetOwn(own_, world_.core->Now());
  PublishOwnView();
}

std::string Wiring::StatusLine() const {
  std::string ill;
  for (const health::NicStatus& nic : own_.nics)
    if (nic.state != health::NicState::kHealthy && nic.state != health::NicState::kUncabled)
      absl::StrAppend(&ill, ill.empty() ? " (" : ", ", nic.identity.name, " ", health::NicStateName(nic.state));
  const std::vector<v1::PeerStatus> peers = peer_set_.Peers();
  const auto connected = std::count_if(peers.begin(), peers.end(), [](const v1::PeerStatus& peer) { return peer.connected(); });
  // What the service manager shows is where one looks first after a reload.
  std::vector<std::string> alarms = reload_.Alarms();
  for (const auto& [about, alarm] : state_alarms_) alarms.push_back(alarm);
  return absl::StrCat(alarms.empty() ? "" : alarms.front() + "; ", "node ", config_.node, ": ", own_.nics.size(), " NICs", ill,
                      ill.empty() ? "" : ")", "; ", connected, " of ", peers.size(), " peers connected; ", jobs_.registry().size(),
                      " jobs; plan ", publisher_.plan().epoch.counter);
}

Epoch Wiring::NextEpoch() {
  ++epoch_.counter;
  return epoch_;
}

}  // namespace r2cc::daemon
