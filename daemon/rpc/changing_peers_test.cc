// Jobs come and go, each with other nodes: what a daemon holds for their sake goes with them.
#include <dirent.h>
#include <gtest/gtest.h>
#include <malloc.h>
#include <poll.h>

#include <cstdio>
#include <memory>
#include <vector>

#include "absl/time/clock.h"
#include "daemon/rpc/exchange_rig.h"

namespace r2cc::daemon {
namespace {

constexpr int kJobs = 200;
constexpr size_t kPeersOfAJob = 4;
constexpr size_t kPeers = 9;  // so that each job has others than the one before
// The resources that 100 jobs may leave behind. A channel that stays costs 14 kB: 100 jobs with 4 peers each would leave 5.6 MB.
constexpr size_t kHeapBytesMax = 1 << 20;

size_t Descriptors() {
  size_t count = 0;
  DIR* const folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

struct Resources {
  size_t channels = 0;
  size_t descriptors = 0;
  size_t heap_bytes = 0;
};

TEST(ChangingPeers, NeitherChannelsNorDescriptorsGrow) {
  std::vector<std::unique_ptr<End>> peers;
  for (size_t i = 0; i < kPeers; ++i) peers.push_back(std::make_unique<End>(absl::StrCat("p", i), FreePort()));
  End caller("a", FreePort());
  caller.Call({});
  const auto resources = [&] {
    caller.SetPeers({});
    // gRPC closes connections on threads of its own.
    const absl::Time end = absl::Now() + kWait;
    while (caller.channels() > 0 && absl::Now() < end) {
      poll(nullptr, 0, 5);
      caller.SetPeers({});
    }
    size_t descriptors = Descriptors();
    for (int calm = 0; calm < 20 && absl::Now() < end;) {
      poll(nullptr, 0, 10);
      const size_t now = Descriptors();
      calm = now == descriptors ? calm + 1 : 0;
      descriptors = now;
    }
    return Resources{caller.channels(), descriptors, mallinfo2().uordblks};
  };
  Resources half;
  uint64_t counter = 1;
  for (int job = 0; job < kJobs; ++job) {
    if (job == kJobs / 2) half = resources();
    ++counter;
    std::vector<PeerSpec> specs;
    for (size_t i = 0; i < kPeersOfAJob; ++i) {
      End& peer = *peers[(static_cast<size_t>(job) * kPeersOfAJob + i) % kPeers];
      peer.broadcaster().Set(View(peer.spec().node, counter * 100 + i));
      specs.push_back(peer.spec());
    }
    caller.SetPeers(specs);
    for (size_t i = 0; i < kPeersOfAJob; ++i) ASSERT_TRUE(caller.by_own_stream.Await(counter * 100 + i)) << "job " << job;
  }
  const Resources end = resources();
  std::printf("after %d jobs: %zu channels, %zu descriptors, %zu bytes of heap\nafter %d jobs: %zu channels, %zu descriptors, %zu bytes\n",
              kJobs / 2, half.channels, half.descriptors, half.heap_bytes, kJobs, end.channels, end.descriptors, end.heap_bytes);
  EXPECT_EQ(half.channels, 0u);
  EXPECT_EQ(end.channels, 0u);
  EXPECT_LE(end.descriptors, half.descriptors);
  EXPECT_LE(end.heap_bytes, half.heap_bytes + kHeapBytesMax);
}

}  // namespace
}  // namespace r2cc::daemon
