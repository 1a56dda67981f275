#include "daemon/rails/rail_sockets.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "base/log.h"

namespace r2cc::daemon {
namespace {

// How often a socket that could not be opened is tried again.
constexpr Nanos kOpenInterval = kNanosPerSecond;
// Each NIC has its own limit, because any sender on its rail can invent addresses and fill the log with them.
constexpr Nanos kBlockedLogInterval = 60 * kNanosPerSecond;

}  // namespace

void RailSockets::Add(const health::NicIdentity& identity, bool link_up) {
  Rail& rail = rails_[identity.name];
  rail.identity = identity;
  rail.link_up = link_up;
  if (running_) Open();
}

void RailSockets::Start(uint16_t port) {
  running_ = true;
  port_ = port;
  Open();
}

void RailSockets::Take(health::DatagramFilter filter) {
  filter_ = std::move(filter);
  for (auto& [name, rail] : rails_)
    if (rail.socket != nullptr) rail.socket->Take(filter_);
}

void RailSockets::Stop() {
  running_ = false;
  for (auto& [name, rail] : rails_) rail.socket.reset();
}

void RailSockets::Tick() {
  if (executor_->Now() - opened_ >= kOpenInterval) Open();
  for (auto& [name, rail] : rails_) {
    if (rail.socket == nullptr) continue;
    Count(name, &rail);
    NoteBlocked(name, &rail);
  }
}

// A peer whose address somebody forges is kept out, too: its pairs are not judged meanwhile.
void RailSockets::NoteBlocked(const std::string& name, Rail* rail) {
  const std::vector<std::string>& now = rail->socket->blocked();
  const auto news = std::find_if(now.begin(), now.end(), [&](const std::string& source) {
    return std::find(rail->blocked.begin(), rail->blocked.end(), source) == rail->blocked.end();
  });
  const bool may_log = rail->blocked_logged == 0 || executor_->Now() - rail->blocked_logged >= kBlockedLogInterval;
  if (news != now.end() && may_log) {
    rail->blocked_logged = executor_->Now();
    LogWarning("rate limit: probes from an address are dropped for 10 s, because it sends more than a daemon does",
               {{"nic", name}, {"address", *news}, {"addresses", now.size()}});
  }
  rail->blocked = now;
  for (const std::string& source : now) outputs_.on_drops(name, source);
}

void RailSockets::Count(const std::string& name, Rail* rail) {
  const health::RailSocketCounts& counts = rail->socket->counts();
  const uint64_t dropped = counts.dropped_by_kernel - std::exchange(rail->dropped, counts.dropped_by_kernel);
  const uint64_t paused = counts.paused - std::exchange(rail->paused, counts.paused);
  filtered_ += counts.filtered - std::exchange(rail->filtered, counts.filtered);
  over_rate_ += counts.over_rate - std::exchange(rail->over_rate, counts.over_rate);
  overflowed_ += dropped;
  if (dropped + paused > 0) OnDrops(name, rail, dropped);
}

void RailSockets::SetLink(const std::string& nic, bool up) {
  Rail& rail = rails_.at(nic);
  rail.link_up = up;
  if (!up) {
    rail.socket.reset();
    rail.trouble.clear();
  } else if (running_) {
    Open();
  }
}

void RailSockets::SetAddress(const std::string& nic, const std::string& address) {
  Rail& rail = rails_.at(nic);
  rail.identity.address = address;
  rail.socket.reset();
  if (running_) Open();
}

void RailSockets::Open() {
  opened_ = executor_->Now();
  for (auto& [name, rail] : rails_) {
    if (rail.socket != nullptr || !rail.link_up) continue;
    std::string trouble = OpenOne(name, &rail);
    const bool news = rail.socket != nullptr || trouble != rail.trouble;
    if (!trouble.empty() && trouble != rail.trouble) LogWarning("a NIC's rail is not probed", {{"nic", name}, {"reason", trouble}});
    rail.trouble = std::move(trouble);
    if (news) outputs_.on_state();
  }
}

std::string RailSockets::OpenOne(const std::string& name, Rail* rail) {
  if (rail->identity.address.empty()) return "it has no address";
  const health::DatagramHandler handler = {[this, name](const std::vector<health::Datagram>& batch) { OnBatch(name, batch); },
                                           [this](const health::DatagramError&) { ++icmp_errors_; }};
  health::RailBinding binding = {rail->identity.interface, rail->identity.address, port_};
  auto socket = datagrams_->Open(binding, handler);
  if (absl::IsAlreadyExists(socket.status())) {
    LogWarning("a NIC's rail probes come to another port, which a firewall may not know",
               {{"nic", name}, {"reason", std::string(socket.status().message())}});
    binding.port = 0;
    socket = datagrams_->Open(binding, handler);
  }
  if (!socket.ok()) return std::string(socket.status().message());
  rail->socket = *std::move(socket);
  rail->socket->Take(filter_);
  rail->dropped = rail->paused = rail->filtered = rail->over_rate = 0;
  rail->blocked.clear();
  return "";
}

// A late packet is as good as lost: real answers wait behind a flood.
void RailSockets::OnDrops(const std::string& name, Rail* rail, uint64_t dropped) {
  const bool news = !DropsNow(*rail);
  rail->dropped_at = executor_->Now();
  if (news) {
    LogWarning("a NIC is not judged by its probes: this kernel drops datagrams on it, as in a flood",
               {{"nic", name}, {"dropped", dropped}});
    outputs_.on_state();
  }
  outputs_.on_drops(name, "");
}

void RailSockets::OnBatch(const std::string& name, const std::vector<health::Datagram>& batch) {
  Rail& rail = rails_.at(name);
  if (rail.socket != nullptr) Count(name, &rail);
  outputs_.on_batch(name, batch);
}

absl::Status RailSockets::Send(const std::string& nic, const health::DatagramAddress& to, std::string_view bytes) {
  const Rail& rail = rails_.at(nic);
  return rail.socket != nullptr ? rail.socket->Send(to, bytes) : absl::UnavailableError("its socket is not open");
}

absl::Status RailSockets::SendOnLink(const std::string& nic, const health::DatagramAddress& to, std::string_view bytes) {
  const Rail& rail = rails_.at(nic);
  return rail.socket != nullptr ? rail.socket->SendOnLink(to, bytes) : absl::UnavailableError("its socket is not open");
}

uint16_t RailSockets::port(const std::string& nic) const {
  const Rail& rail = rails_.at(nic);
  return rail.socket == nullptr ? uint16_t{0} : rail.socket->port();
}

bool RailSockets::Drops(const std::string& nic) const { return DropsNow(rails_.at(nic)); }

std::string RailSockets::trouble(const std::string& nic) const {
  const Rail& rail = rails_.at(nic);
  if (!rail.trouble.empty()) return "not probed: " + rail.trouble;
  return DropsNow(rail) ? "not judged by probes: its own kernel drops datagrams (a flood?)" : "";
}

}  // namespace r2cc::daemon
