#include "daemon/peers/peer_set.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/core/hash.h"
#include "daemon/peers/peer_texts.h"
#include "health/view/peer_evidence.h"

namespace r2cc::daemon {
namespace {

constexpr size_t kComplaintsMax = 256;
// The source of a view that no daemon has sent us.
constexpr char kTheStore[] = "the store";
// The interval of the search for nodes that have left: a walk over all nodes, for absences of days.
constexpr Nanos kForgetInterval = 60 * kNanosPerSecond;
// The least interval of reports that a node's other daemon is not believed: each of its messages may have a new boot id.
constexpr Nanos kPendingInterval = 10 * kNanosPerSecond;

}  // namespace

PeerSet::PeerSet(const Config& config, uint64_t incarnation, health::ClusterView* view, EventReporter* reporter, Outputs outputs)
    : node_(config.node),
      incarnation_(incarnation),
      nodes_prefix_(config.nodes_prefix()),
      nodes_max_(config.nodes_max),
      forget_after_(config.forget_after),
      nics_per_node_(config.nics_per_node),
      view_(view),
      reporter_(reporter),
      outputs_(std::move(outputs)),
      nic_changes_(view, reporter) {
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
    const std::string error = absl::StrCat("the daemon at ", entry.address, " has the name ", CleanAbout(message.node()), ", not ", peer,
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
  if (entry.stream == 0) entry.stream = NextStream();
  Receive(message, {entry.stream, entry.address});
}

void PeerSet::Receive(const v1::NodeView& message, const Speaker& from) {
  if (!Take(message, from)) return;
  if (message.clock_ns() != 0) about_[message.node()].clock_ahead_ns = message.clock_ns() - reporter_->Now().realtime_ns;
  outputs_.on_message(message.node());
}

bool PeerSet::Take(const v1::NodeView& message, const Speaker& from) {
  if (message.node().empty()) return false;
  if (const std::string foreign = ForeignProtocol(message); !foreign.empty()) return Complain(from.from, "a view was refused: " + foreign);
  if (message.node() == node_) {
    // Our own view comes back only through the store (OnOwnEntry).
    if (message.epoch().incarnation() != incarnation_) ReportDuplicate(node_, peer_address_, Where(message.peer_address(), from));
    return false;
  }
  auto state = FromProto(message, reporter_->Now(), nics_per_node_);
  if (!state.ok()) return Complain(from.from, absl::StrCat("a view was refused: ", state.status().message()));
  const health::NodeEntry* known = view_->Find(state->node);
  if (known == nullptr && !MakeRoom()) return Complain(from.from, absl::StrCat("a view was refused: more than ", nodes_max_, " nodes"));
  About about = {CleanAbout(message.peer_address()), CleanAbout(message.release()), message.jobs_of_other_releases()};
  return Believe(*state, about, from) && Adopt(*std::move(state), std::move(about));
}

bool PeerSet::Believe(const health::NodeState& state, const About& about, const Speaker& from) {
  using Verdict = health::Incarnations::Verdict;
  const std::string& node = state.node;
  const std::string where = Where(about.peer_address, from);
  const auto judgement = incarnations_.Judge(node, state.epoch.incarnation, {from.stream, where}, reporter_->Now().monotonic_ns);
  if (const auto twice = incarnations_.TakeDuplicate(node); twice.found) ReportDuplicate(node, twice.current_from, twice.other_from);
  if (judgement.verdict == Verdict::kCurrent) return true;
  if (judgement.verdict == Verdict::kPending) {
    if (from.stream == 0) pending_[node] = {state, about};
    ReportPending(node, where, judgement);
    return false;
  }
  // An entry that its former run left in the store counts only if that run turns out to be alive.
  const health::NodeEntry* const entry = view_->Find(node);
  if (entry != nullptr && incarnations_.EntryIs(node, judgement.before))
    pending_[node] = {entry->state, about_[node]};
  else
    pending_.erase(node);
  ReportReplaced(node, where, judgement);
  return true;
}

bool PeerSet::Adopt(health::NodeState state, About about) {
  const Moment now = reporter_->Now();
  const std::string node = state.node;
  std::optional<health::NodeState> before;
  const uint64_t changes = view_->changes();
  const auto merged = view_->Merge(std::move(state), now.monotonic_ns, &before);
  if (merged != health::ClusterView::Merged::kNew) {
    if (view_->changes() != changes) outputs_.on_view();
    return merged == health::ClusterView::Merged::kSame;
  }
  about_[node] = std::move(about);
  const health::NodeState* const old = before.has_value() ? &*before : nullptr;
  const health::NodeState& after = view_->Find(node)->state;
  // First what the jobs wait for, then the events about it.
  outputs_.evidence(health::PeerEvidence(old, after, now.monotonic_ns));
  outputs_.on_view();
  nic_changes_.Report(old, after);
  return true;
}

void PeerSet::ReportReplaced(const std::string& node, const std::string& where, const health::Incarnations::Judgement& judgement) {
  std::string text = absl::StrCat("the daemon of ", node, judgement.known_former ? " is accepted again" : " was restarted and is accepted",
                                  ", at ", where);
  if (judgement.silent > 0) absl::StrAppend(&text, "; the previous one has sent nothing for ", judgement.silent / kNanosPerMs, " ms");
  Report("peer-anew", node, text);
}

void PeerSet::ReportPending(const std::string& node, const std::string& where, const health::Incarnations::Judgement& judgement) {
  const Nanos now = reporter_->Now().monotonic_ns;
  if (reported_pending_.size() > nodes_max_) reported_pending_.clear();
  const auto [reported, fresh] = reported_pending_.try_emplace(node, now);
  if (!fresh && now - std::exchange(reported->second, now) < kPendingInterval) return;
  Report("peer-held", node,
         absl::StrCat("a view of ", node, " from ", where, " is rejected: ",
                      judgement.known_former ? "it comes from a daemon that was replaced" : "another daemon of that name is active",
                      ", at ", judgement.current_from, "; it is accepted in ", (judgement.ripe_at - now) / kNanosPerMs,
                      " ms if that one sends nothing more. If that one is the wrong one, stop it there"));
}

void PeerSet::ReportDuplicate(const std::string& node, const std::string& one, const std::string& other) {
  const std::string what =
      absl::StrCat("two daemons call themselves ", node, ": one at ", one, ", one at ", other, "; give one of them another --node");
  if (NewsOf(absl::StrCat("name ", node), what) != nullptr) Report("duplicate-node", node, what);
}

void PeerSet::Report(const std::string& kind, const std::string& node, const std::string& message) {
  v1::Event event = reporter_->New(kind, message);
  event.set_peer_node(node);
  reporter_->Report(std::move(event));
}

void PeerSet::EndStream(Peer* peer) {
  if (peer->stream != 0) incarnations_.StreamEnded(std::exchange(peer->stream, 0));
}

void PeerSet::SetConfigured(const std::vector<PeerSpec>& peers) {
  for (auto& [node, peer] : peers_) peer.configured = false;
  for (const PeerSpec& spec : peers) {
    Peer& peer = peers_[spec.node];
    // Somewhere else: what is known of the way to it is not known any more.
    if (peer.address != spec.address) {
      EndStream(&peer);
      peer = {.address = spec.address};
    }
    peer.configured = true;
  }
}

void PeerSet::OnConnected(const std::string& peer) {
  Peer& entry = peers_[peer];
  entry.connected = true;
  entry.lost = 0;
  entry.error.clear();
  complaints_.erase(peer);
  v1::Event event = reporter_->New("peer-connected", absl::StrCat("connected to ", peer, " (", entry.address, ")"));
  event.set_peer_node(peer);
  reporter_->Report(std::move(event));
}

void PeerSet::OnLost(const std::string& peer, const std::string& why) {
  Peer& entry = peers_[peer];
  EndStream(&entry);
  entry.error = CleanAbout(why);
  if (!std::exchange(entry.connected, false)) {
    LogInfo("a peer cannot be reached yet", {{"peer", peer}, {"address", entry.address}, {"reason", entry.error}});
    return;
  }
  entry.lost = reporter_->Now().monotonic_ns;
  v1::Event event =
      reporter_->New("peer-lost", absl::StrCat("lost ", peer, " (", entry.address, "): ", entry.error, "; its last view stays"));
  event.set_peer_node(peer);
  reporter_->Report(std::move(event));
}

void PeerSet::OnStoreChange(const StoreChange& change) {
  if (!absl::StartsWith(change.key, nodes_prefix_)) return;
  const std::string node = change.key.substr(nodes_prefix_.size());
  if (node == node_) return OnOwnEntry(change);
  if (change.deleted) {
    const bool lived = incarnations_.EntryIsCurrent(node);
    incarnations_.EntryGone(node);
    pending_.erase(node);
    if (lived) NoteAlive(node);
    return;
  }
  v1::NodeView message;
  if (!message.ParseFromString(change.value) || message.node() != node)
    return void(Complain(kTheStore, absl::StrCat("garbled entry ", CleanAbout(change.key))));
  Take(message, {0, kTheStore});
  if (incarnations_.EntryIsCurrent(node)) NoteAlive(node);
}

void PeerSet::OnOwnEntry(const StoreChange& change) {
  v1::NodeView message;
  const bool sound = !change.deleted && message.ParseFromString(change.value);
  if (sound && message.epoch().incarnation() == incarnation_) {
    own_entry_ = true;
    return;
  }
  // Until ours is there, it is the entry of our former run.
  if (!std::exchange(own_entry_, false)) return;
  outputs_.on_own_entry_lost();
  if (!sound) return;
  ReportDuplicate(node_, peer_address_, Where(message.peer_address(), {0, kTheStore}));
}

void PeerSet::NoteAlive(const std::string& node) {
  if (view_->NoteAlive(node, reporter_->Now().monotonic_ns)) outputs_.on_view();
}

void PeerSet::OnStoreState(const std::string& state) {
  if (std::exchange(store_state_, state) == state) return;
  LogInfo("store", {{"state", state}});
  // Without the store nobody reports the leases' ends.
  if (!absl::StartsWith(state, "lost")) return;
  std::vector<std::string> lost;
  for (const auto& [node, entry] : view_->nodes())
    if (incarnations_.EntryIsCurrent(node)) lost.push_back(node);
  for (const std::string& node : lost) NoteAlive(node);
  incarnations_.StoreLost();
  pending_.clear();
  own_entry_ = false;
}

void PeerSet::ReviewPending() {
  const Moment now = reporter_->Now();
  for (auto it = pending_.begin(); it != pending_.end();) {
    auto& [node, pending] = *it;
    const uint64_t incarnation = pending.state.epoch.incarnation;
    if (!incarnations_.EntryIs(node, incarnation)) {
      it = pending_.erase(it);
      continue;
    }
    const std::string from = Where(pending.about.peer_address, {0, kTheStore});
    const auto judgement = incarnations_.Judge(node, incarnation, {0, from}, now.monotonic_ns);
    if (judgement.verdict == health::Incarnations::Verdict::kPending) {
      ++it;
      continue;
    }
    if (judgement.verdict == health::Incarnations::Verdict::kTakesOver) ReportReplaced(node, from, judgement);
    Adopt(std::move(pending.state), std::move(pending.about));
    it = pending_.erase(it);
  }
}

absl::Status PeerSet::Forget(const std::string& node, const std::string& why) {
  if (node == node_) return absl::FailedPreconditionError(absl::StrCat(node, " is the node of this daemon"));
  const health::NodeEntry& entry = *view_->Find(node);
  const Nanos now = reporter_->Now().monotonic_ns;
  if (entry.reachable)
    return absl::FailedPreconditionError(absl::StrCat("node ", node, " is alive: it sent something ",
                                                      (now - entry.last_received) / kNanosPerMs, " ms ago; stop its r2ccd, and try again ",
                                                      health::kNodeLease / kNanosPerSecond, " s later"));
  health::NodeState gone;
  gone.node = node;
  const auto evidence = health::PeerEvidence(&entry.state, gone, now);
  Report(
      "node-forgotten", node,
      absl::StrCat("node ", node, " is forgotten: it has sent nothing for ", (now - entry.last_received) / kNanosPerSecond, " s: ", why));
  view_->Forget(node);
  incarnations_.Forget(node);
  about_.erase(node);
  pending_.erase(node);
  reported_pending_.erase(node);
  outputs_.evidence(evidence);
  outputs_.on_view();
  return absl::OkStatus();
}

void PeerSet::ForgetOld() {
  const Nanos now = reporter_->Now().monotonic_ns;
  if (now - forgot_ < kForgetInterval) return;
  forgot_ = now;
  for (const std::string& node : view_->SilentSince(now - forget_after_))
    if (!IsConfigured(node)) (void)Forget(node, "it has left");
}

bool PeerSet::MakeRoom() {
  if (view_->nodes().size() < nodes_max_) return true;
  const std::vector<std::string> silent = view_->SilentSince(INT64_MAX);
  return !silent.empty() && Forget(silent.front(), "its place is wanted").ok();
}

void PeerSet::Tick() {
  ReviewPending();
  ForgetOld();
  const auto lost =
      view_->Tick(reporter_->Now().monotonic_ns, [this](const std::string& node) { return incarnations_.EntryIsCurrent(node); });
  for (const std::string& node : lost) LogWarning("a node does not answer; its last view stays", {{"node", node}});
}

PeerSet::Complaints* PeerSet::NewsOf(const std::string& from, const std::string& what) {
  if (complaints_.size() >= kComplaintsMax && !complaints_.contains(from)) complaints_.clear();
  Complaints& complaints = complaints_[from];
  return std::exchange(complaints.last, what) == what ? nullptr : &complaints;
}

bool PeerSet::Complain(const std::string& from, const std::string& what) {
  // A text that changes all the time makes no news, and a sender at another port is no other; nor does it hide the reports of others.
  Complaints* const complaints = NewsOf(from == kTheStore ? from : from.substr(0, from.rfind(':')), what);
  if (complaints == nullptr) return false;
  if (complaints->allowed.Take(reporter_->Now().monotonic_ns))
    LogWarning(what, {{"from", from}, {"suppressed_before", std::exchange(complaints->suppressed, 0)}});
  else
    ++complaints->suppressed;
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
  for (auto peer = peers_.begin(); peer != peers_.end();) {
    const bool stays = peer->second.configured || addresses.contains(peer->first);
    if (!stays) EndStream(&peer->second);
    peer = stays ? std::next(peer) : peers_.erase(peer);
  }
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
    // The shown state of its NICs is as old.
    const Nanos lost_for = peer.lost == 0 ? 0 : reporter_->Now().monotonic_ns - peer.lost;
    status.set_error(peer.lost == 0 ? peer.error : absl::StrCat(peer.error, ", for ", lost_for / kNanosPerSecond, " s"));
    status.set_known(view_->Find(node) != nullptr);
  }
  return peers;
}

absl::StatusOr<PeerSpec> PeerSet::FindSpec(const std::string& node) const {
  const auto peer = peers_.find(node);
  const std::string address = peer != peers_.end() ? peer->second.address : AboutNode(node).peer_address;
  if (ParseHostPort(address, /*allow_port_zero=*/false).ok()) return PeerSpec{node, address};
  return absl::UnavailableError(
      absl::StrCat("the daemon of node ", node, " has not published its address; run the command on ", node, ", or name it under peers"));
}

PeerSet::About PeerSet::AboutNode(const std::string& node) const { return about_.contains(node) ? about_.at(node) : About(); }

}  // namespace r2cc::daemon
