#include "daemon/rpc/peer_listener.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "daemon/rpc/listen_socket.h"

namespace r2cc::daemon {
namespace {

// A client that connects without end does not keep the thread from those that are connected.
constexpr int kAcceptsPerTurn = 16;
// After a connection could not be taken, for want of descriptors mostly: they come back as others leave.
constexpr Nanos kPause = 100 * kNanosPerMs;
// The first byte of a TLS record with a greeting, and of HTTP/2's "PRI * HTTP/2.0".
constexpr unsigned char kTlsBegins = 0x16;
constexpr unsigned char kHttp2Begins = 'P';

}  // namespace

absl::StatusOr<std::unique_ptr<PeerListener>> PeerListener::Start(EventLoop* loop, const std::string& listen, Takers takers,
                                                                  Refusals* refusals) {
  const auto fd = ListenOn(listen);
  if (!fd.ok())
    return absl::UnavailableError(absl::StrCat("cannot listen for peers on ", listen, ": ", fd.status().message(),
                                               "; set listen in the configuration, or end what has the port (`ss -ltnp`)"));
  std::unique_ptr<PeerListener> listener(new PeerListener(loop, *fd, PortOf(*fd), std::move(takers), refusals));
  loop->RunAndWait([raw = listener.get()] { raw->Watch(); });
  return listener;
}

PeerListener::~PeerListener() {
  loop_->RunAndWait([this] {
    for (TimerId* timer : {&pause_, &timer_})
      if (*timer != 0) loop_->Cancel(std::exchange(*timer, 0));
    loop_->RemoveFd(fd_);
    while (!silent_.empty()) Drop(silent_.begin());
  });
  close(fd_);
}

void PeerListener::Watch() {
  pause_ = 0;
  (void)loop_->AddFd(fd_, EPOLLIN, [this](uint32_t) { Accept(); });
}

void PeerListener::Accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    const int connection = accept4(fd_, reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (connection >= 0) {
      Take(connection, AddressText(address));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    LogWarning("the daemons' port accepts no connection for a moment", {{"reason", std::strerror(errno)}});
    loop_->RemoveFd(fd_);
    pause_ = loop_->RunAfter(kPause, [this] { Watch(); });
    return;
  }
}

void PeerListener::Take(int fd, std::string address) {
  // Small messages, one after the other: what gRPC sets on connections that it takes itself.
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  if (silent_.size() >= kSilentMax) {
    refusals_->Count("peers", "too-many", silent_.front().address, "a silent connection, closed for others that wait");
    Drop(silent_.begin());
  }
  const auto connection = silent_.insert(silent_.end(), {fd, std::move(address), loop_->Now() + kSilentFor});
  if (!loop_->AddFd(fd, EPOLLIN | EPOLLRDHUP, [this, connection](uint32_t) { Look(connection); }).ok()) return Drop(connection);
  if (timer_ == 0) ArmTimer();
}

void PeerListener::Look(std::list<Silent>::iterator connection) {
  unsigned char first = 0;
  const ssize_t got = recv(connection->fd, &first, 1, MSG_PEEK);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return Drop(connection);  // a look whether somebody listens
  const std::function<void(int, const std::string&)>* taker = nullptr;
  if (first == kTlsBegins) {
    taker = &takers_.tls;
    if (!*taker)
      refusals_->Count("peers", "tls", connection->address, "it uses TLS, and this daemon has none: set tls in the configuration");
  } else if (first == kHttp2Begins) {
    taker = &takers_.clear;
    if (!*taker) refusals_->Count("peers", "no-tls", connection->address, "it does not use TLS, so it cannot be authenticated");
  } else {
    refusals_->Count("peers", "garbage", connection->address, "it uses no known protocol");
  }
  if (taker == nullptr || !*taker) return Drop(connection);
  loop_->RemoveFd(connection->fd);
  const int fd = connection->fd;
  const std::string address = std::move(connection->address);
  silent_.erase(connection);
  (*taker)(fd, address);
}

void PeerListener::Drop(std::list<Silent>::iterator connection) {
  loop_->RemoveFd(connection->fd);
  close(connection->fd);
  silent_.erase(connection);
}

void PeerListener::ArmTimer() {
  timer_ = 0;
  const Nanos now = loop_->Now();
  while (!silent_.empty() && silent_.front().until <= now) {
    refusals_->Count("peers", "silent", silent_.front().address, "a silent connection");
    Drop(silent_.begin());
  }
  if (!silent_.empty()) timer_ = loop_->RunAfter(silent_.front().until - now, [this] { ArmTimer(); });
}

}  // namespace r2cc::daemon
