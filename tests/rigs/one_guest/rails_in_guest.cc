// The plugin as it is shipped over RDMA rails: two processes, one a node, each byte checked, while cables are pulled, rails flap and fall
// silent, and queue pairs break. In a guest whose rails are bridges, so that one end can fail alone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "tests/rigs/one_guest/rank_pair.h"

namespace r2cc::rig {
namespace {

using testing::HasSubstr;

// A ring of two: both ends send and receive. Slices of 512 KiB at most, as NCCL's.
const std::vector<std::string> kUntilAsked = {"all_reduce", "-b", "256K", "--seconds", "600"};
// A few iterations of two channels, so that each rail is in use.
constexpr size_t kSome = 16;

constexpr double kMs = 1e-6;

class RailsInGuest : public testing::Test {
 protected:
  void TearDown() override {
    for (const char* const rail : {"0", "1", "2"})
      for (const char* const node : {"a", "b"}) {
        const std::string port = std::string("p") + rail + node;
        Shell("ip link set " + port + " master bridge" + rail + " up");
      }
  }

  // Pulls `cut` while the job runs, waits until it goes on, and prints how long it stood still. Then `mend`.
  static void Cut(const RankPair& job, const std::string& what, const std::string& cut, const std::string& mend) {
    const int64_t healthy = MonotonicNs();
    ASSERT_TRUE(job.AwaitMore(2 * kSome)) << "before: " << what;
    const int64_t now = MonotonicNs();
    Shell(cut);
    ASSERT_TRUE(job.AwaitMore(kSome)) << "after: " << what << "\n" << job.Output(0) << job.Output(1);
    std::printf("%s: longest wait %.0f ms; the usual one of that run %.0f ms\n", what.c_str(),
                static_cast<double>(job.LongestWaitNs(now)) * kMs, static_cast<double>(job.UsualWaitNs(healthy, now)) * kMs);
    Shell(mend);
  }
};

TEST_F(RailsInGuest, EveryByteIsRightWithoutATcpRail) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"all_reduce", "-b", "4", "-e", "1M", "-f", "64", "-n", "2", "-w", "0"},
        {"sendrecv", "-b", "0", "-e", "512K", "-i", "256K", "-n", "1", "-w", "0"},
        {"alltoall", "-b", "300000", "-n", "1", "-w", "0"}}) {
    std::vector<std::string> with_json = arguments;
    with_json.push_back("--json");
    RankPair job({.arguments = with_json, .environment = {{"R2CC_TRANSPORT", "verbs"}}, .of_rank = {}});
    EXPECT_TRUE(job.EndedWell()) << arguments[0];
    // The plugin's log, r2cc-perf's table and its JSON.
    for (const char* const before : {"R2CC: rails ", ", devices ", "\"devices\":\""})
      EXPECT_THAT(job.Output(0), HasSubstr(before + std::string("v0a (RDMA, rxe0a), v1a (RDMA, rxe1a)")));
  }
}

// CollNet's control messages lie in memory that nobody has registered.
TEST_F(RailsInGuest, UnregisteredMemoryTravelsToo) {
  RankPair job({.arguments = {"all_reduce", "--collnet", "-b", "4", "-e", "256K", "-f", "65536", "-n", "2", "-w", "0"},
                .environment = {{"R2CC_TRANSPORT", "verbs"}, {"R2CC_MODE", "3"}},
                .of_rank = {}});
  EXPECT_TRUE(job.EndedWell());
}

TEST_F(RailsInGuest, CablesPulledAtEitherEndCostTime) {
  RankPair job({.arguments = kUntilAsked, .environment = {{"R2CC_TRANSPORT", "verbs"}}, .of_rank = {}});
  Cut(job, "cable of v0a pulled", "ip link set p0a down", "ip link set p0a up");
  ASSERT_TRUE(job.AwaitUp(0, "v0a", 1));
  Cut(job, "cable of v1b pulled", "ip link set p1b down", "ip link set p1b up");
  ASSERT_TRUE(job.AwaitUp(1, "v1b", 1));
  Cut(job, "rail 1 silent", "ip link set p1a nomaster", "ip link set p1a master bridge1");
  ASSERT_TRUE(job.AwaitMore(kSome));
  for (int flap = 0; flap < 2; ++flap) {
    Shell("ip link set p0b down");
    ASSERT_TRUE(job.AwaitMore(2));
    Shell("ip link set p0b up");
    ASSERT_TRUE(job.AwaitUp(1, "v0b", flap + 1));
  }
  ASSERT_TRUE(job.AwaitMore(kSome));
  job.Ask();
  EXPECT_TRUE(job.EndedWell());
  EXPECT_GE(job.Failovers("a/v0a"), 1) << job.Output(0);
  EXPECT_GE(job.Failovers("a/v1a"), 1) << job.Output(0);
}

TEST_F(RailsInGuest, ASecondCablePulledWhileTheFirstIsReplayedCostsTime) {
  RankPair job({.arguments = kUntilAsked, .environment = {{"R2CC_TRANSPORT", "verbs"}, {"R2CC_LOG", "debug"}}, .of_rank = {}, .rails = 3});
  ASSERT_TRUE(Await([&] { return job.LinksUp(0) >= 3 && job.LinksUp(1) >= 3; }));
  // The event is there within some milliseconds, the replay over after some ten.
  Cut(job, "cables of v0a and, 10 ms later, v1b pulled", "ip link set p0a down; sleep 0.01; ip link set p1b down",
      "ip link set p0a up; ip link set p1b up");
  ASSERT_TRUE(job.AwaitUp(0, "v0a", 1));
  ASSERT_TRUE(job.AwaitUp(1, "v1b", 1));
  ASSERT_TRUE(job.AwaitMore(kSome));
  job.Ask();
  EXPECT_TRUE(job.EndedWell());
  EXPECT_GE(job.Failovers("a/v0a"), 1) << job.Output(0);
  EXPECT_GE(job.Failovers("a/v1a"), 1) << job.Output(0);
}

TEST_F(RailsInGuest, AGidThatChangesCostsTime) {
  RankPair job({.arguments = kUntilAsked, .environment = {{"R2CC_TRANSPORT", "verbs"}, {"R2CC_LOG", "debug"}}, .of_rank = {}});
  ASSERT_TRUE(Await([&] { return job.LinksUp(0) >= 2 && job.LinksUp(1) >= 2; }));
  // With the old address go the routes that have it for a source.
  const std::string to_new = "ip route add 10.0.0.11 dev v0b src 10.0.0.2 table 102 && ip rule add pref 10 iif lo to 10.0.0.11 lookup 102";
  const auto change = [](const std::string& from, const std::string& to) {
    return "ip addr del " + from + "/24 dev v0a && ip addr add " + to + "/24 dev v0a noprefixroute && ip route add 10.0.0.2 dev v0a src " +
           to + " table 101";
  };
  Shell(to_new);
  Cut(job, "v0a renumbered", change("10.0.0.1", "10.0.0.11"), "true");
  ASSERT_TRUE(Await([&] { return job.LinksUp(0) >= 3 && job.LinksUp(1) >= 3; })) << job.Output(0) << job.Output(1);
  // It works by its new GID: there is no other rail.
  Cut(job, "then the cable of v1a pulled", "ip link set p1a down", "ip link set p1a up");
  job.Ask();
  EXPECT_TRUE(job.EndedWell());
  EXPECT_GE(job.Failovers("a/v0a"), 1) << job.Output(0);
  Shell(change("10.0.0.11", "10.0.0.1"));
}

// As where ports have no address: nobody but the device says what becomes of a port.
TEST_F(RailsInGuest, PortsAreRailsByThemselves) {
  RankPair job({.arguments = kUntilAsked,
                .environment = {{"R2CC_TRANSPORT", "auto"}, {"R2CC_LOG", "debug"}},
                .of_rank = {{{"R2CC_RAILS", "rxe0a,rxe1a"}}, {{"R2CC_RAILS", "rxe0b,rxe1b"}}}});
  ASSERT_TRUE(Await([&] { return job.LinksUp(0) >= 2 && job.LinksUp(1) >= 2; })) << job.Output(0) << job.Output(1);
  Cut(job, "cable of rxe0a pulled", "ip link set p0a down", "ip link set p0a up");
  ASSERT_TRUE(Await([&] { return job.LinksUp(0) >= 3 && job.LinksUp(1) >= 3; })) << job.Output(0) << job.Output(1);
  // What came back works: there is no other rail.
  Cut(job, "then the cable of rxe1b pulled", "ip link set p1b down", "ip link set p1b up");
  job.Ask();
  EXPECT_TRUE(job.EndedWell());
  EXPECT_THAT(job.Output(0), HasSubstr("R2CC: rails rxe0a (RDMA), rxe1a (RDMA)"));
  EXPECT_GE(job.Failovers("a/rxe0a"), 1) << job.Output(0);
  EXPECT_GE(job.Failovers("a/rxe1a"), 1) << job.Output(0);
}

TEST_F(RailsInGuest, BrokenQueuePairsCostTime) {
  // As a NIC says of its queue pair: retries exceeded, flushed by somebody, refused by the other end, no way to the peer; a post that
  // fails; and a queue pair that is in error all at once.
  RankPair job({.arguments = {"all_reduce", "-b", "256K", "-n", "20", "-w", "0"},
                .environment = {{"R2CC_TRANSPORT", "verbs"},
                                {"LD_LIBRARY_PATH", std::filesystem::absolute("tests/rigs/faulty_libibverbs").string()},
                                {"R2CC_VERBS_FAULTS",
                                 "completion:50:12,completion:100:5,completion:150:10,completion:200:2,post_send:80:22,pair_state:180:6"}},
                .of_rank = {}});
  EXPECT_TRUE(job.EndedWell());
  for (int rank = 0; rank < 2; ++rank) EXPECT_THAT(job.Output(rank), HasSubstr("faulty_libibverbs: injected 6 of 6 faults"));
  EXPECT_GE(job.Failovers("a/v0a") + job.Failovers("a/v1a"), 1) << job.Output(0);
}

// The last: its device is gone afterwards.
TEST_F(RailsInGuest, OneRailOfEachKindAndEitherIsCut) {
  Shell("rdma link delete rxe1a");
  RankPair job({.arguments = kUntilAsked, .environment = {{"R2CC_TRANSPORT", "auto"}}, .of_rank = {}});
  Cut(job, "the RDMA rail pulled", "ip link set p0a down", "ip link set p0a up");
  ASSERT_TRUE(job.AwaitUp(0, "v0a", 1));
  Cut(job, "the TCP rail pulled", "ip link set p1b down", "ip link set p1b up");
  ASSERT_TRUE(job.AwaitUp(1, "v1b", 1));
  job.Ask();
  EXPECT_TRUE(job.EndedWell());
  EXPECT_THAT(job.Output(0), HasSubstr("R2CC: rails v0a (RDMA, rxe0a), v1a\n"));
}

}  // namespace
}  // namespace r2cc::rig
