// One device of several does not do what it is asked to: what the others carry does not suffer.

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/sim/busy_flows.h"

namespace r2cc::sim {
namespace {

constexpr int kRails = 3;

class DeviceFaults : public testing::TestWithParam<int> {
 protected:
  DeviceFaults() : world_(kRails) { world_.Begin(); }
  // In so much time, by all rails but the first.
  uint64_t OthersIn(Nanos time) {
    const auto sum = [this] {
      uint64_t bytes = 0;
      for (int rail = 1; rail < kRails; ++rail) bytes += world_.sent_bytes(rail);
      return bytes;
    };
    const uint64_t before = sum();
    world_.RunFor(time);
    return sum() - before;
  }
  // It has lost its address and its carrier, and has both again: each is an event, and its links break.
  void Upset() {
    const Port port{GetParam(), 0};
    world_.rails().Reset(port, {1 - port.host, 0}, 3, true);
    world_.rails().LoseAddress(port);
    world_.rails().NewAddress(port);
    world_.rails().Carrier(port, false);
    world_.rails().Carrier(port, true);
    world_.process(port.host).NewAddress(port.rail);
  }
  void ExpectOthersGoOn(uint64_t usual, int seconds, bool upset) {
    for (int second = 0; second < seconds; ++second) {
      if (upset) Upset();
      EXPECT_GE(static_cast<double>(OthersIn(kNanosPerSecond)), 0.95 * static_cast<double>(usual)) << "second " << second;
    }
  }

  BusyFlows world_;
};

// Whatever it is asked takes ten seconds, while its port's state changes all the time.
TEST_P(DeviceFaults, ADeviceThatAnswersAfterTenSecondsSlowsDownNoOther) {
  OthersIn(500 * kNanosPerMs);
  const uint64_t usual = OthersIn(kNanosPerSecond);
  ASSERT_GT(usual, (kRails - 1) * BusyFlows::kRailBytesPerS * 9 / 10);
  world_.rails().SlowDevice({GetParam(), 0}, 10 * kNanosPerSecond);
  ExpectOthersGoOn(usual, 12, true);
}

// It is gone, and opening it takes ten seconds.
TEST_P(DeviceFaults, ADeviceThatComesBackSlowlySlowsDownNoOther) {
  OthersIn(500 * kNanosPerMs);
  const uint64_t usual = OthersIn(kNanosPerSecond);
  ASSERT_GT(usual, (kRails - 1) * BusyFlows::kRailBytesPerS * 9 / 10);
  const Port port{GetParam(), 0};
  world_.rails().SlowDevice(port, 10 * kNanosPerSecond);
  world_.rails().Device(port, true);
  world_.process(port.host).Device(0, true);
  ExpectOthersGoOn(usual, 3, false);
  world_.rails().Device(port, false);
  world_.process(port.host).Device(0, false);
  ExpectOthersGoOn(usual, 12, false);
}

// One that has not registered a buffer to send from: its flow goes by the others, and no link is lost.
TEST(DeviceWithoutABuffer, KeepsItsLink) {
  BusyFlows world(kRails);
  constexpr int kFlow = 1;
  world.rails().RefuseRegion(0, kFlow * kRails + 1 + kFlow);  // each flow's on each rail
  world.Begin();
  world.RunFor(500 * kNanosPerMs);
  const auto incarnations = world.Incarnations();
  const uint64_t before = world.received(kFlow);
  world.RunFor(2 * kNanosPerSecond);
  EXPECT_EQ(world.rails().injected(0), 1u);
  EXPECT_GT(world.received(kFlow), before + 1000);
  EXPECT_EQ(world.fences(), 0);
  EXPECT_EQ(world.Incarnations(), incarnations);
}

INSTANTIATE_TEST_SUITE_P(All, DeviceFaults, testing::Values(0, 1));

}  // namespace
}  // namespace r2cc::sim
