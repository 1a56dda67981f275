#include "netplugin/transport/tcp/tcp_probes.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

namespace r2cc::net {
namespace {

ProbeResult ProbeResultOf(int failure) { return failure == ECONNREFUSED ? ProbeResult::kRefused : ProbeResult::kSilent; }

}  // namespace

TcpProbes::~TcpProbes() {
  for (const auto& [connection, open] : open_) poller_->Remove(open.token, open.fd.get());
}

void TcpProbes::Ask(const OobAddress& peer, const Probes::Question& question) {
  const MutexLock lock(mutex_);
  probes_.Ask(peer, question);
}

std::optional<ProbeResult> TcpProbes::AnswerTo(const OobAddress& peer, const Probes::Question& question) const {
  const MutexLock lock(mutex_);
  return probes_.AnswerTo(peer, question);
}

void TcpProbes::Tick(Nanos now) {
  std::vector<Probes::ConnectionAction> actions;
  {
    const MutexLock lock(mutex_);
    probes_.Tick(now);
    actions = probes_.TakeActions();
  }
  for (const Probes::ConnectionAction& action : actions)
    action.kind == Probes::ConnectionAction::Kind::kConnect ? Connect(action.connection, action.peer) : Close(action.connection);
}

void TcpProbes::Connect(uint64_t connection, const OobAddress& peer) {
  SocketAddress to;
  int failure = 0;
  if (!ParseAddress(peer.host, peer.port, &to)) return End(connection, ProbeResult::kSilent);
  UniqueFd fd = net::Connect(*source_, to, SocketUse::kOob, &failure);
  if (!fd) {
    descriptors_->Failed(failure);
    return End(connection, ProbeResultOf(failure));
  }
  const int raw = fd.get();
  const Poller::Token token = poller_->Add(raw, EPOLLOUT, [this, connection](uint32_t) { Connected(connection); });
  open_[connection] = {std::move(fd), token};
}

void TcpProbes::Connected(uint64_t connection) {
  Open& open = open_.at(connection);
  if (const int failure = ConnectResult(open.fd.get()); failure != 0) return End(connection, ProbeResultOf(failure));
  // Nobody speaks to who does not greet: what can be read is the end.
  poller_->Remove(open.token, open.fd.get());
  open.token = poller_->Add(open.fd.get(), EPOLLIN, [this, connection, fd = open.fd.get()](uint32_t) {
    char byte;
    End(connection, recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0 ? ProbeResult::kRuns : ProbeResult::kSilent);
  });
  const MutexLock lock(mutex_);
  probes_.Connected(connection, clock_->Now());
}

void TcpProbes::End(uint64_t connection, ProbeResult result) {
  Close(connection);
  const MutexLock lock(mutex_);
  probes_.Ended(connection, result, clock_->Now());
}

void TcpProbes::Close(uint64_t connection) {
  const auto it = open_.find(connection);
  if (it == open_.end()) return;
  poller_->Remove(it->second.token, it->second.fd.get());
  open_.erase(it);
}

}  // namespace r2cc::net
