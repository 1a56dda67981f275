#include "nccl/roll_call.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/random.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/core/unique_fd.h"
#include "nccl/roll_server.h"

namespace r2cc::nccl {
namespace {

constexpr int kExchangeMs = 2000;
constexpr Nanos kBetween = 50 * kNanosPerMs;

uint64_t RandomValue() {
  uint64_t value = 0;
  return getrandom(&value, sizeof(value), 0) == sizeof(value) ? value : 0;
}

// SplitMix64's last step: both values decide each bit.
uint64_t Mixed(uint64_t a, uint64_t b) {
  uint64_t x = a + 0x9e3779b97f4a7c15 * (b + 1);
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

bool WaitFor(const UniqueFd& socket, short events) {
  pollfd file{socket.get(), events, 0};
  int ready = 0;
  while ((ready = poll(&file, 1, kExchangeMs)) < 0 && errno == EINTR) {
  }
  return ready > 0;
}

bool Connect(const UniqueFd& socket, const RollAddress& address) {
  if (socket.get() < 0) return false;
  if (connect(socket.get(), reinterpret_cast<const sockaddr*>(&address.address), address.bytes) == 0) return true;
  if (errno != EINPROGRESS || !WaitFor(socket, POLLOUT)) return false;
  int error = 0;
  socklen_t bytes = sizeof(error);
  return getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && error == 0;
}

}  // namespace

SocketRollCall::Exchanged SocketRollCall::Exchange(bool wants) {
  const UniqueFd socket(::socket(address_.address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!Connect(socket, address_)) return Exchanged::kNothing;
  const RollRequest request{.wants = wants ? 1U : 0U,
                            .nonce = address_.nonce,
                            .key = address_.key,
                            .rank = self_.rank,
                            .ranks = self_.ranks,
                            .every = self_.every,
                            .release = self_.release};
  // A fresh connection has room for it.
  if (send(socket.get(), &request, sizeof(request), MSG_NOSIGNAL) != sizeof(request)) return Exchanged::kSent;
  std::byte bytes[sizeof(RollReply)];
  size_t got = 0;
  while (got < sizeof(bytes)) {
    if (!WaitFor(socket, POLLIN)) return Exchanged::kSent;
    const ssize_t more = recv(socket.get(), bytes + got, sizeof(bytes) - got, 0);
    if (more < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (more <= 0) return Exchanged::kSent;
    got += static_cast<size_t>(more);
  }
  const std::optional<Verdict> verdict = ParseRollReply(bytes);
  if (!verdict.has_value()) return Exchanged::kSent;
  const MutexLock lock(mutex_);
  if (verdict->kind != Verdict::Kind::kNone) decided_ = verdict;
  return Exchanged::kAnswered;
}

bool SocketRollCall::CheckIn() { return Exchange(false) != Exchanged::kNothing; }

Verdict SocketRollCall::Await() {
  const SteadyClock clock;
  Nanos last_answer = clock.Now();
  for (;;) {
    {
      const MutexLock lock(mutex_);
      if (decided_.has_value()) return *decided_;
      if (ended_ || clock.Now() - last_answer >= limit_) return {};
    }
    if (Exchange(true) == Exchanged::kAnswered) last_answer = clock.Now();
    const MutexLock lock(mutex_);
    if (!decided_.has_value()) changed_.WaitFor(mutex_, kBetween, [this]() R2CC_REQUIRES(mutex_) { return ended_; });
  }
}

void SocketRollCall::End() {
  const MutexLock lock(mutex_);
  ended_ = true;
  changed_.NotifyAll();
}

void SocketRollCalls::Note(UniqueId* id) {
  const MutexLock lock(mutex_);
  if (!server_.has_value() && !has_failed_) {
    auto address = MeetingAddress(*id);
    if (address.has_value()) {
      address->nonce = RandomValue();
      if (address->nonce == 0 || RollServer::Start(&address->address, address->bytes, address->nonce) == nullptr) address.reset();
    }
    server_ = address;
    has_failed_ = !address.has_value();
  }
  if (!server_.has_value()) return;
  RollAddress note = *server_;
  note.key = RandomValue();
  if (note.key != 0) WriteNote(note, id);
}

std::shared_ptr<RollCall> SocketRollCalls::Begin(const RollAddress& address, int ranks, int rank) {
  if (ranks < 1 || rank < 0 || rank >= ranks) return nullptr;
  const Attendee self{static_cast<uint32_t>(rank), static_cast<uint32_t>(ranks), every_, release_};
  auto call = std::make_shared<SocketRollCall>(address, self, limit_);
  // A rank that has sent nothing is missing for the one that decides.
  return call->CheckIn() ? call : nullptr;
}

std::shared_ptr<RollCall> SocketRollCalls::CheckIn(const UniqueId& id, int ranks, int rank) {
  const auto address = ReadNote(id);
  return address.has_value() ? Begin(*address, ranks, rank) : nullptr;
}

std::shared_ptr<RollCall> SocketRollCalls::CheckInSplit(const RollCall& parent, uint32_t number, int color, int ranks, int rank) {
  RollAddress address = static_cast<const SocketRollCall&>(parent).address();
  address.key = Mixed(Mixed(address.key, number), static_cast<uint32_t>(color));
  return Begin(address, ranks, rank);
}

}  // namespace r2cc::nccl
