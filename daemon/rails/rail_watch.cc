#include "daemon/rails/rail_watch.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "daemon/rails/rail_targets.h"

namespace r2cc::daemon {
namespace {

// If nothing is to be judged, the other periodic work can wait.
constexpr Nanos kQuietInterval = kNanosPerSecond;
// The interval at which verdicts are judged when nothing changes: for pending faults, and for inconclusive ones, which are forgotten unless
// repeated.
constexpr Nanos kJudgeInterval = 100 * kNanosPerMs;

// NICs that do not answer are looked for on other rails' networks so often: the first ping of each may wait for an ARP answer, and is lost
// after a second.
constexpr Nanos kCrossedInterval = 2 * kNanosPerSecond;

std::span<const uint8_t> AsBytes(const std::string& text) { return {reinterpret_cast<const uint8_t*>(text.data()), text.size()}; }

std::set<std::string> CabledNics(const std::map<std::string, health::NicKey>& cables) {
  std::set<std::string> nics;
  for (const auto& [nic, other] : cables) nics.insert(nic);
  return nics;
}

std::string_view AsText(const health::RailProbeBytes& bytes) { return {reinterpret_cast<const char*>(bytes.data()), bytes.size()}; }

}  // namespace

RailWatch::RailWatch(std::string node, std::vector<health::NicIdentity> nics, health::ProbeKeyring::NewSecret new_secret,
                     std::map<std::string, health::NicKey> cables, const health::ClusterView* view, const Seams& seams, Outputs outputs)
    : node_(std::move(node)),
      cables_(std::move(cables)),
      view_(view),
      seams_(seams),
      outputs_(std::move(outputs)),
      matrix_(node_, cables_, view_),
      judge_(node_, CabledNics(cables_)),
      keys_(std::move(new_secret), seams_.executor->Now()),
      prober_(node_, &keys_, health::RailProbePolicy()),
      sockets_(seams_.executor, seams_.datagrams,
               {[this](const std::string& nic, const std::vector<health::Datagram>& batch) { OnBatch(nic, batch); },
                [this](const std::string& nic, const std::string& from) {
                  prober_.LostHere(nic, from);
                  if (!from.empty()) judge_.PeerKeptOut(nic, seams_.executor->Now());
                },
                [this] { outputs_.on_state(); }}) {
  for (health::NicIdentity& identity : nics) Know(std::move(identity));
}

void RailWatch::Know(health::NicIdentity identity) {
  order_.push_back(identity.name);
  Nic& nic = nics_[identity.name];
  judge_.Add(identity.name);
  nic.link_up = identity.interface.empty();
  nic.identity = std::move(identity);
  sockets_.Add(nic.identity, nic.link_up);
  prober_.SetLink(nic.identity.name, nic.link_up, seams_.executor->Now());
}

RailWatch::~RailWatch() { Stop(); }

void RailWatch::Start(uint16_t port) {
  if (std::exchange(running_, true)) return;
  sockets_.Start(port);
  Hurry();
}

void RailWatch::Hurry() {
  hurry_by_ = std::min(hurry_by_, seams_.executor->Now() + health::kRailProbeTick);
  Arm();
}

Nanos RailWatch::NextTick() const {
  if (inconclusive_ || suspected_.here) return std::min(ticked_ + health::kRailProbeTick, hurry_by_);
  return std::min({prober_.next_tick(), ticked_ + (quiet_ ? kQuietInterval : kJudgeInterval), hurry_by_});
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
  sockets_.Stop();
}

void RailWatch::SetJobPeers(JobPeers peers) {
  if (std::exchange(job_peers_, std::move(peers)) != job_peers_) targets_changed_ = true;
  if (targets_changed_) Hurry();
}

void RailWatch::SetLink(const std::string& name, bool up) {
  const auto found = nics_.find(name);
  if (found == nics_.end() || std::exchange(found->second.link_up, up) == up) return;
  prober_.SetLink(name, up, seams_.executor->Now());
  Hurry();
  if (!up) large_.Forget(name);
  // The link's state is enough now. And an interface that is made again is another one, which needs another socket.
  if (!up) judge_.LinkDown(name);
  sockets_.SetLink(name, up);
}

void RailWatch::OnBatch(const std::string& name, const std::vector<health::Datagram>& batch) {
  for (const health::Datagram& datagram : batch) {
    const auto answer = prober_.Receive(name, datagram.from.address, AsBytes(datagram.bytes), datagram.received);
    if (!answer.has_value()) continue;
    const absl::Status sent = sockets_.Send(name, datagram.from, health::Padded(answer->bytes, answer->length));
    if (sent.ok() && answer->after.has_value())
      (void)sockets_.Send(name, datagram.from, AsText(*answer->after));
    else if (absl::IsOutOfRange(sent) && answer->instead.has_value())
      (void)sockets_.Send(name, datagram.from, AsText(*answer->instead));
  }
  Arm();
}

// Every kRailProbeTick while there is something to find out; seldom otherwise, as most of what an idle daemon costs is waking up.
void RailWatch::Tick() {
  const Nanos now = seams_.executor->Now();
  ticked_ = now;
  hurry_by_ = INT64_MAX;
  sockets_.Tick();
  if (keys_.Tick(now)) outputs_.on_state();
  if (std::vector<uint64_t> nonces = keys_.OwnNonces(); nonces != taken_) sockets_.Take(health::ProbesTo(taken_ = std::move(nonces)));
  const bool changed = std::exchange(view_changed_, false);
  if (changed) {
    UpdatePeers();
    UpdateSuspected();
    UpdateGivenUp();
  }
  if (std::exchange(targeted_places_, view_->places()) != view_->places() || targets_changed_) UpdateTargets();
  for (const health::RailPing& ping : prober_.Tick(now)) {
    const absl::Status sent = sockets_.Send(ping.nic, {ping.address, ping.port}, health::Padded(ping.bytes, ping.length));
    if (absl::IsOutOfRange(sent))
      prober_.TooLarge(ping, now);
    else if (!sent.ok())
      prober_.NotSent(ping);
    if (ping.length == health::kRailProbeBytes) outputs_.on_ping(ping);
  }
  const bool news = std::exchange(reported_revision_, prober_.revision()) != prober_.revision();
  if (news || (changed && (inconclusive_ || suspected_.here)) || now - judged_ >= kJudgeInterval) {
    judged_ = now;
    Judge();
  }
  if (news) outputs_.on_state();
  if (now - sought_crossed_ >= kCrossedInterval) {
    sought_crossed_ = now;
    SeekCrossed();
  }
  Arm();
}

void RailWatch::Judge() {
  quiet_ = !inconclusive_ && !judge_.AnyVerdict() && large_.empty() && !suspected_.here && suspected_.ports.empty() && prober_.Settled();
  if (quiet_) return judge_.Rest();
  const std::vector<health::RailPairStatus> pairs = prober_.Pairs();
  // Otherwise nobody needs the matrix, which is large in a large cluster.
  const bool anything = suspected_.here || judge_.AnythingToJudge(pairs);
  inconclusive_ = anything || !suspected_.ports.empty();
  const health::ProbeMatrix matrix = anything ? matrix_.Matrix(pairs, judge_.verdicts()) : health::ProbeMatrix();
  const bool others_alive = OthersAlive();
  for (const std::string& name : order_) {
    if (!nics_.at(name).link_up || sockets_.Drops(name)) continue;
    const health::Fault fault = health::Localise(matrix, {node_, name});
    Do(name, judge_.Judge(name, {.fault = fault, .pairs = pairs, .others_alive = others_alive}, seams_.executor->Now()));
  }
  JudgeLarge(pairs);
}

void RailWatch::Do(const std::string& nic, const std::vector<health::RailAction>& actions) {
  const Nanos now = seams_.executor->Now();
  for (const health::RailAction& action : actions) {
    switch (action.what) {
      case health::RailAction::What::kReport: outputs_.evidence(action.evidence); break;
      case health::RailAction::What::kChanged: OnVerdictChanged(); break;
      case health::RailAction::What::kSuspect: Suspect(nic); break;
      case health::RailAction::What::kAsk: prober_.Ask({{node_, nic}, action.peer}, now); break;
      case health::RailAction::What::kRenew: prober_.Renew({node_, nic}, now); break;
    }
  }
}

bool RailWatch::OthersAlive() const {
  const Nanos now = seams_.executor->Now();
  return std::any_of(view_->nodes().begin(), view_->nodes().end(),
                     [&](const auto& node) { return node.first != node_ && now - node.second.last_received < health::kNodeLease; });
}

void RailWatch::OnVerdictChanged() {
  reported_.prober_revision = 0;
  outputs_.on_state();
}

void RailWatch::UpdateTargets() {
  targets_changed_ = false;
  std::vector<health::RailTarget> targets = ChooseRailTargets(node_, order_, cables_, *view_, job_peers_, suspected_.ports);
  if (std::exchange(targets_, targets) == targets) return;
  outputs_.on_targets(targets);
  prober_.SetTargets(std::move(targets), seams_.executor->Now());
}

void RailWatch::UpdateSuspected() {
  health::RailMatrix::Suspected suspected = matrix_.FindSuspected();
  if (suspected.ports != suspected_.ports) targets_changed_ = true;
  suspected_ = std::move(suspected);
}

void RailWatch::UpdatePeers() {
  const uint64_t since = std::exchange(known_changes_, view_->changes());
  for (const auto& [name, entry] : view_->nodes()) {
    if (entry.changes <= since || name == node_) continue;
    std::set<std::string> addresses;
    for (const health::NicStatus& nic : entry.state.nics) addresses.insert(nic.identity.address);
    keys_.SetPeer(name, entry.state.probe_nonce, entry.state.probe_key, std::move(addresses));
    known_peers_.insert(name);
  }
  if (known_peers_.size() < view_->nodes().size()) return;
  std::erase_if(known_peers_, [&](const std::string& name) {
    const bool gone = view_->Find(name) == nullptr;
    if (gone) keys_.RemovePeer(name);
    if (gone) last_messages_.erase(name);
    if (gone) std::erase_if(given_up_, [&](const health::NicKey& nic) { return nic.node == name; });
    return gone;
  });
}

void RailWatch::UpdateGivenUp() {
  const uint64_t since = std::exchange(seen_changes_, view_->changes());
  for (const auto& [name, entry] : view_->nodes()) {
    if (entry.changes <= since || name == node_) continue;
    const health::NodeState& state = entry.state;
    for (const health::NicStatus& nic : state.nics)
      if (IsGivenUp(nic)) given_up_.insert({name, nic.identity.name});
    for (auto nic = given_up_.lower_bound({name, ""}); nic != given_up_.end() && nic->node == name;) {
      const health::NicStatus* const status = state.Find(nic->nic);
      if (status != nullptr && IsGivenUp(*status)) {
        ++nic;
        continue;
      }
      prober_.Renew(*nic, seams_.executor->Now());
      nic = given_up_.erase(nic);
    }
  }
}

}  // namespace r2cc::daemon
