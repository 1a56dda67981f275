// Conversations that cost a daemon more than it has, from those who have proved nothing and from ordinary users. Each ended r2ccd once, with
// the memory that its unit allows. During each n1 stays connected, and root's drain is done within a second.
#include <gmock/gmock.h>

#include <csignal>
#include <cstdio>
#include <vector>

#include "daemon/trust/http2_attacker.h"
#include "daemon/trust/memory_cgroup.h"
#include "daemon/trust/r2ccd_trust_rig.h"

namespace r2cc::daemon {
namespace {

constexpr uid_t kNobody = 65534;
constexpr int64_t kPeakKbMax = 128 << 10;

enum class Door { kTls, kClear, kControl };

class PressureTest : public TrustTest, public testing::WithParamInterface<Door> {
 protected:
  void SetUp() override {
    signal(SIGPIPE, SIG_IGN);
    TrustTest::SetUp();
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
    if (GetParam() == Door::kTls) UseTls();
    StartAll();
    if (geteuid() == 0) cgroup_.Add(daemons_[0]->pid());
    before_kb_ = MemoryKb(daemons_[0]->pid(), "VmRSS");
    lost_ = Events(0, "peer-lost").size();
    plugin_ = Attach(0);
  }
  void TearDown() override {
    plugin_.reset();
    TrustTest::TearDown();
  }
  // Null: the door is closed to it.
  std::unique_ptr<Http2Attacker> Enter() {
    if (GetParam() == Door::kControl) return Http2Attacker::Local(RunDir(0) + "/r2ccd.sock", kNobody);
    return Http2Attacker::Tcp(ports_[0], GetParam() == Door::kTls);
  }
  // Others are served as if nothing was.
  void ExpectUnharmed() {
    ASSERT_TRUE(daemons_[0]->alive()) << daemons_[0]->log();
    const Nanos begin = Now();
    EXPECT_EQ(Act(0, "n0", "rail0", drained_ ? v1::UNDRAIN : v1::DRAIN), "");
    drained_ = !drained_;
    EXPECT_LT(Now() - begin, kNanosPerSecond);
    EXPECT_EQ(Events(0, "peer-lost").size(), lost_);
    const int64_t peak_kb = MemoryKb(daemons_[0]->pid(), "VmHWM");
    std::printf("%lld KiB before, %lld KiB at most\n", static_cast<long long>(before_kb_), static_cast<long long>(peak_kb));
    EXPECT_LT(peak_kb, kPeakKbMax);
  }
  uint64_t RefusedInAll() {
    uint64_t times = 0;
    const v1::StatusReply status = Status(0);
    for (const v1::Refusal& refusal : status.refusals()) times += refusal.times();
    return times;
  }

  MemoryCgroup cgroup_;
  int64_t before_kb_ = 0;
  size_t lost_ = 0;
  bool drained_ = false;
  std::unique_ptr<Plugin> plugin_;
};

INSTANTIATE_TEST_SUITE_P(Doors, PressureTest, testing::Values(Door::kTls, Door::kClear, Door::kControl), [](const auto& info) {
  return info.param == Door::kTls ? "TlsWithoutCertificate" : info.param == Door::kClear ? "Clear" : "ControlSocket";
});

TEST_P(PressureTest, StreamsThatAreResetAtOnce) {
  int sent = 0;
  for (int connection = 0; connection < 20; ++connection) {
    const auto attacker = Enter();
    if (attacker == nullptr || !attacker->Send(Http2Attacker::Preface())) continue;
    bool open = true;
    for (uint32_t i = 0; open && i < 40'000; i += 100) {
      std::string frames;
      for (uint32_t j = i; j < i + 100; ++j)
        frames += Http2Attacker::Frame(Http2Attacker::kHeaders, 5, 2 * j + 1, Http2Attacker::Request("/no.such/Method")) +
                  Http2Attacker::Frame(Http2Attacker::kRst, 0, 2 * j + 1, std::string(4, '\0'));
      open = attacker->Send(frames);
      sent += 100;
    }
  }
  EXPECT_GT(sent, 0);
  ExpectUnharmed();
  EXPECT_GT(RefusedInAll(), 0u);
}

TEST_P(PressureTest, RequestsWithoutAnEnd) {
  std::vector<std::unique_ptr<Http2Attacker>> attackers;
  const std::string part(16'000, 'x');
  for (int connection = 0; connection < 6; ++connection) {
    auto attacker = Enter();
    if (attacker == nullptr || !attacker->Send(Http2Attacker::Preface())) continue;
    bool open = true;
    for (uint32_t i = 0; open && i < 64; ++i) {
      const uint32_t stream = 2 * i + 1;
      open = attacker->Send(Http2Attacker::Frame(Http2Attacker::kHeaders, 4, stream, Http2Attacker::Request("/r2cc.v1.Control/ActOnNic")) +
                            Http2Attacker::Frame(Http2Attacker::kData, 0, stream, std::string("\0\0\x3f\0\0", 5)));
    }
    // As much as the windows let in.
    for (int round = 0; open && round < 260; ++round)
      for (uint32_t i = 0; open && i < 64; ++i) open = attacker->Send(Http2Attacker::Frame(Http2Attacker::kData, 0, 2 * i + 1, part));
    attackers.push_back(std::move(attacker));
  }
  ExpectUnharmed();
  EXPECT_GT(RefusedInAll(), 0u);
}

TEST_P(PressureTest, SmallOnTheWireAndLargeInMemory) {
  std::vector<std::unique_ptr<Http2Attacker>> attackers;
  std::string fields;
  while (fields.size() < (4 << 20) - 10) fields += std::string("\xfa\x3f\0", 3);  // field 1023, of length 0
  for (int connection = 0; connection < 8; ++connection) {
    auto attacker = Enter();
    if (attacker == nullptr || !attacker->Send(Http2Attacker::Preface())) continue;
    bool open = true;
    for (uint32_t stream = 1; open && stream < 8; stream += 2) {
      const size_t n = fields.size();
      open = attacker->Send(Http2Attacker::Frame(Http2Attacker::kHeaders, 4, stream, Http2Attacker::Request("/r2cc.v1.Control/ActOnNic")) +
                            Http2Attacker::Frame(Http2Attacker::kData, 0, stream,
                                                 std::string({0, char(n >> 24), char(n >> 16), char(n >> 8), char(n)})));
      for (size_t at = 0; open && at < n; at += 16'000)
        open = attacker->Send(Http2Attacker::Frame(Http2Attacker::kData, at + 16'000 >= n ? 1 : 0, stream, fields.substr(at, 16'000)));
    }
    attackers.push_back(std::move(attacker));
  }
  ExpectUnharmed();
  EXPECT_GT(RefusedInAll(), 0u);
}

// All rules are kept, and nothing is ever asked. As many as the test may have descriptors for, and at most ten thousand.
TEST_P(PressureTest, ManyConversationsThatBehaveAndSayNothing) {
  const int wanted = GetParam() == Door::kTls ? 2000 : 4000;
  std::vector<std::unique_ptr<Http2Attacker>> attackers;
  for (int i = 0; i < wanted; ++i) {
    auto attacker = Enter();
    if (attacker == nullptr) break;
    if (!attacker->Send(Http2Attacker::Preface())) continue;
    attackers.push_back(std::move(attacker));
  }
  size_t held = 0;
  ASSERT_TRUE(WaitUntil([&] {
    held = 0;
    for (const auto& attacker : attackers) held += !attacker->over();
    return held <= 128;
  }, 10 * kNanosPerSecond)) << held << " conversations are held";
  ExpectUnharmed();
  EXPECT_GT(RefusedInAll(), 1000u);
  attackers.clear();
  EXPECT_TRUE(WaitUntil([&] { return 10 * MemoryKb(daemons_[0]->pid(), "VmRSS") < 12 * before_kb_; }, 60 * kNanosPerSecond))
      << MemoryKb(daemons_[0]->pid(), "VmRSS") << " KiB, and " << before_kb_ << " before";
}

}  // namespace
}  // namespace r2cc::daemon
