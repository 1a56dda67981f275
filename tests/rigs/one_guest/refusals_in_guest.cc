// What a job is told that asks for RDMA rails and cannot have them: one line that names the thing and the way out. In a guest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <string>

#include "tests/rigs/one_guest/rank_pair.h"

namespace r2cc::rig {
namespace {

using testing::AllOf;
using testing::HasSubstr;

// What two ranks print. `prefix`: words before the program. `status`: that they end with.
std::string Output(const std::string& prefix, int* status) {
  // Where every user may read them.
  Shell("mkdir -p /tmp/refusals && cp -Lu tools/perf/r2cc-perf netplugin/libnccl-net-r2cc.so /tmp/refusals/ && chmod 755 /tmp/refusals");
  const std::string command = "R2CC_RAILS=v0a R2CC_TRANSPORT=verbs R2CC_OOB_IFNAME=127.0.0.1 R2CC_ATTACH=none timeout 60 " + prefix +
                              " /tmp/refusals/r2cc-perf --plugin /tmp/refusals/libnccl-net-r2cc.so --ranks 2 -b 4 -n 1 --timeout 30 2>&1";
  std::string output;
  FILE* const out = popen(command.c_str(), "r");
  std::array<char, 512> part{};
  while (fgets(part.data(), part.size(), out) != nullptr) output += part.data();
  *status = pclose(out);
  return output;
}

// The same of ranks that do not come to meet.
std::string Refused(const std::string& prefix) {
  int status = 0;
  std::string output = Output(prefix, &status);
  EXPECT_NE(status, 0) << output;
  return output;
}

TEST(RefusalsInGuest, NoPermission) {
  Shell("chmod 600 /dev/infiniband/uverbs*");
  EXPECT_THAT(Refused("setpriv --reuid=65534 --regid=65534 --clear-groups"),
              AllOf(HasSubstr("R2CC: cannot open the RDMA devices rxe"), HasSubstr("rxe0a"), HasSubstr("rxe0b"),
                    HasSubstr("; allow this user to open /dev/infiniband/uverbs*")));
}

TEST(RefusalsInGuest, AutoWorksWithoutTheDevicesAndLogsTheReason) {
  Shell("chmod 600 /dev/infiniband/uverbs*");
  int status = 0;
  const std::string output = Output("env R2CC_TRANSPORT=auto setpriv --reuid=65534 --regid=65534 --clear-groups", &status);
  EXPECT_EQ(status, 0) << output;
  EXPECT_THAT(output,
              AllOf(HasSubstr("R2CC: cannot open the RDMA devices rxe"), HasSubstr("; allow this user to open /dev/infiniband/uverbs*")));
}

TEST(RefusalsInGuest, TooLittleLockedMemory) {
  EXPECT_THAT(Refused("prlimit --memlock=16384 setpriv --bounding-set=-ipc_lock"),
              AllOf(HasSubstr("rxe0a"), HasSubstr("the limit of locked memory (ulimit -l, RLIMIT_MEMLOCK) is 16 KiB: raise it")));
}

TEST(RefusalsInGuest, APeerThatGoesByTcp) {
  RankPair job({.arguments = {"all_reduce", "-b", "4", "-n", "1", "-w", "0"},
                .environment = {{"R2CC_DEADLINE_MS", "3000"}},
                .of_rank = {{{"R2CC_TRANSPORT", "verbs"}}, {{"R2CC_TRANSPORT", "tcp"}}},
                .rails = 1});
  for (int rank = 0; rank < 2; ++rank)
    EXPECT_TRUE(Await([&] { return job.Output(rank).find("alone; set R2CC_TRANSPORT to the same at both ends") != std::string::npos; }))
        << job.Output(rank);
}

TEST(RefusalsInGuest, AnotherMtuAtTheOtherEndIsAgreedOn) {
  Shell("ip link set v0b mtu 1500");
  RankPair job({.arguments = {"all_reduce", "-b", "1M", "-n", "1", "-w", "0"},
                .environment = {{"R2CC_TRANSPORT", "verbs"}},
                .of_rank = {},
                .rails = 1});
  EXPECT_TRUE(job.EndedWell());
  Shell("ip link set v0b mtu 4200");
}

// The last: its device is gone afterwards.
TEST(RefusalsInGuest, ARailWithoutADevice) {
  Shell("rdma link delete rxe0a");
  EXPECT_THAT(Refused(""),
              HasSubstr("R2CC: rail v0a has no RDMA device, and R2CC_TRANSPORT=verbs asks for one on each rail: name others in "
                        "R2CC_RAILS, or set it to auto"));
}

}  // namespace
}  // namespace r2cc::rig
