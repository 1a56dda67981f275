#include "daemon/rail_watch.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "base/core/hash.h"
#include "base/log.h"

namespace r2cc::daemon {
namespace {

// Pairs that no job uses, probed in turn. Few enough for each to have its turn within seconds.
constexpr size_t kAuxiliaryPairsMax = 256;
// How often a socket that could not be opened is tried again.
constexpr Nanos kOpenInterval = kNanosPerSecond;
// Verdicts are looked at so often when nothing changes: for what is held, and for doubts, which are forgotten unless repeated.
constexpr Nanos kJudgeInterval = 100 * kNanosPerMs;
constexpr Nanos kDoubtInterval = 2 * kNanosPerSecond;

std::span<const uint8_t> AsBytes(const std::string& text) { return {reinterpret_cast<const uint8_t*>(text.data()), text.size()}; }
// Null: it is none of this node's.
const health::RailPairStatus* FindPair(const std::vector<health::RailPairStatus>& pairs, const health::PairKey& key) {
  const auto found =
      std::lower_bound(pairs.begin(), pairs.end(), key, [](const auto& pair, const auto& wanted) { return pair.key < wanted; });
  return found == pairs.end() || found->key != key ? nullptr : &*found;
}

std::string_view AsText(const health::RailProbeBytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace

RailWatch::RailWatch(std::string node, std::vector<health::NicIdentity> nics, uint64_t nonce, std::map<std::string, health::NicKey> cables,
                     const health::ClusterView* view, const Seams& seams, Outputs outputs)
    : node_(std::move(node)),
      cables_(std::move(cables)),
      view_(view),
      seams_(seams),
      outputs_(std::move(outputs)),
      prober_(node_, nonce, health::RailProbePolicy()) {
  for (health::NicIdentity& identity : nics) {
    order_.push_back(identity.name);
    Nic& nic = nics_[identity.name];
    nic.link_up = identity.interface.empty();
    nic.identity = std::move(identity);
    prober_.SetLink(nic.identity.name, nic.link_up, seams_.executor->Now());
  }
}

RailWatch::~RailWatch() { Stop(); }

void RailWatch::Start(uint16_t port) {
  if (std::exchange(running_, true)) return;
  port_ = port;
  OpenSockets();
  Hurry();
}

void RailWatch::Hurry() {
  hurry_by_ = std::min(hurry_by_, seams_.executor->Now() + health::kRailProbeTick);
  Arm();
}

Nanos RailWatch::NextTick() const {
  if (in_doubt_ || accused_here_) return std::min(ticked_ + health::kRailProbeTick, hurry_by_);
  return std::min({prober_.next_tick(), ticked_ + (quiet_ ? kOpenInterval : kJudgeInterval), hurry_by_});
}

void RailWatch::Arm() {
  const Nanos when = NextTick();
  if (!running_ || (timer_ != 0 && tick_due_ == when)) return;
  if (timer_ != 0) seams_.executor->Cancel(timer_);
  tick_due_ = when;
  timer_ = seams_.executor->RunAfter(when - seams_.executor->Now(), [this] {
    timer_ = 0;
    Tick();
  });
}

void RailWatch::Stop() {
  running_ = false;
  if (timer_ != 0) seams_.executor->Cancel(std::exchange(timer_, 0));
  for (auto& [name, nic] : nics_) nic.socket.reset();
}

void RailWatch::OpenSockets() {
  opened_ = seams_.executor->Now();
  for (auto& [name, nic] : nics_) {
    if (nic.socket != nullptr || !nic.link_up || nic.identity.address.empty()) continue;
    const health::DatagramHandler handler = {[this, nic = name](const std::vector<health::Datagram>& batch) { OnBatch(nic, batch); },
                                             [this, nic = name](const health::DatagramError& error) {
                                               if (error.kind == health::DatagramError::Kind::kRefused)
                                                 prober_.Refused(nic, error.to.address, error.to.port, error.received);
                                             }};
    health::RailBinding binding = {nic.identity.interface, nic.identity.address, port_};
    auto socket = seams_.datagrams->Open(binding, handler);
    if (absl::IsAlreadyExists(socket.status())) {
      binding.port = 0;
      socket = seams_.datagrams->Open(binding, handler);
    }
    if (socket.ok()) {
      nic.socket = *std::move(socket);
      outputs_.on_state();
    } else {
      LogDebug("no rail probes yet", {{"nic", name}, {"reason", std::string(socket.status().message())}});
    }
  }
}

void RailWatch::SetJobPeers(std::set<std::string> nodes) {
  if (std::exchange(job_peers_, std::move(nodes)) != job_peers_) targets_changed_ = true;
  if (targets_changed_) Hurry();
}

void RailWatch::SetLink(const std::string& name, bool up) {
  const auto found = nics_.find(name);
  if (found == nics_.end() || std::exchange(found->second.link_up, up) == up) return;
  Nic& nic = found->second;
  prober_.SetLink(name, up, seams_.executor->Now());
  Hurry();
  // The link's own word is enough now; and an interface that is made again is another one, which needs another socket.
  if (!up) {
    nic.silent = nic.port_dead = false;
    nic.paths_held.clear();
    nic.paths_told.clear();
    nic.doubt_since = 0;
    nic.socket.reset();
  } else if (running_) {
    OpenSockets();
  }
}

void RailWatch::Suspect(const std::string& nic) {
  prober_.Suspect(nic, given_up_, seams_.executor->Now());
  Hurry();
}

void RailWatch::OnBatch(const std::string& name, const std::vector<health::Datagram>& batch) {
  const Nic& nic = nics_.at(name);
  for (const health::Datagram& datagram : batch) {
    const auto answer = prober_.Receive(name, AsBytes(datagram.bytes), datagram.received);
    // An answer that cannot leave is one that got lost.
    if (answer.has_value() && nic.socket != nullptr) (void)nic.socket->Send(datagram.from, AsText(*answer));
  }
  Arm();
}

// Every kRailProbeTick while there is something to find out; seldom otherwise, as most of what an idle daemon costs is waking up.
void RailWatch::Tick() {
  const Nanos now = seams_.executor->Now();
  ticked_ = now;
  hurry_by_ = INT64_MAX;
  if (now - opened_ >= kOpenInterval) OpenSockets();
  const bool changed = std::exchange(view_changed_, false);
  if (changed) {
    UpdateAccused();
    UpdateGivenUp();
  }
  if (std::exchange(targeted_places_, view_->places()) != view_->places() || targets_changed_) UpdateTargets();
  for (const health::RailPing& ping : prober_.Tick(now)) {
    const Nic& nic = nics_.at(ping.nic);
    if (nic.socket != nullptr) (void)nic.socket->Send({ping.address, ping.port}, AsText(ping.bytes));
  }
  const bool news = std::exchange(told_revision_, prober_.revision()) != prober_.revision();
  if (news || (changed && (in_doubt_ || accused_here_)) || now - judged_ >= kJudgeInterval) {
    judged_ = now;
    Judge();
  }
  if (news) outputs_.on_state();
  Arm();
}

void RailWatch::UpdateTargets() {
  targets_changed_ = false;
  // In an order of its own for each node, so that not everybody's auxiliary pairs lead to the same nodes.
  std::vector<std::pair<uint64_t, const health::NodeEntry*>> nodes;
  for (const auto& [name, entry] : view_->nodes())
    if (name != node_ && entry.state.probe_nonce != 0) nodes.emplace_back(Fnv1a64(node_ + " " + name), &entry);
  std::sort(nodes.begin(), nodes.end());

  std::set<std::string_view> needed(job_peers_.begin(), job_peers_.end());
  for (const health::NicKey& nic : accused_) needed.insert(nic.node);
  std::vector<health::RailTarget> targets;
  size_t auxiliary = 0;
  for (const auto& [rank, entry] : nodes) {
    const health::NodeState& peer = entry->state;
    if (auxiliary >= kAuxiliaryPairsMax && !needed.contains(peer.node)) continue;
    for (size_t i = 0; i < order_.size(); ++i) {
      const auto cable = cables_.find(order_[i]);
      if (cable != cables_.end() && cable->second.node != peer.node) continue;
      // The same rail has the same name everywhere, or at least the same place in the order.
      const health::NicStatus* other = peer.Find(cable != cables_.end() ? cable->second.nic : order_[i]);
      if (other == nullptr && i < peer.nics.size()) other = &peer.nics[i];
      if (other == nullptr || other->probe_port == 0 || other->identity.address.empty()) continue;
      const health::NicKey key = {peer.node, other->identity.name};
      const bool active = job_peers_.contains(peer.node) || accused_.contains(key);
      if (!active && auxiliary++ >= kAuxiliaryPairsMax) continue;
      targets.push_back({{{node_, order_[i]}, key}, other->identity.address, other->probe_port, peer.probe_nonce, active});
    }
  }
  if (std::exchange(targets_, targets) != targets) prober_.SetTargets(std::move(targets), seams_.executor->Now());
}

bool RailWatch::AnythingToJudge(const std::vector<health::RailPairStatus>& pairs) const {
  return accused_here_ ||
         std::any_of(pairs.begin(), pairs.end(), [](const auto& pair) { return pair.word == health::PairWord::kSilent; }) ||
         std::any_of(nics_.begin(), nics_.end(), [](const auto& nic) { return nic.second.silent || !nic.second.paths_held.empty(); });
}

void RailWatch::Judge() {
  const bool told =
      std::any_of(nics_.begin(), nics_.end(), [](const auto& nic) { return nic.second.silent || !nic.second.paths_told.empty(); });
  quiet_ = !in_doubt_ && !told && !accused_here_ && accused_.empty() && prober_.Settled();
  if (quiet_) {
    for (auto& [name, nic] : nics_) nic.doubt_since = nic.mute_since = 0;
    return;
  }
  const std::vector<health::RailPairStatus> pairs = prober_.Pairs();
  const bool anything = AnythingToJudge(pairs);
  in_doubt_ = anything || !accused_.empty();
  const health::ProbeMatrix matrix = anything ? Matrix(pairs) : health::ProbeMatrix();
  for (const std::string& name : order_) {
    Nic& nic = nics_.at(name);
    if (nic.link_up) JudgeNic(&nic, matrix, pairs);
  }
}

bool RailWatch::IsUnusable(Nic* nic, const health::Fault& fault, const std::vector<health::RailPairStatus>& pairs) const {
  const bool open = fault.unusable && fault.kind != health::FaultKind::kPort &&
                    std::any_of(pairs.begin(), pairs.end(), [&](const health::RailPairStatus& pair) {
                      return pair.key.own.nic == nic->identity.name && pair.word == health::PairWord::kAnswering &&
                             pair.fresh_word == health::PairWord::kUnknown;
                    });
  const Nanos now = seams_.executor->Now();
  if (!open)
    nic->mute_since = 0;
  else if (nic->mute_since == 0)
    nic->mute_since = now;
  return fault.unusable && (!open || now - nic->mute_since >= kPathFaultHold);
}

void RailWatch::JudgeNic(Nic* nic, const health::ProbeMatrix& matrix, const std::vector<health::RailPairStatus>& pairs) {
  const health::NicKey key = {node_, nic->identity.name};
  const health::Fault fault = health::Localise(matrix, key);
  const bool answers = std::any_of(pairs.begin(), pairs.end(), [&](const health::RailPairStatus& pair) {
    return pair.key.own == key && WordNow(pair) == health::PairWord::kAnswering;
  });
  // Those who answered it once may know.
  if (!answers && (fault.kind == health::FaultKind::kCannotTell || fault.kind == health::FaultKind::kRail)) Suspect(key.nic);
  if (!nic->silent && IsUnusable(nic, fault, pairs)) {
    nic->silent = true;
    nic->silent_since = seams_.executor->Now();
    Tell(*nic, health::EvidenceKind::kRailSilent, {}, health::FaultText(key, fault));
  }
  // Once it is failed, others do not speak of it any more; what is left to judge by may not say as much.
  const bool dead = nic->silent && fault.kind != health::FaultKind::kRail && (nic->port_dead || fault.kind == health::FaultKind::kPort);
  if (std::exchange(nic->port_dead, dead) != dead) OnWordsChanged();
  // Only an answer takes it back: while nothing is known of any pair, as after a restart of the others' daemons, it stays.
  if (nic->silent && !fault.unusable && answers) {
    nic->silent = nic->port_dead = false;
    prober_.Renew(key, seams_.executor->Now());
    Tell(*nic, health::EvidenceKind::kRailAnswers, {}, "");
  }
  JudgePaths(nic, fault, pairs);
  if (fault.kind == health::FaultKind::kCannotTell && !fault.unusable) {
    // One that answers again, and is only not yet trusted, is no reason for a doubt.
    const auto doubtful = std::find_if(fault.peers.begin(), fault.peers.end(), [&](const health::NicKey& peer) {
      const health::RailPairStatus* pair = FindPair(pairs, {key, peer});
      return pair == nullptr || pair->state == health::PairState::kSilent;
    });
    if (doubtful != fault.peers.end()) {
      prober_.Ask({key, *doubtful}, seams_.executor->Now());
      return JudgeDoubt(nic, *doubtful, health::FaultText(key, fault));
    }
  }
  const std::vector<health::NicKey> strange =
      fault.kind != health::FaultKind::kNone ? std::vector<health::NicKey>() : NeverHeard(key.nic, pairs);
  if (strange.empty()) {
    nic->doubt_since = 0;
    return;
  }
  JudgeDoubt(nic, strange.front(),
             absl::StrCat("nobody ever answered ", key.ToString(), " (", strange.front().ToString(), " and ", strange.size() - 1,
                          " more were asked): a dead port, another VLAN, or a firewall that drops UDP"));
}

// Doubts are forgotten unless repeated.
void RailWatch::JudgeDoubt(Nic* nic, const health::NicKey& peer, const std::string& doubt) {
  const Nanos now = seams_.executor->Now();
  if (nic->doubt_since == 0) nic->doubt_since = now;
  if (now - nic->doubt_since < kPathFaultHold || (nic->doubt_told >= nic->doubt_since && now - nic->doubt_told < kDoubtInterval)) return;
  nic->doubt_told = now;
  Tell(*nic, health::EvidenceKind::kRailDoubtful, peer, doubt);
}

void RailWatch::JudgePaths(Nic* nic, const health::Fault& fault, const std::vector<health::RailPairStatus>& pairs) {
  const Nanos now = seams_.executor->Now();
  const health::NicKey key = {node_, nic->identity.name};
  std::set<health::NicKey> broken;
  if (fault.kind == health::FaultKind::kPath) broken.insert(fault.peers.begin(), fault.peers.end());
  std::erase_if(nic->paths_held, [&](const auto& entry) { return !broken.contains(entry.first); });
  for (const health::NicKey& peer : broken) {
    if (nic->paths_told.contains(peer)) continue;
    const health::RailPairStatus* pair = FindPair(pairs, {key, peer});
    if (pair == nullptr || pair->state != health::PairState::kSilent) {
      nic->paths_held.erase(peer);
      continue;
    }
    const Nic::Held held = nic->paths_held.try_emplace(peer, Nic::Held{now, pair->measures.sent}).first->second;
    if (now - held.since < kPathFaultHold || pair->measures.sent - held.sent < kPathFaultProbes) {
      prober_.Ask(pair->key, now);
      continue;
    }
    nic->paths_told.insert(peer);
    OnWordsChanged();
    health::Fault one = fault;
    one.peers = {peer};
    Tell(*nic, health::EvidenceKind::kPathBroken, peer, health::FaultText(key, one));
  }
  for (auto told = nic->paths_told.begin(); told != nic->paths_told.end();) {
    if (broken.contains(*told)) {
      ++told;
      continue;
    }
    Tell(*nic, health::EvidenceKind::kPathBack, *told, "");
    told = nic->paths_told.erase(told);
    OnWordsChanged();
  }
}

void RailWatch::OnWordsChanged() {
  filled_.prober_revision = 0;
  outputs_.on_state();
}

}  // namespace r2cc::daemon
