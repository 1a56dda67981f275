#include "health/io/udp_datagram.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/errqueue.h>
#include <linux/sock_diag.h>
#include <net/if.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/core/token_bucket.h"
#include "base/log.h"
#include "health/io/filter_program.h"
#include "health/io/source_rates.h"

namespace r2cc::health {
namespace {

constexpr int kBatch = 32;
// The datagrams that one turn of the loop reads from one socket: a flood on a rail must not starve the others.
constexpr int kBatchesPerTurn = 4;
// A socket beyond its rate is looked at again after this, so that it wakes up the loop no more than 50 times a second.
constexpr Nanos kPauseLeast = 20 * kNanosPerMs;
// A datagram that is read and dropped, as its sender is beyond its rate, costs a microsecond. A socket's buffer of 4 MiB holds 5,500 small
// datagrams.
constexpr int kReadsPerSecond = 20'000;
constexpr int kReadsBurst = 8192;
constexpr int64_t kStampAgeMax = 60 * kNanosPerSecond;
// Probes wait behind no bulk in this node's queues, nor in switches that heed the class (CS6, network control).
constexpr int kPriority = 6;
constexpr int kTypeOfService = 0xc0;
// Room for some seconds of large probes from 64 peers while the daemon has no processor; the default holds a dozen of 9000 bytes.
constexpr int kReceiveBufferBytes = 4 << 20;

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t bytes = 0;

  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&storage); }
  sockaddr* get() { return reinterpret_cast<sockaddr*>(&storage); }
};

std::optional<SocketAddress> ToSocketAddress(const std::string& address, uint16_t port) {
  SocketAddress result;
  auto* v4 = reinterpret_cast<sockaddr_in*>(&result.storage);
  auto* v6 = reinterpret_cast<sockaddr_in6*>(&result.storage);
  if (inet_pton(AF_INET, address.c_str(), &v4->sin_addr) == 1) {
    v4->sin_family = AF_INET;
    v4->sin_port = htons(port);
    result.bytes = sizeof(*v4);
    return result;
  }
  if (inet_pton(AF_INET6, address.c_str(), &v6->sin6_addr) == 1) {
    v6->sin6_family = AF_INET6;
    v6->sin6_port = htons(port);
    result.bytes = sizeof(*v6);
    return result;
  }
  return std::nullopt;
}

DatagramAddress FromSocketAddress(const sockaddr_storage& storage) {
  char text[INET6_ADDRSTRLEN] = "";
  if (storage.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(storage);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    return {text, ntohs(v4.sin_port)};
  }
  const auto& v6 = reinterpret_cast<const sockaddr_in6&>(storage);
  inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
  return {text, ntohs(v6.sin6_port)};
}

int64_t RealtimeNow() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * kNanosPerSecond + now.tv_nsec;
}

// One message's room for recvmmsg.
struct Slot {
  char bytes[kDatagramBytesMax];
  sockaddr_storage from;
  alignas(cmsghdr) char control[256];
  iovec vector;
};
using Slots = std::array<Slot, kBatch>;

class UdpRailSocket final : public RailSocket {
 public:
  UdpRailSocket(EventLoop* loop, int fd, int family, uint16_t port, DatagramHandler handler)
      : loop_(loop), fd_(fd), family_(family), port_(port), handler_(std::move(handler)), slots_(std::make_unique_for_overwrite<Slots>()) {}
  ~UdpRailSocket() override {
    loop_->Cancel(pause_);
    loop_->Cancel(release_);
    loop_->RemoveFd(fd_);
    close(fd_);
  }
  UdpRailSocket(const UdpRailSocket&) = delete;
  UdpRailSocket& operator=(const UdpRailSocket&) = delete;

  absl::Status Watch() {
    return loop_->AddFd(fd_, EPOLLIN, [this](uint32_t events) {
      if ((events & EPOLLERR) != 0) ReadErrors();
      for (int i = 0; i < kBatchesPerTurn && (events & EPOLLIN) != 0 && ReadBatch(); ++i) {
      }
      if (PauseNeeded() > 0) Pause();
    });
  }

  void Take(const DatagramFilter& filter) override {
    if (std::exchange(filter_, filter) == filter) return;
    AttachFilter();
  }

  absl::Status Send(const DatagramAddress& to, std::string_view bytes) override { return Send(to, bytes, 0); }
  // With the socket bound to the interface, Linux takes an address that no route of the interface leads to for one on its network.
  absl::Status SendOnLink(const DatagramAddress& to, std::string_view bytes) override { return Send(to, bytes, MSG_DONTROUTE); }

  uint16_t port() const override { return port_; }
  const RailSocketCounts& counts() const override { return counts_; }
  const std::vector<std::string>& blocked() const override { return sources_.Blocked(); }

 private:
  absl::Status Send(const DatagramAddress& to, std::string_view bytes, int flags) {
    const auto address = ToSocketAddress(to.address, to.port);
    if (bytes.size() > kDatagramBytesMax || !address.has_value() || address->storage.ss_family != family_) {
      ++counts_.send_failed;
      return absl::InvalidArgumentError(absl::StrCat("cannot send ", bytes.size(), " bytes to '", to.address, "' on this rail"));
    }
    // An error that an earlier datagram met is reported by the next call, once: it is not about this datagram.
    for (int attempt = 0; attempt < 2; ++attempt) {
      if (sendto(fd_, bytes.data(), bytes.size(), MSG_DONTWAIT | MSG_NOSIGNAL | flags, address->get(), address->bytes) >= 0) {
        ++counts_.sent;
        return absl::OkStatus();
      }
      if (errno != ECONNREFUSED && errno != EHOSTUNREACH) break;
    }
    ++counts_.send_failed;
    const int error = errno;
    const std::string what = absl::StrCat("to ", to.address, ": ", strerror(error));
    if (error == EMSGSIZE) return absl::OutOfRangeError(what);
    if (error == EAGAIN || error == ENOBUFS) return absl::ResourceExhaustedError(what);
    return absl::UnavailableError(what);
  }

  Nanos PauseNeeded() const { return std::max(budget_.Until(), reads_.Until()); }

  void AttachFilter() {
    std::vector<sock_filter> program = FilterProgram(filter_, family_, sources_.Blocked());
    const sock_fprog all = {static_cast<uint16_t>(program.size()), program.data()};
    const bool attached = setsockopt(fd_, SOL_SOCKET, SO_ATTACH_FILTER, &all, sizeof(all)) == 0;
    const int error = errno;
    // An old filter would drop what is to be taken now, and a rail without answers counts as silent.
    const int none = 0;
    if (!attached) setsockopt(fd_, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none));
    const bool was_unfiltered = std::exchange(unfiltered_, !attached);
    if (attached && was_unfiltered) LogInfo("the kernel takes the filter of a rail's probes again", {{"port", port_}});
    if (attached || was_unfiltered) return;
    LogWarning("the kernel refuses the filter of a rail's probes: a flood costs r2ccd processor time, probes are read as before",
               {{"port", port_}, {"reason", strerror(error)}});
  }

  // False: its sender is beyond its rate. The kernel drops what comes from it from now on, until its time is over.
  bool MayCome(const std::string& source) {
    const SourceRates::Answer answer = sources_.Count(source, loop_->Now());
    if (answer == SourceRates::Answer::kTake) return true;
    ++counts_.over_rate;
    if (answer == SourceRates::Answer::kNewlyBlocked) Block();
    return false;
  }

  void Block() {
    AttachFilter();
    if (release_ == 0) ReleaseLater();
  }

  void ReleaseLater() {
    release_ = loop_->RunAfter(sources_.NextRelease() - loop_->Now(), [this] {
      release_ = 0;
      if (sources_.Release(loop_->Now())) AttachFilter();
      if (sources_.NextRelease() != 0) ReleaseLater();
    });
  }

  // Nothing is read until there is a place in the budget again. Errors cannot be left unwatched otherwise.
  void Pause() {
    ++counts_.paused;
    loop_->RemoveFd(fd_);
    pause_ = loop_->RunAfter(std::max(PauseNeeded(), kPauseLeast), [this] {
      pause_ = 0;
      (void)Watch();
    });
  }

  // Drops whose number the kernel does not report. A queue that was at most half full since the last look dropped nothing.
  void NoteDrops() {
    std::array<uint32_t, SK_MEMINFO_VARS> memory{};
    socklen_t bytes = sizeof(memory);
    if (getsockopt(fd_, SOL_SOCKET, SO_MEMINFO, memory.data(), &bytes) != 0) return;
    const uint32_t dropped = memory[SK_MEMINFO_DROPS];
    const uint64_t more = static_cast<uint32_t>(dropped - std::exchange(dropped_last_, dropped));  // wraps
    const uint32_t queued = memory[SK_MEMINFO_RMEM_ALLOC];
    const bool was_short = std::max(queued, std::exchange(queued_last_, queued)) <= memory[SK_MEMINFO_RCVBUF] / 2;
    const bool filters = !unfiltered_ && (!filter_.words.empty() || !sources_.Blocked().empty());
    (was_short && filters ? counts_.filtered : counts_.dropped_by_kernel) += more;
  }

  // False: nothing is left, or nothing more may be read now.
  bool ReadBatch() {
    Slots& slots = *slots_;
    spare_ += budget_.TakeUpTo(kBatch - spare_, loop_->Now());
    spare_reads_ += reads_.TakeUpTo(kBatch - spare_reads_, loop_->Now());
    const int most = std::min(spare_, spare_reads_);
    if (most == 0) return false;
    NoteDrops();
    std::array<mmsghdr, kBatch> headers{};
    for (int i = 0; i < kBatch; ++i) {
      slots[i].vector = {slots[i].bytes, sizeof(slots[i].bytes)};
      msghdr& header = headers[i].msg_hdr;
      header.msg_name = &slots[i].from;
      header.msg_namelen = sizeof(slots[i].from);
      header.msg_iov = &slots[i].vector;
      header.msg_iovlen = 1;
      header.msg_control = slots[i].control;
      header.msg_controllen = sizeof(slots[i].control);
    }
    const int count = recvmmsg(fd_, headers.data(), static_cast<unsigned>(most), MSG_DONTWAIT, nullptr);
    if (count <= 0) return false;
    spare_reads_ -= count;
    const int64_t realtime = RealtimeNow();
    const Nanos now = loop_->Now();
    std::vector<Datagram> batch;
    for (int i = 0; i < count; ++i) {
      const Nanos received = TakeControl(headers[i].msg_hdr, realtime, now);
      if ((headers[i].msg_hdr.msg_flags & MSG_TRUNC) != 0) {
        ++counts_.too_long;
        continue;
      }
      DatagramAddress from = FromSocketAddress(slots[i].from);
      if (!MayCome(from.address)) continue;
      ++counts_.received;
      batch.push_back({std::string(slots[i].bytes, headers[i].msg_len), std::move(from), received});
    }
    spare_ -= static_cast<int>(batch.size());
    if (!batch.empty()) handler_.on_batch(batch);
    return count == most;
  }

  // The arrival time, from the kernel's control message of a datagram.
  static Nanos TakeControl(const msghdr& header, int64_t realtime, Nanos now) {
    Nanos received = now;
    for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(const_cast<msghdr*>(&header), part)) {
      if (part->cmsg_level != SOL_SOCKET) continue;
      if (part->cmsg_type == SCM_TIMESTAMPNS) {
        timespec stamp;
        std::memcpy(&stamp, CMSG_DATA(part), sizeof(stamp));
        received = ArrivalTime(stamp.tv_sec * kNanosPerSecond + stamp.tv_nsec, realtime, now);
      }
    }
    return received;
  }

  void ReadErrors() {
    // Clears the pending error, which would keep the descriptor ready.
    int pending = 0;
    socklen_t bytes = sizeof(pending);
    getsockopt(fd_, SOL_SOCKET, SO_ERROR, &pending, &bytes);
    for (int i = 0; i < kBatch * kBatchesPerTurn && budget_.Take(loop_->Now()); ++i) {
      Slot& slot = slots_->front();
      slot.vector = {slot.bytes, sizeof(slot.bytes)};
      msghdr header{};
      header.msg_name = &slot.from;
      header.msg_namelen = sizeof(slot.from);
      header.msg_iov = &slot.vector;
      header.msg_iovlen = 1;
      header.msg_control = slot.control;
      header.msg_controllen = sizeof(slot.control);
      if (recvmsg(fd_, &header, MSG_ERRQUEUE | MSG_DONTWAIT) < 0) return;
      const Nanos received = TakeControl(header, RealtimeNow(), loop_->Now());
      for (cmsghdr* part = CMSG_FIRSTHDR(&header); part != nullptr; part = CMSG_NXTHDR(&header, part)) {
        const bool is_error = (part->cmsg_level == SOL_IP && part->cmsg_type == IP_RECVERR) ||
                              (part->cmsg_level == SOL_IPV6 && part->cmsg_type == IPV6_RECVERR);
        if (!is_error) continue;
        sock_extended_err error;
        std::memcpy(&error, CMSG_DATA(part), sizeof(error));
        Report(error, FromSocketAddress(slot.from), received);
        break;
      }
    }
  }

  void Report(const sock_extended_err& error, const DatagramAddress& to, Nanos received) {
    const bool from_network = error.ee_origin == SO_EE_ORIGIN_ICMP || error.ee_origin == SO_EE_ORIGIN_ICMP6;
    if (error.ee_errno == ECONNREFUSED && from_network)
      handler_.on_error({DatagramError::Kind::kRefused, to, received});
    else if (error.ee_errno == EHOSTUNREACH || error.ee_errno == ENETUNREACH)
      handler_.on_error({DatagramError::Kind::kUnreachable, to, received});
  }

  EventLoop* const loop_;
  const int fd_;
  const int family_;
  const uint16_t port_;
  const DatagramHandler handler_;
  const std::unique_ptr<Slots> slots_;  // of one call: too large for the stack, and mostly never touched
  RailSocketCounts counts_;
  DatagramFilter filter_;
  bool unfiltered_ = false;  // the kernel refused the filter
  TokenBucket budget_{kDatagramsPerSecond, kDatagramsBurst};
  int spare_ = 0;  // taken from it, and not used yet
  TokenBucket reads_{kReadsPerSecond, kReadsBurst};
  int spare_reads_ = 0;  // taken from it, and not used yet
  SourceRates sources_;
  TimerId release_ = 0;
  TimerId pause_ = 0;
  uint32_t dropped_last_ = 0;
  uint32_t queued_last_ = 0;
};

void SetInt(int fd, int level, int option, int value) { setsockopt(fd, level, option, &value, sizeof(value)); }

absl::Status Bind(int fd, const RailBinding& binding, const SocketAddress& address) {
  if (!binding.interface.empty() &&
      setsockopt(fd, SOL_SOCKET, SO_BINDTODEVICE, binding.interface.c_str(), static_cast<socklen_t>(binding.interface.size())) != 0)
    return errno == ENODEV ? absl::NotFoundError(absl::StrCat("no interface ", binding.interface))
                           : absl::ErrnoToStatus(errno, absl::StrCat("cannot bind to interface ", binding.interface));
  if (bind(fd, address.get(), address.bytes) == 0) return absl::OkStatus();
  const std::string where = absl::StrCat(binding.address, " UDP port ", binding.port);
  if (errno == EADDRINUSE) return absl::AlreadyExistsError(absl::StrCat(where, " is in use"));
  if (errno == EADDRNOTAVAIL) return absl::NotFoundError(absl::StrCat(binding.address, " is no address of this machine"));
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot bind to ", where));
}

}  // namespace

Nanos ArrivalTime(int64_t stamp_realtime_ns, int64_t now_realtime_ns, Nanos now_monotonic) {
  if (stamp_realtime_ns > now_realtime_ns || stamp_realtime_ns < now_realtime_ns - kStampAgeMax) return now_monotonic;
  return now_monotonic - (now_realtime_ns - stamp_realtime_ns);
}

absl::StatusOr<std::unique_ptr<RailSocket>> UdpDatagrams::Open(const RailBinding& binding, DatagramHandler handler) {
  const auto address = ToSocketAddress(binding.address, binding.port);
  if (!address.has_value()) return absl::InvalidArgumentError(absl::StrCat("'", binding.address, "' is not a numeric IP address"));
  if (binding.interface.size() >= IFNAMSIZ) return absl::NotFoundError(absl::StrCat("no interface ", binding.interface));
  const int family = address->storage.ss_family;
  const int fd = socket(family, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
  if (fd < 0) return absl::ErrnoToStatus(errno, "cannot make a datagram socket");
  SetInt(fd, SOL_SOCKET, SO_TIMESTAMPNS, 1);
  SetInt(fd, SOL_SOCKET, SO_PRIORITY, kPriority);
  // Beyond the machine's limit where the daemon may, else up to it.
  SetInt(fd, SOL_SOCKET, SO_RCVBUF, kReceiveBufferBytes);
  SetInt(fd, SOL_SOCKET, SO_RCVBUFFORCE, kReceiveBufferBytes);
  if (family == AF_INET) {
    SetInt(fd, SOL_IP, IP_RECVERR, 1);
    SetInt(fd, SOL_IP, IP_TOS, kTypeOfService);
    SetInt(fd, SOL_IP, IP_MTU_DISCOVER, IP_PMTUDISC_DO);
  } else {
    SetInt(fd, SOL_IPV6, IPV6_V6ONLY, 1);
    SetInt(fd, SOL_IPV6, IPV6_RECVERR, 1);
    SetInt(fd, SOL_IPV6, IPV6_TCLASS, kTypeOfService);
    SetInt(fd, SOL_IPV6, IPV6_MTU_DISCOVER, IPV6_PMTUDISC_DO);
    SetInt(fd, SOL_IPV6, IPV6_DONTFRAG, 1);
  }
  absl::Status bound = Bind(fd, binding, *address);
  SocketAddress own;
  own.bytes = sizeof(own.storage);
  if (bound.ok() && getsockname(fd, own.get(), &own.bytes) != 0) bound = absl::ErrnoToStatus(errno, "cannot name a datagram socket");
  if (!bound.ok()) {
    close(fd);
    return bound;
  }
  auto rail = std::make_unique<UdpRailSocket>(loop_, fd, family, FromSocketAddress(own.storage).port, std::move(handler));
  if (absl::Status watched = rail->Watch(); !watched.ok()) return watched;
  return rail;
}

}  // namespace r2cc::health
