// Test rig: three real daemons, of which the first is attacked, with the memory of its unit and half of the descriptors.
#ifndef R2CC_DAEMON_PROGRAM_R2CCD_ATTACKED_H_
#define R2CC_DAEMON_PROGRAM_R2CCD_ATTACKED_H_

#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "daemon/http/http_client_rig.h"
#include "daemon/program/memory_cgroup.h"
#include "daemon/program/r2ccd_trust_rig.h"

namespace r2cc::daemon {

// A quarter of the memory that the unit allows, MemoryMax.
constexpr int64_t kPeakKbMax = 128 << 10;

// Three daemons, the first of which is attacked.
class Attacked : public TrustTest {
 public:
  // Half of what the unit allows: what a crowd may take must leave room.
  static constexpr rlim_t kDescriptors = 16384;

 protected:
  void Start(bool tls) {
    signal(SIGPIPE, SIG_IGN);
    LetUsersIn(0);
    if (tls) UseTls();
    StartAll();
    if (geteuid() == 0) cgroup_.Add(daemons_[0]->pid());
    const rlimit descriptors{kDescriptors, kDescriptors};
    EXPECT_EQ(prlimit(daemons_[0]->pid(), RLIMIT_NOFILE, &descriptors, nullptr), 0);
    before_kb_ = MemoryKb(daemons_[0]->pid(), "VmRSS");
    lost_ = Events(0, "peer-lost").size();
    plugin_ = Attach(0);
  }
  void TearDown() override {
    plugin_.reset();
    // On loopback everybody may ask.
    if (!daemons_.empty() && daemons_[0] != nullptr && daemons_[0]->alive() && http_.find("127.0.0.1") != std::string::npos)
      ExpectShortTurns();
    TrustTest::TearDown();
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
  // By its log; 0: it serves none.
  int HttpPort(int node) {
    int port = 0;
    WaitUntil([&] {
      const std::string log = daemons_[node]->log();
      const size_t line = log.find("r2ccd serves HTTP");
      const size_t at = line == std::string::npos ? line : log.find("port=", line);
      if (at != std::string::npos) port = std::atoi(log.c_str() + at + 5);
      return port != 0;
    });
    return port;
  }
  // A metric of the attacked daemon, which serves HTTP in the clear; others may have asked for all that it answers in a second.
  double MetricOf(const std::string& name) {
    const int port = HttpPort(0);
    double value = -1;
    EXPECT_TRUE(WaitUntil([&] {
      HttpClient client(port);
      client.Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
      const std::string text = client.Response();
      const size_t at = text.find("\n" + name + " ");
      if (at != std::string::npos) value = std::atof(text.c_str() + at + 2 + name.size());
      return at != std::string::npos;
    })) << name;
    return value;
  }
  // No turn of the core took more than 50 ms of processor time.
  void ExpectShortTurns() {
    std::printf("the longest turn of the core took %.1f ms\n", 1000 * MetricOf("r2cc_core_turn_longest_seconds"));
    EXPECT_EQ(MetricOf("r2cc_core_long_turns_total"), 0);
  }
  uint64_t RefusedInAll() {
    const v1::StatusReply status = Status(0);
    uint64_t times = status.attach_refused();
    for (const v1::Refusal& refusal : status.refusals()) times += refusal.times();
    return times;
  }

  MemoryCgroup cgroup_;
  int64_t before_kb_ = 0;
  size_t lost_ = 0;
  bool drained_ = false;
  std::unique_ptr<Plugin> plugin_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_PROGRAM_R2CCD_ATTACKED_H_
