#include "daemon/http/http_server.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/log.h"
#include "daemon/http/http_connection.h"
#include "daemon/rpc/listen_socket.h"

namespace r2cc::daemon {
namespace {

constexpr size_t kChunkBytes = 16 << 10;
// The part of an answer that the kernel keeps for a client that does not read.
constexpr int kSendBufferBytes = 256 << 10;
constexpr Nanos kSweepInterval = kNanosPerSecond;
// A client that connects without end does not keep the thread from those that are connected.
constexpr int kAcceptsPerTurn = 16;
// After a connection could not be taken, for want of descriptors mostly.
constexpr Nanos kPause = 100 * kNanosPerMs;

}  // namespace

HttpServer::HttpServer(Parts parts, const std::string& listen)
    : parts_(std::move(parts)),
      listen_(listen),
      clear_(parts_.tls == nullptr),
      authenticator_(parts_.tls, /*insecure=*/false, parts_.refusals, kHttpListener),
      server_tls_(TlsProtocol::kHttp1, "the HTTP port"),
      thread_("r2ccd-http") {
  thread_.loop().RunAndWait([this] {
    answers_ = std::make_unique<HttpAnswers>(parts_.backend, &thread_.loop());
    Listen();
  });
  listener_ = parts_.backend->events().Listen([this] {
    if (streams_ > 0 && !woken_.exchange(true)) thread_.loop().Post([this] { WakeStreams(); });
  });
}

HttpServer::~HttpServer() {
  parts_.backend->events().Unlisten(listener_);
  thread_.loop().RunAndWait([this] {
    for (TimerId* const timer : {&sweep_, &again_})
      if (*timer != 0) thread_.loop().Cancel(std::exchange(*timer, 0));
    while (!connections_.empty()) End(connections_.begin()->second.get());
    answers_.reset();
    if (fd_ < 0) return;
    thread_.loop().RemoveFd(fd_);
    close(std::exchange(fd_, -1));
  });
}

void HttpServer::Listen() {
  again_ = 0;
  std::string alarm;
  if (fd_ < 0) {
    const auto fd = ListenOn(listen_);
    if (fd.ok()) {
      fd_ = *fd;
      port_ = PortOf(fd_);
      LogInfo("r2ccd serves HTTP", {{"listen", listen_}, {"port", port_.load()}});
    } else {
      alarm = absl::StrCat("no metrics and no health over HTTP: cannot listen on ", listen_, ": ", fd.status().message(),
                           "; set http { listen } in the configuration");
    }
  }
  if (fd_ >= 0) (void)thread_.loop().AddFd(fd_, EPOLLIN, [this](uint32_t) { Accept(); });
  if (std::exchange(logged_alarm_, alarm) != alarm) {
    if (!alarm.empty()) LogWarning(alarm);
    parts_.alarm(alarm);
  }
  if (fd_ < 0) again_ = thread_.loop().RunAfter(kListenInterval, [this] { Listen(); });
}

void HttpServer::Accept() {
  for (int i = 0; i < kAcceptsPerTurn; ++i) {
    sockaddr_storage address{};
    socklen_t size = sizeof(address);
    const int fd = accept4(fd_, reinterpret_cast<sockaddr*>(&address), &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      Take(fd, AddressText(address));
      continue;
    }
    if (errno == EINTR || errno == ECONNABORTED) continue;
    if (errno == EAGAIN) return;
    LogWarning("the HTTP port accepts no connection for a moment", {{"reason", std::strerror(errno)}});
    thread_.loop().RemoveFd(fd_);
    again_ = thread_.loop().RunAfter(kPause, [this] { Listen(); });
    return;
  }
}

bool HttpServer::MakeRoom(const std::string& address) {
  if (connections_.size() < kConnectionsMax) return true;
  Connection* idle = nullptr;
  for (const auto& [id, connection] : connections_) {
    const bool asks = connection->state != Connection::State::kReading && connection->state != Connection::State::kGreeting;
    if (!asks && (idle == nullptr || connection->deadline < idle->deadline)) idle = connection.get();
  }
  const char* which = ", one that asked nothing for longest";
  for (auto at = connections_.begin(); !clear_ && idle == nullptr && at != connections_.end(); ++at)
    if (at->second->pem.empty()) idle = at->second.get(), which = ", the oldest one without a certificate";
  parts_.refusals->Count(kHttpListener, "too-many", idle == nullptr ? address : idle->address,
                         absl::StrCat("a connection beyond ", kConnectionsMax, idle == nullptr ? "" : which));
  if (idle != nullptr) End(idle);
  return idle != nullptr;
}

void HttpServer::Take(int fd, std::string address) {
  if (!MakeRoom(address)) {
    close(fd);
    return;
  }
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &kSendBufferBytes, sizeof(kSendBufferBytes));
  auto connection = std::make_unique<Connection>();
  SSL_CTX* const context = clear_ ? nullptr : server_tls_.Get(parts_.tls.get());
  if (!clear_ && context == nullptr) {
    close(fd);
    return;
  }
  connection->end = clear_ ? std::make_unique<ClientEnd>(fd) : MakeTlsEnd(fd, context);
  if (connection->end == nullptr) return;
  connection->state = clear_ ? Connection::State::kReading : Connection::State::kGreeting;
  connection->id = ++last_id_;
  connection->address = std::move(address);
  connection->deadline = thread_.loop().Now() + kRequestFor;
  Connection* const raw = connection.get();
  connections_.emplace(raw->id, std::move(connection));
  raw->events = EPOLLIN | EPOLLRDHUP;
  if (!thread_.loop().AddFd(raw->end->fd(), raw->events, [this, id = raw->id](uint32_t events) { OnReady(id, events); }).ok())
    return End(raw);
  ArmSweep();
  OnReady(raw->id, EPOLLIN);  // what has come with the connection
}

void HttpServer::OnReady(uint64_t id, uint32_t events) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection* const connection = found->second.get();
  // Both directions are over: there is nobody to answer.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return End(connection);
  if (!Greet(connection) || !Read(connection) || !Serve(connection) || !Write(connection)) return;
  if (connection->over && connection->state == Connection::State::kReading) return End(connection);
  Watch(connection);
}

bool HttpServer::Greet(Connection* connection) {
  if (connection->state != Connection::State::kGreeting) return true;
  const absl::Status greeted = connection->end->Greet();
  if (absl::IsUnavailable(greeted)) return true;
  if (!greeted.ok()) {
    parts_.refusals->Count(kHttpListener, "greeting", connection->address, std::string(greeted.message()));
    End(connection);
    return false;
  }
  connection->pem = connection->end->Pem();
  connection->state = Connection::State::kReading;
  return true;
}

bool HttpServer::Read(Connection* connection) {
  if (connection->state == Connection::State::kGreeting) return true;
  std::array<char, kChunkBytes> chunk;
  // A client that has asked is not read further until it has its answer; but its end is noticed.
  while (connection->in.size() <= RequestParser::kHeaderBytesMax) {
    const ssize_t got = connection->end->Read(chunk.data(), chunk.size());
    if (got == ClientEnd::kAgain) return true;
    // A client may end its own direction when it has asked all.
    if (got == ClientEnd::kOver) {
      connection->over = true;
      if (connection->state != Connection::State::kStreaming) return true;
      End(connection);
      return false;
    }
    connection->in.append(chunk.data(), static_cast<size_t>(got));
  }
  return true;
}

void HttpServer::WakeStreams() {
  woken_ = false;
  std::vector<uint64_t> ids;
  for (const auto& [id, connection] : connections_)
    if (connection->state == Connection::State::kStreaming && connection->out.empty()) ids.push_back(id);
  for (const uint64_t id : ids) {
    Connection* const connection = connections_.at(id).get();
    if (Write(connection)) Watch(connection);
  }
}

bool HttpServer::Write(Connection* connection) {
  for (;;) {
    if (connection->state != Connection::State::kWriting && connection->state != Connection::State::kStreaming) return true;
    if (connection->out.empty()) {
      if (connection->state == Connection::State::kWriting) return true;
      if (!FeedStream(connection)) return false;
      if (connection->out.empty()) return true;
    }
    while (connection->out_at < connection->out.size()) {
      const ssize_t put = connection->end->Write(connection->out.data() + connection->out_at, connection->out.size() - connection->out_at);
      if (put == ClientEnd::kAgain || put == 0) return true;
      if (put == ClientEnd::kOver) {
        End(connection);
        return false;
      }
      connection->out_at += static_cast<size_t>(put);
      connection->deadline = thread_.loop().Now() + kStalledFor;
    }
    std::string().swap(connection->out);
    connection->out_at = 0;
    // The next part goes with the next turn of the loop: others have theirs in between.
    if (connection->state == Connection::State::kStreaming) return FeedStream(connection);
    if (std::exchange(connection->large, false)) --large_;
    if (connection->close) {
      connection->end->EndWrite();
      End(connection);
      return false;
    }
    connection->state = Connection::State::kReading;
    connection->deadline = thread_.loop().Now() + (connection->in.empty() ? kSilentFor : kRequestFor);
    // TLS may hold bytes that no descriptor announces.
    if (!clear_) thread_.loop().Post([this, id = connection->id] { OnReady(id, EPOLLIN); });
    // A request that came behind the one before.
    if (!Serve(connection)) return false;
  }
}

void HttpServer::Watch(Connection* connection) {
  const bool writes = connection->out_at < connection->out.size();
  const bool reads = connection->state == Connection::State::kGreeting || connection->state == Connection::State::kReading ||
                     connection->state == Connection::State::kStreaming;
  const uint32_t events = (reads ? EPOLLIN | EPOLLRDHUP : 0u) | (writes ? EPOLLOUT : 0u);
  if (events == connection->events) return;
  connection->events = events;
  (void)thread_.loop().ModifyFd(connection->end->fd(), events);
}

void HttpServer::CutOff(Connection* connection, const std::string& reason, const std::string& what) {
  parts_.refusals->Count(kHttpListener, reason, connection->address, what);
  End(connection);
}

void HttpServer::End(Connection* connection) {
  if (connection->state == Connection::State::kStreaming) --streams_;
  if (connection->large) --large_;
  thread_.loop().RemoveFd(connection->end->fd());
  connections_.erase(connection->id);
}

void HttpServer::ArmSweep() {
  if (sweep_ == 0 && !connections_.empty()) sweep_ = thread_.loop().RunAfter(kSweepInterval, [this] { Sweep(); });
}

void HttpServer::Sweep() {
  sweep_ = 0;
  const Nanos now = thread_.loop().Now();
  for (auto at = connections_.begin(); at != connections_.end();) {
    Connection* const connection = at->second.get();
    ++at;  // it may be erased
    const bool writes = connection->out_at < connection->out.size();
    if (writes && (now >= connection->deadline || now >= connection->write_by)) {
      CutOff(connection, "slow-reader", "a client that does not read its answer");
    } else if (connection->state == Connection::State::kStreaming) {
      if (writes || now < connection->heartbeat) continue;
      connection->heartbeat = now + kHeartbeatInterval;
      connection->out = std::string(kHeartbeatFrame);
      connection->deadline = now + kStalledFor;
      connection->write_by = now + kWriteFor;
      if (Write(connection)) Watch(connection);
    } else if (now < connection->deadline || writes) {
      continue;
    } else if (connection->state == Connection::State::kAsking) {
      connection->close = true;
      Respond(connection, HttpError(503, "r2ccd's core does not answer"));
      if (Write(connection)) Watch(connection);
    } else if (connection->state == Connection::State::kReading && connection->request > 0 && connection->in.empty()) {
      End(connection);  // it has asked all, it seems
    } else {
      CutOff(connection, "silent", "a connection that asked nothing");
    }
  }
  ArmSweep();
}

}  // namespace r2cc::daemon
