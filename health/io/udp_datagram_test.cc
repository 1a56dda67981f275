#include "health/io/udp_datagram.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/event_loop.h"
#include "base/log.h"
#include "health/io/source_rates.h"

namespace r2cc::health {
namespace {

constexpr Nanos kPatience = 10 * kNanosPerSecond;

class UdpDatagramTest : public testing::Test {
 protected:
  // Runs the loop until `there`, once per test.
  bool RunUntil(std::function<bool()> there) {
    there_ = std::move(there);
    loop_.RunAfter(kPatience, [this] { loop_.Stop(); });
    Check();
    loop_.Run();
    return there_();
  }
  void Check() {
    if (there_ && there_()) loop_.Stop();
  }
  DatagramHandler Handler() {
    return {[this](const std::vector<Datagram>& batch) {
              batches_.push_back(batch.size());
              for (const Datagram& one : batch) got_.push_back(one);
              Check();
            },
            [this](const DatagramError& error) {
              errors_.push_back(error);
              Check();
            }};
  }
  std::unique_ptr<RailSocket> Open(const RailBinding& binding) {
    auto socket = datagrams_.Open(binding, Handler());
    EXPECT_TRUE(socket.ok()) << socket.status();
    return socket.ok() ? *std::move(socket) : nullptr;
  }

  // One thread sends to `port` of loopback, in turn from `senders` addresses, until the end.
  class Flood {
   public:
    Flood(uint16_t port, int senders) : thread_([this, port, senders] { Send(port, senders); }) {}
    ~Flood() {
      over_ = true;
      thread_.join();
    }
    Flood(const Flood&) = delete;
    Flood& operator=(const Flood&) = delete;
    static std::string Sender(int number) { return "127.0.1." + std::to_string(number + 1); }

   private:
    void Send(uint16_t port, int senders) {
      sockaddr_in to{};
      to.sin_family = AF_INET;
      to.sin_port = htons(port);
      to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
      std::vector<int> fds;
      for (int number = 0; number < senders; ++number) {
        fds.push_back(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
        sockaddr_in from{};
        from.sin_family = AF_INET;
        inet_pton(AF_INET, Sender(number).c_str(), &from.sin_addr);
        EXPECT_EQ(bind(fds.back(), reinterpret_cast<const sockaddr*>(&from), sizeof(from)), 0);
      }
      for (size_t i = 0; !over_; ++i) (void)!sendto(fds[i % fds.size()], "x", 1, 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to));
      for (const int fd : fds) close(fd);
    }
    std::atomic<bool> over_ = false;
    std::thread thread_;
  };

  EventLoop loop_;
  UdpDatagrams datagrams_{&loop_};
  std::vector<Datagram> got_;
  std::vector<size_t> batches_;
  std::vector<DatagramError> errors_;
  std::function<bool()> there_;
};

TEST_F(UdpDatagramTest, CarriesBytesAndTheirSender) {
  const auto a = Open({"lo", "127.0.0.1", 0});
  const auto b = Open({"", "127.0.0.2", 0});
  ASSERT_TRUE(a->Send({"127.0.0.2", b->port()}, std::string("to\0b", 4)).ok());
  ASSERT_TRUE(RunUntil([this] { return !got_.empty(); }));
  EXPECT_EQ(got_[0].bytes, std::string("to\0b", 4));
  EXPECT_EQ(got_[0].from, (DatagramAddress{"127.0.0.1", a->port()}));
  EXPECT_EQ(a->counts().sent, 1u);
  EXPECT_EQ(b->counts().received, 1u);
}

TEST_F(UdpDatagramTest, SpeaksIpv6) {
  auto a = datagrams_.Open({"", "::1", 0}, Handler());
  if (absl::IsNotFound(a.status())) GTEST_SKIP() << "needs IPv6: ::1 is no address here";
  ASSERT_TRUE(a.ok()) << a.status();
  ASSERT_TRUE((*a)->Send({"::1", (*a)->port()}, "to itself").ok());
  ASSERT_TRUE(RunUntil([this] { return !got_.empty(); }));
  EXPECT_EQ(got_[0].from, (DatagramAddress{"::1", (*a)->port()}));
}

// A daemon that had no processor reads late what came in time: the kernel's stamp shows it. The kernel begins to stamp a moment after the
// first socket has asked for it, so that the first datagrams may come without.
TEST_F(UdpDatagramTest, APacketThatIsReadLateIsStampedInTime) {
  const auto socket = Open({"", "127.0.0.1", 0});
  Nanos sent = 0;
  const auto send_and_be_busy = [&](Nanos busy) {
    EXPECT_TRUE(socket->Send({"127.0.0.1", socket->port()}, "x").ok());
    sent = loop_.Now();
    while (loop_.Now() < sent + busy) {
    }
  };
  bool stamps = false;
  send_and_be_busy(2 * kNanosPerMs);
  ASSERT_TRUE(RunUntil([&] {
    if (got_.empty()) return false;
    if (stamps) return true;
    stamps = got_[0].received < sent + kNanosPerMs;
    got_.clear();
    send_and_be_busy(stamps ? 50 * kNanosPerMs : 2 * kNanosPerMs);
    return false;
  }));
  // Two clocks are read one after the other: the conversion is off by what lies between.
  EXPECT_LE(got_[0].received, sent + 10 * kNanosPerMs);
}

TEST_F(UdpDatagramTest, AStampFromAnotherTimeIsNotBelieved) {
  const Nanos now = 1000 * kNanosPerSecond;
  const int64_t realtime = 1'700'000'000 * kNanosPerSecond;
  EXPECT_EQ(ArrivalTime(realtime - 5, realtime, now), now - 5);
  EXPECT_EQ(ArrivalTime(realtime, realtime, now), now);
  EXPECT_EQ(ArrivalTime(realtime + 1, realtime, now), now) << "the clock was set back";
  EXPECT_EQ(ArrivalTime(realtime - 3600 * kNanosPerSecond, realtime, now), now) << "the clock was set ahead";
  EXPECT_EQ(ArrivalTime(0, realtime, now), now);
}

// The peer's daemon does not run, its kernel does: the rail works.
TEST_F(UdpDatagramTest, ARefusalIsReported) {
  const auto socket = Open({"", "127.0.0.1", 0});
  uint16_t nobody = 0;
  {
    const auto other = Open({"", "127.0.0.1", 0});
    nobody = other->port();
  }
  ASSERT_TRUE(socket->Send({"127.0.0.1", nobody}, "hello").ok());
  ASSERT_TRUE(RunUntil([this] { return !errors_.empty(); }));
  EXPECT_EQ(errors_[0].kind, DatagramError::Kind::kRefused);
  EXPECT_EQ(errors_[0].to, (DatagramAddress{"127.0.0.1", nobody}));
  EXPECT_TRUE(socket->Send({"127.0.0.1", socket->port()}, "the socket goes on").ok());
}

TEST_F(UdpDatagramTest, ARefusalDoesNotFailTheNextSend) {
  const auto socket = Open({"", "127.0.0.1", 0});
  uint16_t nobody = 0;
  {
    const auto other = Open({"", "127.0.0.1", 0});
    nobody = other->port();
  }
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(socket->Send({"127.0.0.1", nobody}, "hello").ok());
  EXPECT_TRUE(socket->Send({"127.0.0.1", socket->port()}, "another").ok());
  EXPECT_TRUE(RunUntil([this] { return got_.size() == 1 && errors_.size() == 3; })) << errors_.size();
}

TEST_F(UdpDatagramTest, AFloodIsCountedAndReadInBatches) {
  const auto socket = Open({"", "127.0.0.1", 0});
  const auto other = Open({"", "127.0.0.2", 0});
  constexpr int kFlood = 5000;
  const std::string bytes(kDatagramBytesMax, 'x');
  for (int i = 0; i < kFlood; ++i) (void)socket->Send({"127.0.0.1", socket->port()}, bytes);
  // The kernel reports its drops with a later datagram.
  loop_.RunAfter(0, [&] { (void)other->Send({"127.0.0.1", socket->port()}, "last"); });
  ASSERT_TRUE(RunUntil([this] { return !got_.empty() && got_.back().bytes == "last"; }));
  const RailSocketCounts& counts = socket->counts();
  EXPECT_GT(counts.dropped_by_kernel, 0u) << "the buffer held everything";
  EXPECT_EQ(counts.received + counts.dropped_by_kernel + counts.over_rate, counts.sent + 1);
  EXPECT_EQ(*std::max_element(batches_.begin(), batches_.end()), 32u);
}

TEST_F(UdpDatagramTest, AnIpv6SenderBeyondItsRateIsKeptOut) {
  auto opened = datagrams_.Open({"", "::1", 0}, Handler());
  if (absl::IsNotFound(opened.status())) GTEST_SKIP() << "needs IPv6: ::1 is no address here";
  ASSERT_TRUE(opened.ok()) << opened.status();
  RailSocket& socket = **opened;
  std::function<void()> flood = [&] {
    for (int i = 0; i < 20; ++i) (void)socket.Send({"::1", socket.port()}, "to itself");
    loop_.RunAfter(kNanosPerMs, flood);
  };
  loop_.RunAfter(0, flood);
  uint64_t read_late = 0, sent_late = 0;
  loop_.RunAfter(kNanosPerSecond, [&] {
    EXPECT_EQ(socket.blocked(), std::vector<std::string>{"::1"});
    read_late = socket.counts().received + socket.counts().over_rate;
    sent_late = socket.counts().sent;
  });
  bool over = false;
  loop_.RunAfter(3 * kNanosPerSecond / 2, [&] {
    over = true;
    Check();
  });
  ASSERT_TRUE(RunUntil([&] { return over; }));
  EXPECT_GT(socket.counts().sent, sent_late);
  EXPECT_EQ(socket.counts().received + socket.counts().over_rate, read_late) << "the kernel drops them";
}

TEST_F(UdpDatagramTest, TakesWhatTheFilterDescribesAndCountsOthers) {
  const auto socket = Open({"", "127.0.0.1", 0});
  const std::string one = "head....word-one", two = "head....word-two and more";
  DatagramFilter filter = {{'h', 'e', 'a', 'd'}, 8, {{'w', 'o', 'r', 'd', '-', 'o', 'n', 'e'}, {'w', 'o', 'r', 'd', '-', 't', 'w', 'o'}}};
  socket->Take(filter);
  for (const std::string& bytes : {std::string("head....word-six"), std::string("tail....word-one"), std::string("head....word-on"),
                                   std::string(), one, std::string("head...word-one."), two})
    ASSERT_TRUE(socket->Send({"127.0.0.1", socket->port()}, bytes).ok());
  ASSERT_TRUE(RunUntil([this] { return got_.size() == 2; }));
  EXPECT_EQ(got_[0].bytes, one);
  EXPECT_EQ(got_[1].bytes, two);
  EXPECT_EQ(socket->counts().filtered, 5u);
  EXPECT_EQ(socket->counts().dropped_by_kernel, 0u) << "there was room all the time";
}

// The descriptor of the socket that is bound to `port` of ::1.
int DescriptorOf(uint16_t port) {
  for (int fd = 3; fd < 1024; ++fd) {
    sockaddr_in6 own{};
    socklen_t bytes = sizeof(own);
    if (getsockname(fd, reinterpret_cast<sockaddr*>(&own), &bytes) == 0 && own.sin6_family == AF_INET6 && ntohs(own.sin6_port) == port)
      return fd;
  }
  return -1;
}

// Takes all the kernel's memory for options of the socket, so that no filter has room in it.
void FillOptionMemory(int fd) {
  ipv6_mreq group{};
  group.ipv6mr_interface = if_nametoindex("lo");
  inet_pton(AF_INET6, "ff02::1:0:0", &group.ipv6mr_multiaddr);
  for (uint16_t number = 0; number < 20'000; ++number) {
    std::memcpy(&group.ipv6mr_multiaddr.s6_addr[14], &number, sizeof(number));
    if (setsockopt(fd, SOL_IPV6, IPV6_ADD_MEMBERSHIP, &group, sizeof(group)) != 0 && errno == ENOBUFS) return;
  }
}

TEST_F(UdpDatagramTest, AFilterThatTheKernelRefusesIsLoggedAndDropsNothing) {
  auto opened = datagrams_.Open({"", "::1", 0}, Handler());
  if (absl::IsNotFound(opened.status())) GTEST_SKIP() << "needs IPv6: ::1 is no address here";
  ASSERT_TRUE(opened.ok()) << opened.status();
  RailSocket& socket = **opened;
  const auto filter = [](char last) {
    return DatagramFilter{{'h', 'e', 'a', 'd'}, 4, {{'w', 'o', 'r', 'd', '-', '-', '-', static_cast<uint8_t>(last)}}};
  };
  socket.Take(filter('a'));
  FillOptionMemory(DescriptorOf(socket.port()));
  std::vector<std::string> lines;
  const ScopedLogCapture capture([&](Severity, const std::string& line) { lines.push_back(line); });
  socket.Take(filter('b'));
  // The old filter is gone, and its memory is free.
  socket.Take(filter('c'));
  EXPECT_THAT(lines, testing::ElementsAre(testing::HasSubstr("the kernel refuses the filter of a rail's probes"),
                                          testing::HasSubstr("the kernel takes the filter of a rail's probes again")));
  ASSERT_TRUE(socket.Send({"::1", socket.port()}, "headword---c").ok());
  ASSERT_TRUE(RunUntil([this] { return got_.size() == 1; })) << "it is dropped by the filter of before";
}

// Each wakes up the loop for itself, as probes of many peers do: one that is read costs one place of the rate.
TEST_F(UdpDatagramTest, DatagramsThatComeOneByOneAreReadWithoutAPause) {
  const auto socket = Open({"", "127.0.0.1", 0});
  const auto other = Open({"", "127.0.0.2", 0});
  size_t sent = 0;
  ASSERT_TRUE(RunUntil([&] {
    if (got_.size() == sent && sent < 900) (void)(sent++ % 2 == 0 ? socket : other)->Send({"127.0.0.1", socket->port()}, "probe");
    return got_.size() == 900;
  })) << got_.size();
  EXPECT_EQ(socket->counts().paused, 0u);
}

TEST_F(UdpDatagramTest, AFloodIsReadAtARate) {
  const auto socket = Open({"", "127.0.0.1", 0});
  const Nanos begin = loop_.Now();
  {
    const Flood flood(socket->port(), 200);
    EXPECT_TRUE(RunUntil([&] { return loop_.Now() - begin > kNanosPerSecond; }));
  }
  const Nanos lasted = loop_.Now() - begin;
  EXPECT_EQ(socket->counts().over_rate, 0u) << "none of so many senders alone is beyond its rate";
  EXPECT_GE(got_.size(), static_cast<size_t>(kDatagramsBurst));
  EXPECT_LE(got_.size(), kDatagramsBurst + 1.1 * kDatagramsPerSecond * static_cast<double>(lasted) / kNanosPerSecond);
}

// The kernel keeps out a sender that floods the socket; each of the others' datagrams is read, while it goes on.
TEST_F(UdpDatagramTest, AFloodFromOneSenderTakesNothingFromTheOthers) {
  constexpr int kProbes = 200;
  const auto socket = Open({"", "127.0.0.1", 0});
  const auto other = Open({"", "127.0.0.2", 0});
  const Flood flood(socket->port(), 1);
  RailSocketCounts before;
  int sent = 0;
  std::function<void()> send = [&] {
    EXPECT_TRUE(other->Send({"127.0.0.1", socket->port()}, "probe").ok());
    if (++sent < kProbes) loop_.RunAfter(5 * kNanosPerMs, send);
  };
  // Datagrams that were in the buffer when the sender was blocked are read and dropped first.
  loop_.RunAfter(kNanosPerSecond, [&] {
    EXPECT_EQ(socket->blocked(), std::vector<std::string>{Flood::Sender(0)});
    EXPECT_GE(got_.size(), static_cast<size_t>(kSourceDatagramsBurst));
    got_.clear();
    before = socket->counts();
    send();
  });
  ASSERT_TRUE(RunUntil([&] { return sent == kProbes && got_.size() == kProbes; })) << got_.size();
  for (const Datagram& one : got_) ASSERT_EQ(one.from.address, "127.0.0.2");
  EXPECT_EQ(socket->counts().paused, before.paused);
  EXPECT_EQ(socket->counts().dropped_by_kernel, before.dropped_by_kernel);
  EXPECT_GT(socket->counts().filtered, before.filtered + 1000);
}

TEST_F(UdpDatagramTest, ATooLongPacketIsNeitherSentNorDelivered) {
  const auto socket = Open({"", "127.0.0.1", 0});
  EXPECT_TRUE(absl::IsInvalidArgument(socket->Send({"127.0.0.1", socket->port()}, std::string(kDatagramBytesMax + 1, 'x'))));
  EXPECT_TRUE(absl::IsInvalidArgument(socket->Send({"::1", socket->port()}, "x"))) << "another family";
  EXPECT_TRUE(absl::IsInvalidArgument(socket->Send({"rail0", socket->port()}, "x")));
  EXPECT_EQ(socket->counts().send_failed, 3u);

  const int other = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(socket->port());
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const std::string large(kDatagramBytesMax + 1, 'x');
  for (const std::string& bytes : {large, std::string("short")})
    ASSERT_EQ(sendto(other, bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to)),
              static_cast<ssize_t>(bytes.size()));
  close(other);
  ASSERT_TRUE(RunUntil([this] { return !got_.empty(); }));
  EXPECT_EQ(got_[0].bytes, "short");
  EXPECT_EQ(socket->counts().too_long, 1u);
}

// In a network namespace of its own, where lo has the MTU of an Ethernet.
TEST_F(UdpDatagramTest, NothingIsFragmented) {
  bool made = false;
  absl::Status fits, too_large;
  std::thread thread([&] {
    made = unshare(CLONE_NEWNET) == 0;
    if (!made) return;
    const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq lo{};
    std::strcpy(lo.ifr_name, "lo");
    lo.ifr_mtu = 1500;
    EXPECT_EQ(ioctl(fd, SIOCSIFMTU, &lo), 0);
    lo.ifr_flags = IFF_UP;
    EXPECT_EQ(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
    close(fd);
    const auto socket = Open({"", "127.0.0.1", 0});
    fits = socket->Send({"127.0.0.1", socket->port()}, std::string(1500 - 28, 'x'));
    too_large = socket->Send({"127.0.0.1", socket->port()}, std::string(1500 - 27, 'x'));
  });
  thread.join();
  if (!made) GTEST_SKIP() << "needs root: a network namespace";
  EXPECT_TRUE(fits.ok()) << fits;
  EXPECT_TRUE(absl::IsOutOfRange(too_large)) << too_large;
}

TEST_F(UdpDatagramTest, AnAddressThatCannotBeBoundIsNamed) {
  const auto taken = Open({"", "127.0.0.1", 0});
  const auto error = [this](const RailBinding& binding) { return datagrams_.Open(binding, Handler()).status(); };
  EXPECT_EQ(error({"", "127.0.0.1", taken->port()}).code(), absl::StatusCode::kAlreadyExists);
  EXPECT_THAT(std::string(error({"", "127.0.0.1", taken->port()}).message()), testing::HasSubstr(std::to_string(taken->port())));
  EXPECT_TRUE(absl::IsNotFound(error({"nosuch0", "127.0.0.1", 0})));
  EXPECT_TRUE(absl::IsNotFound(error({std::string(64, 'x'), "127.0.0.1", 0})));
  EXPECT_TRUE(absl::IsNotFound(error({"", "192.0.2.1", 0}))) << "an address of documentation";
  EXPECT_TRUE(absl::IsInvalidArgument(error({"", "rail0", 0})));
}

}  // namespace
}  // namespace r2cc::health
