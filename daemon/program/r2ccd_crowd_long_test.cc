// Ten thousand idle conversations that keep all rules, and ten thousand that keep none, at the same time, from 250 addresses or
// users, to each listener. Each is held until the daemon ends it.
#include <gmock/gmock.h>

#include <sys/resource.h>

#include <vector>

#include "daemon/program/http2_attacker.h"
#include "daemon/program/r2ccd_attacked.h"

namespace r2cc::daemon {
namespace {

constexpr int kBehaved = 10'000;
constexpr int kHostile = 10'000;
constexpr int kWarming = 500;
constexpr int kSources = 250;
constexpr uint32_t kFirstAddress = 0x7f010001;  // 127.1.0.1
constexpr uid_t kFirstUser = 70'000;
// After this many more, others must be served as before.
constexpr int kAskedEach = 1000;

enum class Door { kTls, kClear, kControl, kAttach, kHttp, kHttpTls };

class CrowdTest : public Attacked, public testing::WithParamInterface<Door> {
 protected:
  void SetUp() override {
    if (geteuid() != 0) GTEST_SKIP() << "needs root: has many descriptors, and many users on a socket";
    rlimit descriptors{};
    ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &descriptors), 0);
    descriptors.rlim_cur = descriptors.rlim_max;
    ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &descriptors), 0);
    if (GetParam() == Door::kHttpTls) http_ = "listen: \"0.0.0.0:0\"";
    Attacked::SetUp();
    Start(tls());
    http_port_ = HttpPort(0);
    ASSERT_NE(http_port_, 0);
  }

  // Null: the door is closed to it.
  std::unique_ptr<Http2Attacker> Enter(int number, bool tls) {
    const auto source = static_cast<uint32_t>(number % kSources);
    if (GetParam() == Door::kControl) return Http2Attacker::Local(RunDir(0) + "/r2ccd.sock", kFirstUser + source);
    if (GetParam() == Door::kAttach) return Http2Attacker::LocalPackets(RunDir(0) + "/attach.sock", kFirstUser + source);
    if (http()) return Http2Attacker::Tcp(http_port_, tls, kFirstAddress + source, "http/1.1");
    return Http2Attacker::Tcp(ports_[0], tls, kFirstAddress + source);
  }
  bool tls() const { return GetParam() == Door::kTls || GetParam() == Door::kHttpTls; }
  bool http() const { return GetParam() == Door::kHttp || GetParam() == Door::kHttpTls; }

  // One that keeps the rules as long as it may, and one that breaks them in one of five ways.
  std::unique_ptr<Http2Attacker> Behave(int number) {
    auto behaved = Enter(number, tls());
    if (behaved != nullptr && GetParam() != Door::kAttach)
      behaved->Send(http() ? "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n" : Http2Attacker::Preface());
    return behaved;
  }
  std::unique_ptr<Http2Attacker> Attack(int number) {
    // Half a handshake, or none, is no TLS.
    auto hostile = Enter(number, tls() && number % 5 < 2);
    if (hostile == nullptr) return nullptr;
    const std::string half("\x16\x03\x01\x02\x00\x01\x00", 7);
    if (http() && number % 5 == 1) {
      // Asks for all that it can, and reads nothing of it.
      std::string requests;
      while (requests.size() < 8000)
        requests += "GET /api/v1/events?follow=0 HTTP/1.1\r\nHost: localhost\r\n\r\nGET /api/v1/nics HTTP/1.1\r\nHost: n0\r\n\r\n";
      hostile->SendUnread(requests);
      return hostile;
    }
    switch (number % 5) {
      case 0: hostile->Send(std::string(300, '\xff')); break;
      case 1: hostile->Send(Http2Attacker::Preface() + Http2Attacker::Frame(Http2Attacker::kHeaders, 0, 1, "").substr(0, 5)); break;
      case 2: hostile->Send(half); break;
      case 3: break;
      case 4: hostile->Send("GET / HTTP/1.1\r\n"); break;
    }
    return hostile;
  }

  int http_port_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Doors, CrowdTest,
                         testing::Values(Door::kTls, Door::kClear, Door::kControl, Door::kAttach, Door::kHttp, Door::kHttpTls),
                         [](const auto& info) {
                           switch (info.param) {
                             case Door::kTls: return "Tls";
                             case Door::kClear: return "Clear";
                             case Door::kControl: return "ControlSocket";
                             case Door::kAttach: return "AttachSocket";
                             case Door::kHttp: return "Http";
                             case Door::kHttpTls: return "HttpTls";
                           }
                           return "";
                         });

TEST_P(CrowdTest, TenThousandThatBehaveAndTenThousandThatDoNot) {
  // Its memory once it serves anybody, with its libraries' threads and pools: for each connection that was ever open at the same time gRPC
  // keeps a record for good.
  std::vector<std::unique_ptr<Http2Attacker>> warming;
  for (int number = 0; number < kWarming; ++number) warming.push_back(Behave(number));
  AwaitAnswers(5);
  warming.clear();
  AwaitAnswers(5);
  before_kb_ = MemoryKb(daemons_[0]->pid(), "VmRSS");
  std::vector<std::unique_ptr<Http2Attacker>> crowd;
  int refused_at_once = 0;
  const auto leave_the_ended = [&] { std::erase_if(crowd, [](const auto& one) { return one->over(); }); };
  for (int number = 0; number < kBehaved + kHostile; ++number) {
    auto one = number % 2 == 0 ? Behave(number / 2) : Attack(number / 2);
    if (one == nullptr)
      ++refused_at_once;
    else
      crowd.push_back(std::move(one));
    if (number % kAskedEach != 0) continue;
    ExpectUnharmed();
    if (HasFatalFailure()) return;
    leave_the_ended();
  }
  leave_the_ended();
  const size_t open = crowd.size();
  ExpectUnharmed();
  std::printf("%d refused at once, %zu of the others open at the end, %llu refusals counted\n", refused_at_once, open,
              static_cast<unsigned long long>(RefusedInAll()));
  EXPECT_LT(open, Attacked::kDescriptors / 2);
  EXPECT_GT(RefusedInAll(), 1000u);
  crowd.clear();
  const Nanos left = Now();
  int64_t after_kb = 0;
  EXPECT_TRUE(WaitUntil(
      [&] {
        after_kb = MemoryKb(daemons_[0]->pid(), "VmRSS");
        return 10 * after_kb < 12 * before_kb_;
      },
      60 * kNanosPerSecond))
      << after_kb << " KiB, and " << before_kb_ << " before";
  std::printf("%.2f of the memory before, %.0f s after the crowd had left\n",
              static_cast<double>(after_kb) / static_cast<double>(before_kb_), static_cast<double>(Now() - left) / 1e9);
  ExpectUnharmed();
}

}  // namespace
}  // namespace r2cc::daemon
