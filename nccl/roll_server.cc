#include "nccl/roll_server.h"

#include <netinet/in.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <thread>
#include <vector>

namespace r2cc::nccl {

RollServer* RollServer::Start(sockaddr_storage* address, socklen_t bytes, uint64_t nonce, size_t rolls_max) {
  const int listener = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return nullptr;
  if (bind(listener, reinterpret_cast<sockaddr*>(address), bytes) != 0 || listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(address), &bytes) != 0) {
    close(listener);
    return nullptr;
  }
  std::unique_ptr<RollServer> server(new RollServer(listener, nonce, rolls_max));
  // The program's signals are for the program's threads.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  struct Restore {
    const sigset_t* mask;
    ~Restore() { pthread_sigmask(SIG_SETMASK, mask, nullptr); }
  } const restore{&before};
  try {
    std::thread thread([raw = server.get()] { raw->Serve(); });
    pthread_setname_np(thread.native_handle(), "r2cc-roll");
    thread.detach();
  } catch (const std::system_error&) {
    // The system has no thread left.
    close(listener);
    return nullptr;
  }
  return server.release();
}

void RollServer::Serve() {
  const SteadyClock clock;
  for (;;) {
    const bool is_full = clock.Now() < accepts_from_;
    const bool is_crowded = connections_.size() >= kConnectionsMax;
    const bool accepts = !is_full && !is_crowded;
    std::vector<pollfd> files = {{listener_, static_cast<short>(accepts ? POLLIN : 0), 0}};
    for (const Connection& connection : connections_) files.push_back({connection.fd, POLLIN, 0});
    const Nanos pause = is_full ? kFullPause : is_crowded ? kCrowdedMax : kNanosPerSecond;
    poll(files.data(), files.size(), connections_.empty() && !is_full ? -1 : static_cast<int>(pause / kNanosPerMs));
    const Nanos now = clock.Now();
    size_t at = 1;
    for (auto connection = connections_.begin(); connection != connections_.end(); ++at) {
      const Nanos most = is_crowded ? kCrowdedMax : kConnectionMax;
      const bool is_over = (files[at].revents != 0 && !Receive(&*connection, now)) || now - connection->since > most;
      if (is_over) close(connection->fd);
      connection = is_over ? connections_.erase(connection) : std::next(connection);
    }
    if (files[0].revents != 0) Accept(now);
  }
}

void RollServer::Accept(Nanos now) {
  while (connections_.size() < kConnectionsMax) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      // Without a file for it the connection waits in the queue, and poll() would return at once.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) accepts_from_ = now + kFullPause;
      return;
    }
    connections_.push_back({.fd = fd, .since = now, .bytes = {}});
  }
}

bool RollServer::Receive(Connection* connection, Nanos now) {
  const ssize_t got = recv(connection->fd, connection->bytes + connection->got, sizeof(connection->bytes) - connection->got, 0);
  if (got < 0) return errno == EAGAIN || errno == EINTR;
  if (got == 0) return false;
  connection->got += static_cast<size_t>(got);
  if (connection->got < sizeof(connection->bytes)) return true;
  Answer(*connection, now);
  return false;
}

std::optional<Verdict> RollServer::Decide(const RollRequest& request, Nanos now) {
  // No roll is ever forgotten, so all ranks of the communicator learn this.
  if (rolls_.size() >= rolls_max_ && rolls_.count(request.key) == 0) return Verdict{Verdict::Kind::kNoRoom};
  Roll& roll = rolls_[request.key];
  if (!roll.CheckIn({request.rank, request.ranks, request.every, request.release})) return std::nullopt;
  if (request.wants == 1) roll.Want(now);
  return roll.Decide(now);
}

void RollServer::Answer(const Connection& connection, Nanos now) {
  const auto request = ParseRollRequest(connection.bytes);
  if (!request.has_value() || request->nonce != nonce_) return;
  const auto verdict = Decide(*request, now);
  if (!verdict.has_value()) return;
  const RollReply reply{.kind = static_cast<uint32_t>(verdict->kind), .rank = verdict->rank, .speaker = verdict->speaker};
  // A fresh connection has room for it. A rank that does not get it asks again.
  (void)!send(connection.fd, &reply, sizeof(reply), MSG_NOSIGNAL);
}

}  // namespace r2cc::nccl
