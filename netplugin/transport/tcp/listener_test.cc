// Many greetings at once, over real sockets. tests/fuzz has what strangers may say, tests/plugin a job among them.
#include "netplugin/transport/tcp/listener.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

constexpr size_t kWaitingMax = 128;

struct ListenerTest : testing::Test {
  ListenerTest() {
    Source source;
    EXPECT_TRUE(ParseAddress("127.0.0.1", 0, &source.address));
    std::string error;
    uint16_t port = 0;
    UniqueFd socket = Listen(source, &port, &error);
    EXPECT_TRUE(socket) << error;
    address = source.address;
    address.set_port(port);
    listener.AddListener(std::move(socket));
  }

  // A connection that the kernel has accepted for us.
  UniqueFd Connected() const {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(connect(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length), 0);
    return fd;
  }
  static void Greet(const UniqueFd& fd, uint64_t session) {
    const Bytes hello = Encode(Hello{.session = session});
    EXPECT_EQ(send(fd.get(), hello.data(), hello.size(), MSG_NOSIGNAL), static_cast<ssize_t>(hello.size()));
  }
  // The I/O thread looks until nothing has happened.
  void Look() {
    for (int i = 0; i < 10; ++i) poller.Wait(0);
  }

  FakeClock clock;
  Poller poller;
  SocketAddress address;
  std::set<uint64_t> greeted;
  std::vector<std::unique_ptr<Connection>> kept;
  std::vector<std::string> logged;
  DescriptorWatch descriptors{&clock, [this](LogLevel, const std::string& line) { logged.push_back(line); }};
  TcpListener listener{&poller, &clock, kWaitingMax,
                       [this](const Hello& hello, std::unique_ptr<Connection>* connection) {
                         greeted.insert(hello.session);
                         kept.push_back(std::move(*connection));
                         return HelloReply{.accepted = true};
                       },
                       &descriptors};
};

TEST_F(ListenerTest, AGreetingIsReadHoweverManyConnectionsComeAtOnce) {
  std::vector<UniqueFd> callers;
  for (const size_t count : {200u, 300u}) {
    const size_t before = callers.size();
    for (size_t i = 0; i < count; ++i) {
      callers.push_back(Connected());
      Greet(callers.back(), callers.size());
    }
    Look();
    EXPECT_EQ(greeted.size(), before + count);
  }
  EXPECT_EQ(listener.refused(), 0u);
}

TEST_F(ListenerTest, AGreetingIsReadWhenOthersNeedThePlace) {
  std::vector<UniqueFd> callers;
  for (size_t i = 0; i < kWaitingMax; ++i) callers.push_back(Connected());
  Look();
  EXPECT_TRUE(greeted.empty());
  // The others come first, so that the poller tells of them first.
  std::vector<UniqueFd> silent;
  for (size_t i = 0; i < kWaitingMax; ++i) silent.push_back(Connected());
  for (size_t i = 0; i < callers.size(); ++i) Greet(callers[i], i + 1);
  Look();
  EXPECT_EQ(greeted.size(), callers.size());
  EXPECT_EQ(listener.refused(), 0u);
}

TEST_F(ListenerTest, TheOldestSilentConnectionsMakeRoom) {
  constexpr size_t kMore = 10;
  std::vector<UniqueFd> callers;
  for (size_t i = 0; i < kWaitingMax + kMore; ++i) callers.push_back(Connected());
  Look();
  EXPECT_EQ(listener.refused(), kMore);
  for (size_t i = kMore; i < callers.size(); ++i) Greet(callers[i], i);
  Look();
  EXPECT_EQ(greeted.size(), kWaitingMax);
  EXPECT_FALSE(greeted.contains(kMore - 1));
}

TEST_F(ListenerTest, ASilentConnectionIsGivenUp) {
  const UniqueFd silent = Connected();
  Look();
  clock.Advance(tuning::kSpeaksWithin - 1);
  listener.Tick(clock.Now());
  EXPECT_EQ(listener.refused(), 0u);
  clock.Advance(1);
  listener.Tick(clock.Now());
  EXPECT_EQ(listener.refused(), 1u);
  char byte;
  EXPECT_EQ(recv(silent.get(), &byte, 1, 0), 0);
}

TEST_F(ListenerTest, WithoutDescriptorsItWaitsAndLogsIt) {
  const UniqueFd caller = Connected();
  Greet(caller, 1);
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  rlimit none = before;
  none.rlim_cur = static_cast<rlim_t>(UniqueFd(dup(caller.get())).get());  // the next that is free
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  Look();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  EXPECT_TRUE(greeted.empty());
  ASSERT_EQ(logged.size(), 1u);
  EXPECT_NE(logged[0].find("has all " + std::to_string(none.rlim_cur) + " descriptors open"), std::string::npos) << logged[0];
  listener.Tick(clock.Now());
  Look();
  EXPECT_TRUE(greeted.contains(1)) << "who came meanwhile was not lost";
}

TEST(Listener, PlacesAreAShareOfWhatTheProcessMayOpen) {
  EXPECT_EQ(TcpListener::WaitingMax(64), 128u);
  EXPECT_EQ(TcpListener::WaitingMax(1024), 128u);
  EXPECT_EQ(TcpListener::WaitingMax(16384), 2048u);
  EXPECT_EQ(TcpListener::WaitingMax(UINT64_MAX), 4096u);
}

}  // namespace
}  // namespace r2cc::net
