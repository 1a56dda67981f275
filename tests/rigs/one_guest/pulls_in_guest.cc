// How long a job over RDMA rails stands still when a cable is pulled, and when a rail falls silent: twenty of each, and what the healthy
// job waits beside them. In a guest whose rails are bridges. By hand: the figures are those of a quiet machine.
#include <gtest/gtest.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <tuple>
#include <vector>

#include "tests/rigs/one_guest/rank_pair.h"

namespace r2cc::rig {
namespace {

constexpr int kJobs = 4;
constexpr int kFaultsOfJob = 5;  // a job's trace is read all over again at each look, on the one processor
constexpr size_t kSome = 16;     // both rails are in use
constexpr double kMs = 1e-6;
constexpr double kSilenceMs = 250;  // R2CC_SILENCE_MS, as it is by itself

double Median(std::vector<double> of) {
  std::sort(of.begin(), of.end());
  return of.empty() ? 0 : (of[(of.size() - 1) / 2] + of[of.size() / 2]) / 2;
}

// A fault is one system call: a program that made it would take the guest's one processor from the job for as long as what is measured.
class Cables {
 public:
  Cables() = default;
  Cables(const Cables&) = delete;
  Cables& operator=(const Cables&) = delete;
  ~Cables() { close(socket_); }
  void Pull(const std::string& end) { SetUp(end, false); }
  void PlugIn(const std::string& end) { SetUp(end, true); }
  // Off its bridge it is up, and nothing comes or goes.
  void Silence(const std::string& end) { SetBridge(end, SIOCBRDELIF); }
  void EndSilence(const std::string& end) { SetBridge(end, SIOCBRADDIF); }

 private:
  static ifreq Named(const std::string& name) {
    ifreq request{};
    name.copy(request.ifr_name, IFNAMSIZ - 1);
    return request;
  }
  void SetUp(const std::string& end, bool up) {
    ifreq request = Named("p" + end);
    ASSERT_EQ(ioctl(socket_, SIOCGIFFLAGS, &request), 0);
    request.ifr_flags = static_cast<short>(up ? request.ifr_flags | IFF_UP : request.ifr_flags & ~IFF_UP);
    ASSERT_EQ(ioctl(socket_, SIOCSIFFLAGS, &request), 0);
  }
  void SetBridge(const std::string& end, unsigned long how) {
    ifreq request = Named("bridge" + end.substr(0, 1));
    request.ifr_ifindex = static_cast<int>(if_nametoindex(("p" + end).c_str()));
    ASSERT_EQ(ioctl(socket_, how, &request), 0);
  }

  const int socket_ = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
};

struct Stalls {
  std::vector<double> healthy_p99_ms;  // of each job, between its faults
  std::vector<double> stall_ms;
};

// A packet of soft-RoCE whose cable is pulled would wait three seconds in the kernel for its neighbour's address, and its queue pair cannot
// be destroyed before. A NIC knows the address, and has no such queue.
void KnowNeighbours() {
  for (const char* const rail : {"0", "1"})
    for (const auto& [from, to, number] : {std::tuple("a", "b", "2"), {"b", "a", "1"}})
      Shell(std::string("ip neigh replace 10.0.") + rail + "." + number + " lladdr $(cat /sys/class/net/v" + rail + to + "/address) dev v" +
            rail + from + " nud permanent");
}

// Rails 0 and 1 in turn, at node a's end and node b's: `cut` and `mend` are given "0a", "1b", ...
Stalls Measure(void (Cables::*cut)(const std::string&), void (Cables::*mend)(const std::string&)) {
  Cables cables;
  Stalls stalls;
  KnowNeighbours();
  for (int i = 0; i < kJobs; ++i) {
    RankPair job({.arguments = {"all_reduce", "-b", "256K", "--seconds", "600"},
                  .environment = {{"R2CC_TRANSPORT", "verbs"}, {"R2CC_LOG", "debug"}},
                  .of_rank = {}});
    for (int fault = 0; fault < kFaultsOfJob; ++fault) {
      const std::string end = std::to_string(fault % 2) + ((i + fault / 2) % 2 == 0 ? "a" : "b");
      int64_t healthy = 0;
      const auto settled = [&] {
        healthy = MonotonicNs();
        return job.AwaitMore(4 * kSome) && job.AllLinksUp();
      };
      // A rail that is back may go once more: both directions have used both for a while.
      EXPECT_TRUE(Await(settled)) << job.Output(0) << job.Output(1);
      const int64_t now = MonotonicNs();
      (cables.*cut)(end);
      // What is under way by the other rail tells nothing yet.
      EXPECT_TRUE(Await([&job] { return !job.AllLinksUp(); })) << job.Output(0) << job.Output(1);
      EXPECT_TRUE(job.AwaitMore(kSome)) << job.Output(0) << job.Output(1);
      stalls.stall_ms.push_back(static_cast<double>(job.LongestWaitNs(now)) * kMs);
      stalls.healthy_p99_ms.push_back(static_cast<double>(job.UsualWaitNs(healthy, now)) * kMs);
      (cables.*mend)(end);
      if (testing::Test::HasFailure()) return stalls;
    }
    job.Ask();
    EXPECT_TRUE(job.EndedWell());
  }
  return stalls;
}

// The median of the stalls is within `most_ms` of what the healthy job waits.
void Judge(const char* what, const Stalls& stalls, double most_ms) {
  const double healthy = Median(stalls.healthy_p99_ms);
  const double median = Median(stalls.stall_ms);
  std::printf("%zu x %s: longest wait, median %.0f ms, worst %.0f ms; the healthy job's 99th percentile %.0f ms; each:",
              stalls.stall_ms.size(), what, median, *std::max_element(stalls.stall_ms.begin(), stalls.stall_ms.end()), healthy);
  for (const double one : stalls.stall_ms) std::printf(" %.0f", one);
  std::printf("\n");
  EXPECT_EQ(stalls.stall_ms.size(), static_cast<size_t>(kJobs * kFaultsOfJob));
  EXPECT_LE(median, healthy + most_ms);
}

TEST(PullsInGuest, APulledCableCostsFiftyMilliseconds) { Judge("cable pulled", Measure(&Cables::Pull, &Cables::PlugIn), 50); }

TEST(PullsInGuest, ASilentRailCostsTheSilenceAndAHundredMilliseconds) {
  Judge("rail silent", Measure(&Cables::Silence, &Cables::EndSilence), kSilenceMs + 100);
}

TEST(PullsInGuest, ARailThatFlapsTenTimesCostsTime) {
  RankPair job(
      {.arguments = {"all_reduce", "-b", "256K", "--seconds", "600"}, .environment = {{"R2CC_TRANSPORT", "verbs"}}, .of_rank = {}});
  ASSERT_TRUE(job.AwaitMore(4 * kSome)) << job.Output(0) << job.Output(1);
  const int64_t since = MonotonicNs();
  for (int flap = 0; flap < 10; ++flap) {
    Shell("ip link set p0b down");
    ASSERT_TRUE(job.AwaitMore(2));
    Shell("ip link set p0b up");
    ASSERT_TRUE(job.AwaitUp(1, "v0b", flap + 1)) << job.Output(1);
  }
  ASSERT_TRUE(job.AwaitMore(4 * kSome));
  std::printf("10 flaps: longest wait %.0f ms\n", static_cast<double>(job.LongestWaitNs(since)) * kMs);
  job.Ask();
  EXPECT_TRUE(job.EndedWell());
}

}  // namespace
}  // namespace r2cc::rig
