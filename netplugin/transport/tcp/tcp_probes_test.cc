// Probes on loopback.
#include "netplugin/transport/tcp/tcp_probes.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <string>

namespace r2cc::net {
namespace {

constexpr Nanos kAnswerLimit = 5 * kNanosPerSecond;

class TcpProbesTest : public testing::Test {
 protected:
  TcpProbesTest() { ParseAddress("127.0.0.1", 0, &source_.address); }

  // A listener with room for one connection, which never accepts.
  UniqueFd StoppedListener() {
    UniqueFd fd(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
    SocketAddress address = source_.address;
    EXPECT_EQ(bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.length), 0);
    EXPECT_EQ(listen(fd.get(), 0), 0);
    address.length = sizeof(address.storage);
    getsockname(fd.get(), reinterpret_cast<sockaddr*>(&address.storage), &address.length);
    peer_ = {"127.0.0.1", address.port()};
    return fd;
  }
  std::optional<ProbeResult> Ask(Nanos last_received = 0) {
    const Probes::Question question{clock_.Now(), last_received};
    probes_.Ask(peer_, question);
    std::optional<ProbeResult> result;
    while (!result.has_value() && clock_.Now() - question.asked < kAnswerLimit) {
      probes_.Tick(clock_.Now());
      poller_.Wait(1);
      result = probes_.AnswerTo(peer_, question);
    }
    return result;
  }

  Poller poller_;
  SteadyClock clock_;
  Source source_;
  OobAddress peer_;
  DescriptorWatch descriptors_{&clock_, [](LogLevel, const std::string& line) { ADD_FAILURE() << line; }};
  TcpProbes probes_{&poller_, &clock_, &source_, &descriptors_};
};

TEST_F(TcpProbesTest, AStoppedProcessAnswersAnyNumberOfQuestions) {
  const UniqueFd listener = StoppedListener();
  for (int i = 0; i < 10; ++i) EXPECT_EQ(Ask(), ProbeResult::kAnswers) << i;
  int failure = 0;
  EXPECT_TRUE(Accept(listener.get(), &failure));
  EXPECT_FALSE(Accept(listener.get(), &failure)) << "one connection for all of them";
}

TEST_F(TcpProbesTest, AProcessThatHangsUpRuns) {
  const UniqueFd listener = StoppedListener();
  EXPECT_EQ(Ask(), ProbeResult::kAnswers);
  int failure = 0;
  EXPECT_TRUE(Accept(listener.get(), &failure)) << "and closes it";
  for (int i = 0; i < 10; ++i) poller_.Wait(1);
  EXPECT_EQ(Ask(), ProbeResult::kRuns);
}

TEST_F(TcpProbesTest, AProcessThatIsGoneRefuses) {
  UniqueFd listener = StoppedListener();
  EXPECT_EQ(Ask(), ProbeResult::kAnswers);
  listener.Close();
  // The kernel ends what was not accepted.
  for (int i = 0; i < 10; ++i) poller_.Wait(1);
  EXPECT_EQ(Ask(), ProbeResult::kRefused);
}

TEST_F(TcpProbesTest, AProcessThatSentAFrameSinceIsAskedAgain) {
  UniqueFd listener = StoppedListener();
  EXPECT_EQ(Ask(), ProbeResult::kAnswers);
  int failure = 0;
  const UniqueFd held = Accept(listener.get(), &failure);
  ASSERT_TRUE(held);
  listener.Close();
  // As by a child that sleeps on with its parent's descriptors.
  EXPECT_EQ(Ask(), ProbeResult::kAnswers);
  EXPECT_EQ(Ask(clock_.Now()), ProbeResult::kRefused);
}

TEST_F(TcpProbesTest, AFullQueueIsSilent) {
  const UniqueFd listener = StoppedListener();
  SocketAddress to;
  ASSERT_TRUE(ParseAddress(peer_.host, peer_.port, &to));
  int failure = 0;
  std::vector<UniqueFd> fillers;
  for (int i = 0; i < 8; ++i) fillers.push_back(Connect(source_, to, SocketUse::kOob, &failure));
  EXPECT_EQ(Ask(), ProbeResult::kSilent);
}

TEST_F(TcpProbesTest, AnInvalidAddressIsSilent) {
  peer_ = {"nowhere", 1};
  EXPECT_EQ(Ask(), ProbeResult::kSilent);
}

}  // namespace
}  // namespace r2cc::net
