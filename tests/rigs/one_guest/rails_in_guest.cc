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
    for (const char* const rail : {"0", "1"})
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
    ASSERT_TRUE(job.AwaitMore(kSome)) << "after: " << what << "\n" << job.Said(0) << job.Said(1);
    std::printf("%s: longest wait %.0f ms; the usual one of that run %.0f ms\n", what.c_str(),
                static_cast<double>(job.LongestWaitNs(now)) * kMs, static_cast<double>(job.UsualWaitNs(healthy, now)) * kMs);
    Shell(mend);
  }
  static bool SaysUp(const RankPair& job, int rank, const std::string& rail, int times) {
    return Await([&] {
      const std::string said = job.Said(rank), words = "rail " + rail + " is up";
      int found = 0;
      for (size_t at = said.find(words); at != std::string::npos; at = said.find(words, at + 1)) ++found;
      return found >= times;
    });
  }
};

TEST_F(RailsInGuest, EveryByteIsRightWithoutATcpRail) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{"all_reduce", "-b", "4", "-e", "1M", "-f", "64", "-n", "2", "-w", "0"},
        {"sendrecv", "-b", "0", "-e", "512K", "-i", "256K", "-n", "1", "-w", "0"},
        {"alltoall", "-b", "300000", "-n", "1", "-w", "0"}}) {
    RankPair job({.arguments = arguments, .environment = {{"R2CC_TRANSPORT", "verbs"}}, .of_rank = {}});
    EXPECT_TRUE(job.EndedWell()) << arguments[0];
    EXPECT_THAT(job.Said(0), HasSubstr("R2CC: rails v0a (RDMA, rxe0a), v1a (RDMA, rxe1a)"));
  }
}

// CollNet's control messages lie in memory that nobody has registered.
TEST_F(RailsInGuest, WhatIsNotRegisteredTravelsToo) {
  RankPair job({.arguments = {"all_reduce", "--collnet", "-b", "4", "-e", "256K", "-f", "65536", "-n", "2", "-w", "0"},
                .environment = {{"R2CC_TRANSPORT", "verbs"}, {"R2CC_MODE", "3"}},
                .of_rank = {}});
  EXPECT_TRUE(job.EndedWell());
}

TEST_F(RailsInGuest, CablesPulledAtEitherEndCostTime) {
  RankPair job({.arguments = kUntilAsked, .environment = {{"R2CC_TRANSPORT", "verbs"}}, .of_rank = {}});
  Cut(job, "cable of v0a pulled", "ip link set p0a down", "ip link set p0a up");
  ASSERT_TRUE(SaysUp(job, 0, "v0a", 1));
  Cut(job, "cable of v1b pulled", "ip link set p1b down", "ip link set p1b up");
  ASSERT_TRUE(SaysUp(job, 1, "v1b", 1));
  Cut(job, "rail 1 silent", "ip link set p1a nomaster", "ip link set p1a master bridge1");
  ASSERT_TRUE(job.AwaitMore(kSome));
  for (int flap = 0; flap < 2; ++flap) {
    Shell("ip link set p0b down");
    ASSERT_TRUE(job.AwaitMore(2));
    Shell("ip link set p0b up");
    ASSERT_TRUE(SaysUp(job, 1, "v0b", flap + 1));
  }
  ASSERT_TRUE(job.AwaitMore(kSome));
  job.Ask();
  EXPECT_TRUE(job.EndedWell());
  EXPECT_GE(job.Failovers("a/v0a"), 1) << job.Said(0);
  EXPECT_GE(job.Failovers("a/v1a"), 1) << job.Said(0);
}

TEST_F(RailsInGuest, BrokenQueuePairsCostTime) {
  // As a NIC says of its queue pair: retries exceeded, flushed by somebody, refused by the other end; and a post that fails.
  RankPair job({.arguments = {"all_reduce", "-b", "256K", "-n", "12", "-w", "0"},
                .environment = {{"R2CC_TRANSPORT", "verbs"},
                                {"LD_LIBRARY_PATH", std::filesystem::absolute("tests/rigs/faulty_libibverbs").string()},
                                {"R2CC_VERBS_FAULTS", "completion:50:12,completion:100:5,completion:150:10,post_send:80:22"}},
                .of_rank = {}});
  EXPECT_TRUE(job.EndedWell());
  for (int rank = 0; rank < 2; ++rank) EXPECT_THAT(job.Said(rank), HasSubstr("faulty_libibverbs: injected 4 of 4 faults"));
  EXPECT_GE(job.Failovers("a/v0a") + job.Failovers("a/v1a"), 1) << job.Said(0);
}

// The last: its device is gone afterwards.
TEST_F(RailsInGuest, OneRailOfEachKindAndEitherIsCut) {
  Shell("rdma link delete rxe1a");
  RankPair job({.arguments = kUntilAsked, .environment = {{"R2CC_TRANSPORT", "auto"}}, .of_rank = {}});
  Cut(job, "the RDMA rail pulled", "ip link set p0a down", "ip link set p0a up");
  ASSERT_TRUE(SaysUp(job, 0, "v0a", 1));
  Cut(job, "the TCP rail pulled", "ip link set p1b down", "ip link set p1b up");
  ASSERT_TRUE(SaysUp(job, 1, "v1b", 1));
  job.Ask();
  EXPECT_TRUE(job.EndedWell());
  EXPECT_THAT(job.Said(0), HasSubstr("R2CC: rails v0a (RDMA, rxe0a), v1a\n"));
}

}  // namespace
}  // namespace r2cc::rig
