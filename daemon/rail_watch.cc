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
// Nodes that lend their eyes when a pair of others is silent.
constexpr int kVolunteersMax = 3;
// Silent pairs of others that a node lends its eyes for.
constexpr size_t kAccusedMax = 64;
// Silent pairs that are looked at for it, as each look goes over all nodes.
constexpr int kVolunteeringMax = 256;
// How often a socket that could not be opened is tried again.
constexpr Nanos kOpenInterval = kNanosPerSecond;
// Verdicts are looked at so often when nothing changes: for what is held, and for doubts, which are forgotten unless repeated.
constexpr Nanos kJudgeInterval = 100 * kNanosPerMs;
constexpr Nanos kDoubtInterval = 2 * kNanosPerSecond;

std::span<const uint8_t> AsBytes(const std::string& text) { return {reinterpret_cast<const uint8_t*>(text.data()), text.size()}; }
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
  timer_ = seams_.executor->RunAfter(health::kRailProbeTick, [this] { Tick(); });
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
  if (std::exchange(job_peers_, std::move(nodes)) != job_peers_) view_changed_ = true;
}

void RailWatch::SetLink(const std::string& name, bool up) {
  const auto found = nics_.find(name);
  if (found == nics_.end() || std::exchange(found->second.link_up, up) == up) return;
  Nic& nic = found->second;
  prober_.SetLink(name, up, seams_.executor->Now());
  // The link's own word is enough now; and an interface that is made again is another one, which needs another socket.
  if (!up) {
    nic.silent = false;
    nic.path_since.clear();
    nic.paths_told.clear();
    nic.doubt_since = 0;
    nic.socket.reset();
  } else if (running_) {
    OpenSockets();
  }
}

void RailWatch::Suspect(const std::string& nic) { prober_.Suspect(nic, seams_.executor->Now()); }

void RailWatch::OnBatch(const std::string& name, const std::vector<health::Datagram>& batch) {
  const Nic& nic = nics_.at(name);
  for (const health::Datagram& datagram : batch) {
    const auto answer = prober_.Receive(name, AsBytes(datagram.bytes), datagram.received);
    // An answer that cannot leave is one that got lost.
    if (answer.has_value() && nic.socket != nullptr) (void)nic.socket->Send(datagram.from, AsText(*answer));
  }
}

void RailWatch::Tick() {
  timer_ = seams_.executor->RunAfter(health::kRailProbeTick, [this] { Tick(); });
  const Nanos now = seams_.executor->Now();
  if (now - opened_ >= kOpenInterval) OpenSockets();
  const bool changed = std::exchange(view_changed_, false);
  if (changed) UpdateTargets();
  for (const health::RailPing& ping : prober_.Tick(now)) {
    const Nic& nic = nics_.at(ping.nic);
    if (nic.socket != nullptr) (void)nic.socket->Send({ping.address, ping.port}, AsText(ping.bytes));
  }
  const bool news = std::exchange(told_revision_, prober_.revision()) != prober_.revision();
  if (news || changed || now - judged_ >= kJudgeInterval) {
    judged_ = now;
    Judge();
  }
  if (news) outputs_.on_state();
}

// Of all the nodes that see both ends, those with the lowest hash of it: the same few by everybody's reckoning, without asking.
bool RailWatch::Volunteers(const health::NicKey& a, const health::NicKey& b) const {
  const auto rank = [&](const std::string& node) {
    return Fnv1a64(node + " " + std::min(a, b).ToString() + " " + std::max(a, b).ToString());
  };
  const uint64_t own = rank(node_);
  int before = 0;
  for (const auto& [name, entry] : view_->nodes())
    before += name != node_ && name != a.node && name != b.node && entry.reachable && entry.state.probe_nonce != 0 && rank(name) < own;
  return before < kVolunteersMax;
}

void RailWatch::UpdateTargets() {
  std::set<health::NicKey> accused;
  accused_here_ = false;
  int looked_at = 0;
  for (const auto& [name, entry] : view_->nodes())
    for (const health::PairReport& pair : entry.state.pairs) {
      if (!pair.silent || name == node_) continue;
      accused_here_ |= pair.peer.node == node_;
      if (pair.peer.node == node_ || accused.size() >= kAccusedMax || ++looked_at > kVolunteeringMax) continue;
      const health::NicKey reporter = {name, pair.nic};
      if (!Volunteers(reporter, pair.peer)) continue;
      accused.insert(reporter);
      accused.insert(pair.peer);
    }
  accused_ = std::move(accused);

  // In an order of its own for each node, so that not everybody's auxiliary pairs lead to the same nodes.
  std::vector<std::pair<uint64_t, const health::NodeEntry*>> nodes;
  for (const auto& [name, entry] : view_->nodes())
    if (name != node_ && entry.state.probe_nonce != 0) nodes.emplace_back(Fnv1a64(node_ + " " + name), &entry);
  std::sort(nodes.begin(), nodes.end());

  std::vector<health::RailTarget> targets;
  size_t auxiliary = 0;
  for (const auto& [rank, entry] : nodes) {
    const health::NodeState& peer = entry->state;
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

void RailWatch::Fill(health::NodeState* own) const {
  own->probe_nonce = prober_.nonce();
  for (health::NicStatus& status : own->nics) {
    const auto nic = nics_.find(status.identity.name);
    const bool open = nic != nics_.end() && nic->second.socket != nullptr;
    status.probe_port = open ? nic->second.socket->port() : uint16_t{0};
  }
  own->pairs.clear();
  std::vector<health::RailPairStatus> pairs = prober_.Pairs();
  std::stable_partition(pairs.begin(), pairs.end(),
                        [](const auto& pair) { return health::WordOf(pair.state) == health::PairWord::kSilent; });
  for (const health::RailPairStatus& pair : pairs) {
    const health::PairWord word = health::WordOf(pair.state);
    if (word == health::PairWord::kUnknown || (word == health::PairWord::kAnswering && !pair.active)) continue;
    if (own->pairs.size() >= health::kPairReportsMax) break;
    own->pairs.push_back({pair.key.own.nic, pair.key.peer, word == health::PairWord::kSilent,
                          nics_.at(pair.key.own.nic).paths_told.contains(pair.key.peer)});
  }
}

health::ProbeMatrix RailWatch::Matrix() const {
  health::ProbeMatrix matrix;
  for (const auto& [nic, other] : cables_) matrix.AddCable({node_, nic}, other);
  for (const auto& [name, entry] : view_->nodes()) {
    for (const health::NicStatus& nic : entry.state.nics)
      if (!nic.link_up || nic.drill_failed) matrix.AddDown({name, nic.identity.name});
    if (name == node_ || !entry.reachable) continue;
    for (const health::PairReport& pair : entry.state.pairs)
      matrix.Add({name, pair.nic}, pair.peer, pair.silent ? health::PairWord::kSilent : health::PairWord::kAnswering);
  }
  for (const health::RailPairStatus& pair : prober_.Pairs()) matrix.Add(pair.key.own, pair.key.peer, health::WordOf(pair.state));
  return matrix;
}

bool RailWatch::AnythingToJudge(const std::vector<health::RailPairStatus>& pairs) const {
  return accused_here_ ||
         std::any_of(pairs.begin(), pairs.end(),
                     [](const auto& pair) { return health::WordOf(pair.state) == health::PairWord::kSilent; }) ||
         std::any_of(nics_.begin(), nics_.end(), [](const auto& nic) { return nic.second.silent || !nic.second.path_since.empty(); });
}

void RailWatch::Judge() {
  const std::vector<health::RailPairStatus> pairs = prober_.Pairs();
  const health::ProbeMatrix matrix = AnythingToJudge(pairs) ? Matrix() : health::ProbeMatrix();
  for (const std::string& name : order_) {
    Nic& nic = nics_.at(name);
    if (nic.link_up) JudgeNic(&nic, matrix, pairs);
  }
}

void RailWatch::JudgeNic(Nic* nic, const health::ProbeMatrix& matrix, const std::vector<health::RailPairStatus>& pairs) {
  const health::NicKey key = {node_, nic->identity.name};
  const health::Fault fault = health::Localise(matrix, key);
  if (fault.unusable && !nic->silent) {
    nic->silent = true;
    Tell(*nic, health::EvidenceKind::kRailSilent, {}, health::FaultText(key, fault));
  }
  // Only an answer takes it back: while nothing is known of any pair, as after a restart of the others' daemons, it stays.
  const auto& words = matrix.Of(key);
  const bool answers = std::any_of(words.begin(), words.end(), [](const auto& one) { return one.second == health::PairWord::kAnswering; });
  if (nic->silent && !fault.unusable && answers) {
    nic->silent = false;
    Tell(*nic, health::EvidenceKind::kRailAnswers, {}, "");
  }
  JudgePaths(nic, fault);
  if (fault.kind == health::FaultKind::kCannotTell && !fault.unusable)
    return JudgeDoubt(nic, fault.peers.front(), health::FaultText(key, fault));
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

std::vector<health::NicKey> RailWatch::NeverHeard(const std::string& nic, const std::vector<health::RailPairStatus>& pairs) const {
  const Nanos now = seams_.executor->Now();
  std::set<std::string> awake;
  for (const health::RailPairStatus& pair : pairs) {
    if (pair.state != health::PairState::kUp) continue;
    if (pair.key.own.nic == nic) return {};
    awake.insert(pair.key.peer.node);
  }
  std::vector<health::NicKey> strange;
  for (const health::RailPairStatus& pair : pairs)
    if (pair.key.own.nic == nic && pair.state == health::PairState::kUnknown && pair.measures.sent >= kFirstAnswerProbes &&
        now - pair.since >= kFirstAnswerWait && awake.contains(pair.key.peer.node))
      strange.push_back(pair.key.peer);
  return strange;
}

void RailWatch::JudgePaths(Nic* nic, const health::Fault& fault) {
  const Nanos now = seams_.executor->Now();
  std::set<health::NicKey> broken;
  if (fault.kind == health::FaultKind::kPath) broken.insert(fault.peers.begin(), fault.peers.end());
  std::erase_if(nic->path_since, [&](const auto& entry) { return !broken.contains(entry.first); });
  for (const health::NicKey& peer : broken) {
    const Nanos since = nic->path_since.emplace(peer, now).first->second;
    if (now - since < kPathFaultHold || !nic->paths_told.insert(peer).second) continue;
    outputs_.on_state();
    health::Fault one = fault;
    one.peers = {peer};
    Tell(*nic, health::EvidenceKind::kPathBroken, peer, health::FaultText({node_, nic->identity.name}, one));
  }
  for (auto told = nic->paths_told.begin(); told != nic->paths_told.end();) {
    if (broken.contains(*told)) {
      ++told;
      continue;
    }
    Tell(*nic, health::EvidenceKind::kPathBack, *told, "");
    told = nic->paths_told.erase(told);
    outputs_.on_state();
  }
}

void RailWatch::Tell(const Nic& nic, health::EvidenceKind kind, const health::NicKey& peer, const std::string& detail) {
  health::Evidence evidence;
  evidence.observer = node_;
  evidence.subject = {node_, nic.identity.name};
  evidence.kind = kind;
  evidence.when = seams_.executor->Now();
  evidence.peer = peer;
  evidence.detail = detail;
  outputs_.evidence(evidence);
}

const health::NicKey* RailWatch::CableTo(const std::string& nic) const {
  const auto found = cables_.find(nic);
  return found == cables_.end() ? nullptr : &found->second;
}

}  // namespace r2cc::daemon
