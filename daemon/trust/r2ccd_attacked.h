// Three real daemons of which the first is attacked, with the memory that its unit gives it and half of the descriptors.
#ifndef R2CC_DAEMON_TRUST_R2CCD_ATTACKED_H_
#define R2CC_DAEMON_TRUST_R2CCD_ATTACKED_H_

#include <sys/resource.h>

#include <csignal>
#include <cstdio>
#include <memory>

#include "daemon/trust/memory_cgroup.h"
#include "daemon/trust/r2ccd_trust_rig.h"

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

#endif  // R2CC_DAEMON_TRUST_R2CCD_ATTACKED_H_
