#include "tools/perf/bootstrap.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tools/perf/clock.h"
#include "tools/perf/root_address.h"

namespace r2cc::perf {
namespace {

constexpr uint32_t kMagic = 0x46503252;  // "R2PF"
constexpr uint32_t kFrameBytesMax = 64u << 20;
constexpr int kHelloTimeoutMs = 10'000;
constexpr int kRetryMs = 50;
constexpr int kAcceptNoticeMs = 10'000;

enum FrameType : uint32_t { kHello = 1, kMessage = 2, kFailure = 3 };

struct FrameHeader {
  uint32_t magic;
  uint32_t type;
  uint32_t bytes;
};

struct Hello {
  uint32_t rank;
  uint32_t ranks;
};

std::string Errno() { return strerror(errno); }

struct Addresses {
  addrinfo* list = nullptr;
  ~Addresses() {
    if (list != nullptr) freeaddrinfo(list);
  }
};

Status Split(const std::string& host_port, std::string* host, std::string* port) {
  const size_t colon = host_port.rfind(':');
  if (colon == std::string::npos || colon + 1 == host_port.size()) return Status::Error("'" + host_port + "' is not HOST:PORT");
  *host = host_port.substr(0, colon);
  *port = host_port.substr(colon + 1);
  if (host->size() >= 2 && host->front() == '[' && host->back() == ']') *host = host->substr(1, host->size() - 2);
  return {};
}

Status Resolve(const std::string& host_port, bool passive, Addresses* addresses) {
  std::string host, port;
  R2CC_PERF_RETURN_IF_ERROR(Split(host_port, &host, &port));
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = passive ? AI_PASSIVE : 0;
  const int error = getaddrinfo(host.empty() ? nullptr : host.c_str(), port.c_str(), &hints, &addresses->list);
  if (error != 0) return Status::Error("cannot resolve '" + host_port + "': " + gai_strerror(error));
  return {};
}

// A rank whose machine is gone sends nothing: let the kernel notice within half a minute.
void Configure(int fd) {
  const int on = 1, idle_s = 10, interval_s = 5, probes = 4;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof(on));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPIDLE, &idle_s, sizeof(idle_s));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPINTVL, &interval_s, sizeof(interval_s));
  setsockopt(fd, IPPROTO_TCP, TCP_KEEPCNT, &probes, sizeof(probes));
}

std::string Text(const addrinfo& address) {
  char text[NI_MAXHOST] = "";
  getnameinfo(address.ai_addr, address.ai_addrlen, text, sizeof(text), nullptr, 0, NI_NUMERICHOST);
  return text;
}

// One of the addresses that `host` has here. Null: all addresses of the machine.
const addrinfo* ListenAddress(const std::string& host, const addrinfo* list) {
  std::vector<std::string> texts;
  std::vector<const addrinfo*> all;
  for (const addrinfo* one = list; one != nullptr; one = one->ai_next) {
    texts.push_back(Text(*one));
    all.push_back(one);
  }
  const auto chosen = ChooseListenAddress(host, texts);
  if (chosen) return all[*chosen];
  fprintf(stderr,
          "r2cc-perf: %s is %s on this machine (/etc/hosts), where no other can connect: rank 0 listens on all addresses; --root with an "
          "address has it listen on that one\n",
          host.c_str(), texts.front().c_str());
  return nullptr;
}

}  // namespace

Status ListenTcp(const std::string& host_port, int* fd, int* port) {
  Addresses addresses, all;
  std::string host, port_text;
  R2CC_PERF_RETURN_IF_ERROR(Split(host_port, &host, &port_text));
  R2CC_PERF_RETURN_IF_ERROR(Resolve(host_port, true, &addresses));
  const addrinfo* address = host.empty() ? addresses.list : ListenAddress(host, addresses.list);
  if (address == nullptr) {
    // IPv6's takes IPv4, too, where the machine has IPv6.
    const int probe = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (probe >= 0) close(probe);
    R2CC_PERF_RETURN_IF_ERROR(Resolve((probe >= 0 ? "[::]:" : "0.0.0.0:") + port_text, true, &all));
    address = all.list;
  }
  *fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1, off = 0;
  if (*fd >= 0) setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  if (*fd >= 0 && address == all.list && address->ai_family == AF_INET6) setsockopt(*fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof(off));
  sockaddr_storage bound{};
  socklen_t length = sizeof(bound);
  if (*fd < 0 || bind(*fd, address->ai_addr, address->ai_addrlen) != 0 || listen(*fd, 1024) != 0 ||
      getsockname(*fd, reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    const Status status =
        Status::Error("cannot listen on " + host_port + ": " + Errno() + "; --root names an address of rank 0's machine and a free port");
    if (*fd >= 0) close(*fd);
    *fd = -1;
    return status;
  }
  *port = ntohs(bound.ss_family == AF_INET6 ? reinterpret_cast<sockaddr_in6*>(&bound)->sin6_port
                                            : reinterpret_cast<sockaddr_in*>(&bound)->sin_port);
  return {};
}

Bootstrap::~Bootstrap() {
  for (Peer& peer : peers_) close(peer.fd);
}

Status Bootstrap::Accept(int listen_fd, int ranks, std::string_view job) {
  ranks_ = ranks;
  Status status;
  while (status.ok() && static_cast<int>(peers_.size()) < ranks - 1) {
    pollfd waiting{listen_fd, POLLIN, 0};
    if (poll(&waiting, 1, kAcceptNoticeMs) == 0) {
      fprintf(stderr, "r2cc-perf[0]: waiting for %d more of %d ranks\n", ranks - 1 - static_cast<int>(peers_.size()), ranks);
      continue;
    }
    const int fd = accept4(listen_fd, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (fd < 0) {
      status = Status::Error("cannot accept the other ranks: " + Errno());
      break;
    }
    Configure(fd);
    status = Handshake(fd, job);
  }
  close(listen_fd);
  return status;
}

// Unrelated connections (a port scanner, a stray rank of another job) are refused and do not stop the job; a rank of ours with other flags
// does.
Status Bootstrap::Handshake(int fd, std::string_view job) {
  Peer peer;
  peer.fd = fd;
  FrameHeader header{};
  std::string text;
  timeval timeout{kHelloTimeoutMs / 1000, 0};
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  const bool framed = recv(fd, &header, sizeof(header), MSG_WAITALL) == sizeof(header) && header.magic == kMagic && header.type == kHello &&
                      header.bytes >= sizeof(Hello) && header.bytes <= sizeof(Hello) + 65536;
  if (framed) text.resize(header.bytes);
  if (!framed || recv(fd, text.data(), text.size(), MSG_WAITALL) != static_cast<ssize_t>(text.size())) {
    close(fd);
    return {};
  }
  Hello hello;
  memcpy(&hello, text.data(), sizeof(hello));
  std::string refusal;
  if (hello.ranks != static_cast<uint32_t>(ranks_))
    refusal = "was started with --nranks " + std::to_string(hello.ranks) + ", rank 0 with " + std::to_string(ranks_);
  if (refusal.empty() && (hello.rank == 0 || hello.rank >= static_cast<uint32_t>(ranks_))) refusal = "is not a rank of this job";
  for (const Peer& other : peers_)
    if (refusal.empty() && other.rank == static_cast<int>(hello.rank)) refusal = "was started twice";
  if (refusal.empty() && text.substr(sizeof(hello)) != job)
    refusal = "was started with other flags: '" + text.substr(sizeof(hello)) + "', rank 0 with '" + std::string(job) + "'";
  if (!refusal.empty()) {
    refusal = "rank " + std::to_string(hello.rank) + " " + refusal;
    (void)SendFrame(&peer, kFailure, refusal);
    close(fd);
    Fail(refusal);
    return Status::Error(refusal);
  }
  timeout.tv_sec = 0;
  setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
  peer.rank = static_cast<int>(hello.rank);
  peers_.push_back(std::move(peer));
  return {};
}

Status Bootstrap::Connect(const std::string& host_port, int rank, int ranks, std::string_view job, int timeout_s) {
  rank_ = rank;
  ranks_ = ranks;
  const int64_t give_up = NowNs() + timeout_s * int64_t{1'000'000'000};
  for (;;) {
    Addresses addresses;
    R2CC_PERF_RETURN_IF_ERROR(Resolve(host_port, false, &addresses));
    // A name may have one that rank 0 does not listen on.
    std::string why;
    for (const addrinfo* address = addresses.list; address != nullptr && peers_.empty(); address = address->ai_next) {
      const int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
      if (fd >= 0 && connect(fd, address->ai_addr, address->ai_addrlen) == 0) {
        Configure(fd);
        peers_.emplace_back();
        peers_.back().fd = fd;
        break;
      }
      why = Errno();
      if (fd >= 0) close(fd);
    }
    if (!peers_.empty()) break;
    if (NowNs() > give_up) return Status::Error("cannot reach rank 0 at " + host_port + ": " + why + "; is rank 0 started there?");
    const timespec pause{0, kRetryMs * 1'000'000L};
    nanosleep(&pause, nullptr);
  }
  const Hello hello{static_cast<uint32_t>(rank), static_cast<uint32_t>(ranks)};
  return SendFrame(&peers_.front(), kHello, std::string(reinterpret_cast<const char*>(&hello), sizeof(hello)) + std::string(job));
}

Status Bootstrap::Gather(std::string_view mine, std::vector<std::string>* all) {
  if (rank_ != 0) return SendFrame(&peers_.front(), kMessage, mine);
  all->assign(ranks_, {});
  (*all)[0] = mine;
  for (Peer& peer : peers_) R2CC_PERF_RETURN_IF_ERROR(TakeMessage(&peer, &(*all)[peer.rank]));
  return {};
}

Status Bootstrap::Broadcast(std::string* text) {
  if (rank_ != 0) return TakeMessage(&peers_.front(), text);
  for (Peer& peer : peers_) R2CC_PERF_RETURN_IF_ERROR(SendFrame(&peer, kMessage, *text));
  return {};
}

Status Bootstrap::AllGather(std::string_view mine, std::vector<std::string>* all) {
  R2CC_PERF_RETURN_IF_ERROR(Gather(mine, all));
  std::string joined;
  if (rank_ == 0) {
    for (const std::string& part : *all) {
      if (part.size() != mine.size())
        return Status::Error("the ranks of this job do not fit together: a message of " + std::to_string(part.size()) + " bytes, not " +
                             std::to_string(mine.size()));
      joined += part;
    }
  }
  R2CC_PERF_RETURN_IF_ERROR(Broadcast(&joined));
  if (joined.size() != mine.size() * ranks_)
    return Status::Error("rank 0 sent " + std::to_string(joined.size()) + " bytes, not " + std::to_string(mine.size() * ranks_));
  all->clear();
  for (int rank = 0; rank < ranks_; ++rank) all->push_back(joined.substr(rank * mine.size(), mine.size()));
  return {};
}

Status Bootstrap::TakeMessage(Peer* peer, std::string* text) {
  bool ready = false;
  while (peer->messages.empty()) R2CC_PERF_RETURN_IF_ERROR(WaitFor(-1, -1, &ready));
  *text = std::move(peer->messages.front());
  peer->messages.pop_front();
  return {};
}

Status Bootstrap::WaitFor(int other_fd, int timeout_ms, bool* ready) {
  std::vector<pollfd> fds;
  for (const Peer& peer : peers_) fds.push_back({peer.fd, POLLIN, 0});
  fds.push_back({other_fd, POLLIN, 0});
  *ready = false;
  if (poll(fds.data(), fds.size(), timeout_ms) <= 0) return {};  // a signal is no more than an early return
  for (size_t i = 0; i < peers_.size(); ++i)
    if (fds[i].revents != 0) R2CC_PERF_RETURN_IF_ERROR(ReadFrames(&peers_[i]));
  *ready = fds.back().revents != 0;
  return {};
}

Status Bootstrap::ReadFrames(Peer* peer) {
  char buffer[65536];
  const ssize_t n = recv(peer->fd, buffer, sizeof(buffer), MSG_DONTWAIT);
  if (n < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (n <= 0) return PeerLost(*peer, "is gone (bootstrap connection lost)");
  peer->unread.append(buffer, n);
  FrameHeader header;
  while (peer->unread.size() >= sizeof(header)) {
    memcpy(&header, peer->unread.data(), sizeof(header));
    if (header.magic != kMagic || header.bytes > kFrameBytesMax) return PeerLost(*peer, "sent what is no frame of r2cc-perf");
    if (peer->unread.size() < sizeof(header) + header.bytes) break;
    std::string text = peer->unread.substr(sizeof(header), header.bytes);
    peer->unread.erase(0, sizeof(header) + header.bytes);
    if (header.type == kFailure) return PassOn(rank_ == 0 ? "rank " + std::to_string(peer->rank) + " failed: " + text : text);
    if (header.type == kMessage) peer->messages.push_back(std::move(text));
  }
  return {};
}

Status Bootstrap::PeerLost(const Peer& peer, const std::string& how) { return PassOn("rank " + std::to_string(peer.rank) + " " + how); }

// Rank 0 sends the others what it received: whole sentences, which they print unchanged.
Status Bootstrap::PassOn(const std::string& sentence) {
  if (rank_ == 0) Fail(sentence);
  return Status::Error(sentence);
}

void Bootstrap::Fail(const std::string& why) {
  for (Peer& peer : peers_) (void)SendFrame(&peer, kFailure, why);
}

Status Bootstrap::SendFrame(Peer* peer, uint32_t type, std::string_view text) {
  const FrameHeader header{kMagic, type, static_cast<uint32_t>(text.size())};
  std::string frame(reinterpret_cast<const char*>(&header), sizeof(header));
  frame += text;
  for (size_t sent = 0; sent < frame.size();) {
    const ssize_t n = send(peer->fd, frame.data() + sent, frame.size() - sent, MSG_NOSIGNAL);
    if (n < 0 && errno == EINTR) continue;
    if (n >= 0) {
      sent += n;
      continue;
    }
    // The reason, if the other end gave one, still waits to be read.
    Status status;
    while (type != kFailure && status.ok()) status = ReadFrames(peer);
    return status.ok() ? Status::Error("rank " + std::to_string(peer->rank) + " is gone (bootstrap connection lost)") : status;
  }
  return {};
}

}  // namespace r2cc::perf
