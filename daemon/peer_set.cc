#include "daemon/peer_set.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/hash.h"
#include "base/names.h"
#include "health/view/peer_evidence.h"

namespace r2cc::daemon {
namespace {

constexpr size_t kComplaintsMax = 256;
constexpr size_t kAboutBytesMax = 256;
// Where a view comes from that no daemon has sent us.
constexpr char kTheStore[] = "the store";

std::string Clean(const std::string& text) { return CleanText(text.data(), std::min(text.size(), kAboutBytesMax)); }

// Why this view cannot be understood; empty: it can.
std::string ForeignProtocol(const v1::NodeView& message) {
  if (message.protocol() == kPeerProtocol) return "";
  return absl::StrCat("the daemon of ", Clean(message.node()), " (release ", Clean(message.release()), ") speaks protocol ",
                      message.protocol(), ", this one ", kPeerProtocol, ": install one release of r2ccd on all nodes");
}

}  // namespace

PeerSet::PeerSet(const Config& config, health::ClusterView* view, EventReporter* reporter, Outputs outputs)
    : node_(config.node),
      nodes_prefix_(config.nodes_prefix()),
      nodes_max_(config.nodes_max),
      nics_per_node_(config.nics_per_node),
      view_(view),
      reporter_(reporter),
      outputs_(std::move(outputs)) {
  for (const PeerSpec& peer : config.peers) peers_[peer.node] = {.address = peer.address, .configured = true};
}

PeerTransport::Callbacks PeerSet::PeerCallbacks() {
  return {[this](const std::string& peer, const v1::NodeView& view) { OnPeerView(peer, view); },
          [this](const std::string& peer) { OnConnected(peer); },
          [this](const std::string& peer, const std::string& why) { OnLost(peer, why); }};
}

Store::Callbacks PeerSet::StoreCallbacks() {
  return {[this](const StoreChange& change) { OnStoreChange(change); }, [this](const std::string& state) { OnStoreState(state); }};
}

void PeerSet::OnPeerView(const std::string& peer, const v1::NodeView& message) {
  if (message.node().empty()) return;  // it has just started
  Peer& entry = peers_[peer];
  if (message.node() != peer) {
    const std::string error = absl::StrCat("the daemon at ", entry.address, " calls itself ", Clean(message.node()), ", not ", peer,
                                           ": correct one of the configurations");
    entry.connected = false;
    entry.error = error;
    Complain(peer, error);
    return;
  }
  if (const std::string error = ForeignProtocol(message); !error.empty()) {
    entry.connected = false;
    entry.error = error;
  }
  Receive(message, entry.address);
}

void PeerSet::Receive(const v1::NodeView& message, const std::string& from) {
  if (Take(message, from)) outputs_.on_heard(message.node());
}

bool PeerSet::Take(const v1::NodeView& message, const std::string& from) {
  if (message.node().empty()) return false;
  if (const std::string foreign = ForeignProtocol(message); !foreign.empty()) return Complain(from, "a view was refused: " + foreign);
  const Moment now = reporter_->Now();
  if (!HasName(message, from)) return false;
  auto state = FromProto(message, now, nics_per_node_);
  if (!state.ok()) return Complain(from, absl::StrCat("a view was refused: ", state.status().message()));
  const health::NodeEntry* known = view_->Find(state->node);
  if (known == nullptr && view_->nodes().size() >= nodes_max_)
    return Complain(from, absl::StrCat("a view was refused: more than ", nodes_max_, " nodes"));
  std::optional<health::NodeState> before;
  const uint64_t changes = view_->changes();
  const auto merged = view_->Merge(*std::move(state), now.monotonic_ns, &before);
  if (merged != health::ClusterView::Merged::kNew) {
    if (view_->changes() != changes) outputs_.on_view();
    return merged == health::ClusterView::Merged::kSame;
  }
  about_[message.node()] = {Clean(message.peer_address()), Clean(message.release())};
  const health::NodeState* const old = before.has_value() ? &*before : nullptr;
  const health::NodeState& after = view_->Find(message.node())->state;
  // First what the jobs wait for, then the events about it.
  outputs_.evidence(health::PeerEvidence(old, after, now.monotonic_ns));
  outputs_.on_view();
  TellChanges(old, after);
  return true;
}

NameClaims::Speaker PeerSet::Speaks(const v1::NodeView& message, const std::string& from) {
  const v1::Epoch& epoch = message.epoch();
  const std::string life = absl::StrCat(epoch.boot_time_s(), " ", epoch.daemon_start_ns(), " ", message.probe_nonce());
  const std::string address = Clean(message.peer_address());
  return {Fnv1a64(life), from.empty() || from == address ? address : absl::StrCat(address, " (heard from ", from, ")")};
}

bool PeerSet::HasName(const v1::NodeView& message, const std::string& from) {
  const NameClaims::Speaker speaker = Speaks(message, from);
  const Nanos now = reporter_->Now().monotonic_ns;
  if (message.node() == node_) {
    const bool own = speaker.life == own_.life;
    const bool stored = from == kTheStore;
    if (stored && own) own_in_store_ = true;
    // What an earlier life left in the store, before this one has put anything, is nobody's word any more.
    if (own || (stored && !own_in_store_)) return false;
    claims_.Speak(node_, own_, now);
    claims_.Speak(node_, speaker, now);
    if (const auto claim = claims_.Speak(node_, own_, now); claim.other.has_value()) TellSecond(node_, own_, *claim.other);
    return false;
  }
  const NameClaims::Claim claim = claims_.Speak(message.node(), speaker, now);
  if (claim.other.has_value()) TellSecond(message.node(), speaker, *claim.other);
  return claim.holds ||
         Complain(from, absl::StrCat("a view was refused: another daemon calls itself ", message.node(), " and was here first"));
}

void PeerSet::TellSecond(const std::string& node, const NameClaims::Speaker& one, const NameClaims::Speaker& other) {
  v1::Event event = reporter_->New("duplicate-node", absl::StrCat("two daemons call themselves ", node, ": one at ", one.address,
                                                                  ", one at ", other.address, "; give one of them another --node"));
  event.set_peer_node(node);
  reporter_->Tell(std::move(event));
}

void PeerSet::TellChanges(const health::NodeState* before, const health::NodeState& after) {
  if (before == nullptr) return;
  for (const auto& nic : after.nics) {
    const auto* old = before->Find(nic.identity.name);
    if (old != nullptr && old->state != nic.state) reporter_->TellState({after.node, nic.identity.name}, old->state, nic.state, nic.reason);
  }
}

void PeerSet::OnConnected(const std::string& peer) {
  Peer& entry = peers_[peer];
  entry.connected = true;
  entry.error.clear();
  complaints_.erase(peer);
  v1::Event event = reporter_->New("peer-connected", absl::StrCat("connected to ", peer, " (", entry.address, ")"));
  event.set_peer_node(peer);
  reporter_->Tell(std::move(event));
}

void PeerSet::OnLost(const std::string& peer, const std::string& why) {
  Peer& entry = peers_[peer];
  entry.error = Clean(why);
  if (!std::exchange(entry.connected, false)) {
    LogInfo("a peer cannot be reached yet", {{"peer", peer}, {"address", entry.address}, {"reason", entry.error}});
    return;
  }
  v1::Event event =
      reporter_->New("peer-lost", absl::StrCat("lost ", peer, " (", entry.address, "): ", entry.error, "; its last view stays"));
  event.set_peer_node(peer);
  reporter_->Tell(std::move(event));
}

void PeerSet::OnStoreChange(const StoreChange& change) {
  if (!absl::StartsWith(change.key, nodes_prefix_)) return;
  const std::string node = change.key.substr(nodes_prefix_.size());
  if (change.deleted) {
    if (node == node_) return;
    if (in_store_.erase(node) > 0) HearOf(node);
    return;
  }
  v1::NodeView message;
  if (!message.ParseFromString(change.value) || message.node() != node)
    return void(Complain(kTheStore, absl::StrCat("garbled entry ", Clean(change.key))));
  if (node == node_) return void(Take(message, kTheStore));  // ours, or a second daemon's of this name
  if (in_store_.size() < nodes_max_) in_store_.insert(node);
  Take(message, kTheStore);
  HearOf(node);
}

void PeerSet::HearOf(const std::string& node) {
  if (view_->Heard(node, reporter_->Now().monotonic_ns)) outputs_.on_view();
}

void PeerSet::OnStoreState(const std::string& state) {
  if (std::exchange(store_state_, state) == state) return;
  LogInfo("store", {{"state", state}});
  // Without the store nobody tells us of the leases' ends.
  if (!absl::StartsWith(state, "lost")) return;
  for (const std::string& node : std::exchange(in_store_, {})) HearOf(node);
}

void PeerSet::Tick() {
  const auto lost = view_->Tick(reporter_->Now().monotonic_ns, [this](const std::string& node) { return in_store_.contains(node); });
  for (const std::string& node : lost) LogWarning("nothing was heard of a node; its last view stays", {{"node", node}});
}

bool PeerSet::Complain(const std::string& from, const std::string& what) {
  if (complaints_.size() >= kComplaintsMax) complaints_.clear();
  std::string& last = complaints_[from];
  if (std::exchange(last, what) != what) LogWarning(what, {{"from", from}});
  return false;
}

std::set<std::string> PeerSet::Called(const JobPeers& job_peers) const {
  // In an order of its own for each node, so that where there are too many not everybody calls the same few. Users take turns.
  std::vector<std::pair<std::pair<size_t, uint64_t>, std::string>> ranked;
  for (const auto& [user, nodes] : job_peers) {
    std::vector<std::pair<uint64_t, std::string>> of_user;
    for (const std::string& node : nodes)
      if (node_ < node && ParseHostPort(AboutNode(node).peer_address, /*allow_port_zero=*/false).ok())
        of_user.emplace_back(Fnv1a64(node_ + " " + node), node);
    std::sort(of_user.begin(), of_user.end());
    for (size_t turn = 0; turn < of_user.size(); ++turn) ranked.push_back({{turn, of_user[turn].first}, of_user[turn].second});
  }
  std::sort(ranked.begin(), ranked.end());
  std::set<std::string> called;
  for (size_t i = 0; i < ranked.size() && called.size() < kJobPeersMax; ++i) called.insert(ranked[i].second);
  return called;
}

std::vector<PeerSpec> PeerSet::DirectPeers(const JobPeers& job_peers) {
  std::map<std::string, std::string> addresses;
  for (const std::string& node : Called(job_peers)) addresses[node] = AboutNode(node).peer_address;
  std::erase_if(peers_, [&](const auto& peer) { return !peer.second.configured && !addresses.contains(peer.first); });
  for (const auto& [node, address] : addresses) {
    Peer& peer = peers_[node];
    if (!peer.configured) peer.address = address;
  }
  std::vector<PeerSpec> peers;
  for (const auto& [node, peer] : peers_) peers.push_back({node, peer.address});
  return peers;
}

std::vector<v1::PeerStatus> PeerSet::Peers() const {
  std::vector<v1::PeerStatus> peers;
  for (const auto& [node, peer] : peers_) {
    v1::PeerStatus& status = peers.emplace_back();
    status.set_node(node);
    status.set_address(peer.address);
    status.set_connected(peer.connected);
    status.set_error(peer.error);
  }
  return peers;
}

PeerSet::About PeerSet::AboutNode(const std::string& node) const {
  const auto found = about_.find(node);
  return found == about_.end() ? About() : found->second;
}

}  // namespace r2cc::daemon
