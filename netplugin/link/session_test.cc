// Both ends of a session over links and an out-of-band channel that are queues, which faults cut and silence. Whatever the faults, every
// message arrives exactly once and whole, nothing is written late, and everything ends. tests/sim has the real network.

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "netplugin/link/session_world.h"

namespace r2cc::net {
namespace {

void RunJob(uint64_t seed, int fault_one_in, uint64_t* replayed_bytes, uint64_t* fences) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  SessionWorld world(seed);
  std::vector<FlowId> flows;
  for (int i = 0; i < 3; ++i) flows.push_back(world.OpenFlow());
  for (int i = 0; i < 2000 && !world.opened(); ++i) world.Step();
  ASSERT_TRUE(world.opened());
  constexpr int kMessages = 24;
  int posted = 0;
  for (int step = 0; step < 60'000; ++step) {
    if (posted < kMessages && world.Chance(10)) {
      const size_t sizes[] = {0, 1, kChunk / 2, kChunk, kChunk + 1, 5 * kChunk + 77, 20 * kChunk};
      world.PostBoth(flows[static_cast<size_t>(posted) % flows.size()], sizes[world.Pick(7)]);
      ++posted;
    }
    if (step < 3000 && world.Chance(fault_one_in)) {
      const auto link = static_cast<LinkId>(world.Pick(kRails));
      switch (world.Pick(3)) {
        case 0: world.CutLink(link); break;
        case 1: world.HealLink(link); break;
        default: world.CutOob(); break;
      }
    }
    if (step == 3000)
      for (LinkId link = 0; link < kRails; ++link) world.HealLink(link);
    world.Step();
    if (testing::Test::HasFatalFailure()) return;
    if (posted == kMessages && world.AllDone()) break;
  }
  ASSERT_TRUE(world.AllDone()) << "a request never completed";
  ASSERT_FALSE(world.sender_.failed() || world.receiver_.failed());
  world.CheckNoLateWrites();
  for (const FlowId flow : flows) {
    world.receiver_.CloseFlow(flow, world.now_);
    world.sender_.CloseFlow(flow, world.now_);
    world.flows_.erase(flow);
  }
  for (int i = 0; i < 20'000 && !(world.sender_.idle() && world.receiver_.idle()); ++i) world.Step();
  ASSERT_TRUE(world.sender_.idle() && world.receiver_.idle()) << "an ended job is kept waiting";
  *replayed_bytes += world.replayed_bytes_;
  *fences += world.fences_;
}

TEST(Session, WithoutFaultsNothingIsFencedOrReplayed) {
  uint64_t replayed = 0, fences = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) RunJob(seed, 1'000'000, &replayed, &fences);
  EXPECT_EQ(replayed, 0u);
  EXPECT_EQ(fences, 0u);
}

TEST(Session, WhateverTheFaultsEveryMessageArrivesOnce) {
  uint64_t replayed = 0, fences = 0;
  for (uint64_t seed = 1; seed <= 400 && !testing::Test::HasFatalFailure(); ++seed)
    RunJob(seed, 20 + static_cast<int>(seed % 7) * 30, &replayed, &fences);
  EXPECT_GT(fences, 400u) << "the faults hit nothing: the test proves nothing";
  EXPECT_GT(replayed, 1'000'000u);
}

}  // namespace
}  // namespace r2cc::net
