#include "daemon/rails/rdma_paths.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/core/hash.h"

namespace r2cc::daemon {

RdmaPaths::~RdmaPaths() {
  for (const auto& [key, path] : paths_) pairs_->Drop(path.id);
  for (const auto& [when, id] : retired_) pairs_->Drop(id);
}

void RdmaPaths::SetPort(const std::string& nic, const std::optional<health::RdmaPortName>& port, Nanos now) {
  if (pairs_ == nullptr) return;
  ports_.erase(nic);
  // At once: a device that is gone may wait for the processes that have it open. The state of its port explains the rest.
  for (auto& [key, path] : paths_)
    if (key.own.nic == nic) pairs_->Drop(std::exchange(path.id, {}));
  std::erase_if(paths_, [&](const auto& path) { return path.first.own.nic == nic; });
  for (const auto& [when, id] : std::exchange(retired_, {})) pairs_->Drop(id);
  if (port.has_value()) ports_[nic] = *port;
  Choose(now);
  ReportFault(nic);
  outputs_.on_report();
}

void RdmaPaths::SetTargets(const std::vector<health::RailTarget>& targets, Nanos now) {
  if (pairs_ == nullptr) return;
  targets_ = targets;
  std::stable_partition(targets_.begin(), targets_.end(), [](const health::RailTarget& target) { return target.active; });
  Choose(now);
}

void RdmaPaths::Choose(Nanos now) {
  std::set<health::PairKey> chosen;
  for (const health::RailTarget& target : targets_)
    if (ports_.contains(target.key.own.nic) && chosen.size() < health::kRdmaEndsMax) chosen.insert(target.key);
  for (auto& [key, path] : paths_)
    if (!chosen.contains(key) && path.id != health::RdmaPairs::Id{}) retired_.emplace_back(now + kRdmaRetire, path.id);
  if (std::erase_if(paths_, [&](const auto& path) { return !chosen.contains(path.first); }) > 0) outputs_.on_report();
  for (const health::PairKey& key : chosen) paths_.try_emplace(key);
}

void RdmaPaths::OnPing(const health::RailPing& ping, Nanos now) {
  while (!retired_.empty() && retired_.front().first <= now) {
    pairs_->Drop(retired_.front().second);
    retired_.pop_front();
  }
  const health::PairKey key = {{node_, ping.nic}, ping.peer};
  const auto found = paths_.find(key);
  const health::NodeEntry* const entry = view_->Find(ping.peer.node);
  if (found == paths_.end() || entry == nullptr) return;
  Path& path = found->second;
  if (std::exchange(path.incarnation, entry->state.epoch.incarnation) != entry->state.epoch.incarnation) {
    // The former run's end is gone. Failures since then prove nothing.
    if (path.end.has_value() && path.end->meets != 0) Abandon(&path);
    path.judge.Forget();
    path.back_off.Reset();
    path.make_at = now;
  }
  if (path.end.has_value() && path.end->meets != 0 && !path.connecting) Judge(&path, ping.answered_sent, now);
  if (path.id == health::RdmaPairs::Id{} && now >= path.make_at) Make(key, &path, now);
  const std::string* const reported = entry->state.RdmaEndOf(ping.peer.nic, key.own);
  const std::optional<health::RdmaEnd> peer = reported == nullptr ? std::nullopt : health::DecodeRdmaEnd(*reported);
  // It takes no such probes, or not any more.
  if (!peer.has_value()) path.judge.Forget();
  if (path.end.has_value() && !path.connecting) {
    switch (health::NextRdmaStep(*path.end, peer)) {
      case health::RdmaStep::kWait: break;
      case health::RdmaStep::kConnect: Connect(key, &path, *peer); break;
      case health::RdmaStep::kWrite: Write(&path, now); break;
      case health::RdmaStep::kRenew: Abandon(&path); break;
    }
  }
  ReportFault(ping.nic);
}

void RdmaPaths::Make(const health::PairKey& key, Path* path, Nanos now) {
  const health::NicStatus* const nic = view_->Find(key.own);
  const health::RdmaPortName& port = ports_.at(key.own.nic);
  const health::RdmaPlace place = {port.device, port.port, nic == nullptr ? "" : nic->identity.address};
  path->make_at = now + path->back_off.Next();
  path->id = pairs_->Make(place, NextPsn(), [this, key](health::RdmaPairs::Id id, const std::optional<health::RdmaEnd>& end) {
    Path* const made = Find(key, id);
    if (made == nullptr) return;
    if (!end.has_value()) return Abandon(made);
    made->end = end;
    Publish(made);
  });
}

void RdmaPaths::Connect(const health::PairKey& key, Path* path, const health::RdmaEnd& peer) {
  path->connecting = true;
  pairs_->Connect(path->id, peer, [this, key, id = path->id, number = peer.number](bool connected) {
    Path* const path = Find(key, id);
    if (path == nullptr) return;
    path->connecting = false;
    if (!connected) return Abandon(path);
    path->end->meets = number;
    Publish(path);
  });
}

void RdmaPaths::Judge(Path* path, Nanos udp_answered_sent, Nanos now) {
  bool failed = !path->sent.empty() && now - path->sent.front() >= kRdmaStuck;
  for (const verbs::Status status : pairs_->Poll(path->id)) {
    if (path->sent.empty()) break;
    if (status != verbs::Status::kSuccess) {
      failed = true;
      break;
    }
    path->sent.pop_front();
    path->judge.Answered();
    path->back_off.Reset();
  }
  if (!failed) return;
  // The others are flushed, or will be.
  for (const Nanos sent : path->sent) path->judge.Missed(sent, udp_answered_sent);
  Abandon(path);
}

void RdmaPaths::Write(Path* path, Nanos now) {
  if (path->sent.size() >= health::kRdmaWritesMost) return;
  if (!pairs_->Write(path->id)) return Abandon(path);
  path->sent.push_back(now);
}

void RdmaPaths::Abandon(Path* path) {
  pairs_->Drop(std::exchange(path->id, {}));
  path->end.reset();
  path->connecting = false;
  path->sent.clear();
}

void RdmaPaths::Publish(Path* path) {
  path->reported = health::EncodeRdmaEnd(*path->end);
  outputs_.on_report();
}

void RdmaPaths::ReportFault(const std::string& nic) {
  std::vector<health::RdmaPathStatus> statuses;
  for (const auto& [key, path] : paths_)
    if (key.own.nic == nic) statuses.push_back({key.peer, path.judge.state()});
  const std::string fault = health::RdmaFault(statuses);
  if (std::exchange(reported_[nic], fault) != fault) outputs_.on_fault(nic, fault);
}

RdmaPaths::Path* RdmaPaths::Find(const health::PairKey& key, health::RdmaPairs::Id id) {
  const auto path = paths_.find(key);
  return path == paths_.end() || path->second.id != id ? nullptr : &path->second;
}

// So that no packet of a former queue pair of the same number fits in.
uint32_t RdmaPaths::NextPsn() {
  const std::array<uint64_t, 2> words = {seed_, ++made_};
  return static_cast<uint32_t>(Fnv1a64({reinterpret_cast<const char*>(words.data()), sizeof(words)}) & 0xff'ffff);
}

std::vector<health::RdmaEndReport> RdmaPaths::Report() const {
  std::vector<health::RdmaEndReport> report;
  for (const auto& [key, path] : paths_)
    if (!path.reported.empty()) report.push_back({key.own.nic, key.peer, path.reported});
  return report;
}

}  // namespace r2cc::daemon
