#include "nccl/roll_server.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <thread>

namespace r2cc::nccl {

RollServer* RollServer::Start(sockaddr_storage* address, socklen_t bytes, uint64_t nonce, size_t rolls_max) {
  const int listener = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (listener < 0) return nullptr;
  if (bind(listener, reinterpret_cast<sockaddr*>(address), bytes) != 0 || listen(listener, SOMAXCONN) != 0 ||
      getsockname(listener, reinterpret_cast<sockaddr*>(address), &bytes) != 0) {
    close(listener);
    return nullptr;
  }
  std::unique_ptr<RollServer> server(new (std::nothrow) RollServer(listener, nonce, rolls_max));
  if (server == nullptr) {
    close(listener);
    return nullptr;
  }
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
  } catch (const std::exception&) {
    // The system has no thread left, or no memory.
    close(listener);
    return nullptr;
  }
  return server.release();
}

void RollServer::Serve() {
  const SteadyClock clock;
  for (;;) {
    const bool is_full = clock.Now() < accepts_from_;
    const bool is_crowded = connected_ == kConnectionsMax;
    const bool accepts = !is_full && !is_crowded;
    files_[0] = {listener_, static_cast<short>(accepts ? POLLIN : 0), 0};
    for (size_t at = 0; at < connected_; ++at) files_[at + 1] = {connections_[at].fd, POLLIN, 0};
    const Nanos pause = is_full ? kFullPause : is_crowded ? kCrowdedMax : kNanosPerSecond;
    poll(files_.data(), connected_ + 1, connected_ == 0 && !is_full ? -1 : static_cast<int>(pause / kNanosPerMs));
    const Nanos now = clock.Now();
    size_t kept = 0;
    for (size_t at = 0; at < connected_; ++at) {
      Connection& connection = connections_[at];
      const Nanos most = is_crowded ? kCrowdedMax : kConnectionMax;
      const bool is_over = (files_[at + 1].revents != 0 && !Receive(&connection, now)) || now - connection.since > most;
      if (is_over)
        close(connection.fd);
      else
        connections_[kept++] = connection;
    }
    connected_ = kept;
    if (files_[0].revents != 0) Accept(now);
  }
}

void RollServer::Accept(Nanos now) {
  while (connected_ < kConnectionsMax) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
      // Without a file for it the connection waits in the queue, and poll() would return at once.
      if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) accepts_from_ = now + kFullPause;
      return;
    }
    connections_[connected_++] = {.fd = fd, .since = now};
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
  try {
    Roll& roll = rolls_[request.key];
    if (!roll.CheckIn({request.rank, request.ranks, request.every, request.release})) return std::nullopt;
    if (request.wants == 1) roll.Want(now);
    return roll.Decide(now);
  } catch (const std::bad_alloc&) {
    return std::nullopt;
  }
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
