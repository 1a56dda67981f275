#include "netplugin/transport/collective/device_staging.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "netplugin/gpu/fake_gpu.h"
#include "netplugin/transport/fake_transport.h"

namespace r2cc::net {
namespace {

constexpr collnet::Slot kSlots = 3;
constexpr size_t kRails = 2;

class DeviceStagingTest : public testing::Test {
 protected:
  DeviceStagingTest() { verbs_.kinds = {MemoryKind::kHost, MemoryKind::kCuda, MemoryKind::kDmaBuf}; }
  static Memory OfGpu(int gpu, MemoryKind kind = MemoryKind::kCuda) { return {.id = 7, .kind = kind, .gpu = gpu}; }

  gpu::FakeGpu gpu_;
  FakeTransport verbs_{TransportKind::kVerbs, true};
  MemoryTable table_{{&verbs_}, kRails, [](const Region&) {}};
  std::string error_;
  DeviceStaging staging_{&gpu_, &table_, kSlots};
  const Memory of_gpu_ = OfGpu(0), of_other_ = OfGpu(1);
  const Buffer result_{nullptr, &of_gpu_};
};

TEST_F(DeviceStagingTest, SlotsAreBesideEachOtherInMemoryThatRailsKnow) {
  for (const MemoryKind kind : {MemoryKind::kCuda, MemoryKind::kDmaBuf}) {
    DeviceStaging staging(&gpu_, &table_, kSlots);
    ASSERT_TRUE(staging.Reserve(OfGpu(0, kind), &error_)) << error_;
    const Buffer first = staging.Take(0, DeviceStaging::kSlotBytes, result_);
    ASSERT_TRUE(first.is_device());
    EXPECT_EQ(first.memory->kind, kind);
    EXPECT_NE(table_.Find(first.memory->id), nullptr);
    EXPECT_EQ(first.memory->bytes, kSlots * DeviceStaging::kSlotBytes);
    for (collnet::Slot slot = 1; slot < kSlots; ++slot)
      EXPECT_EQ(staging.Take(slot, 1, result_).data, first.data + slot * DeviceStaging::kSlotBytes);
  }
}

TEST_F(DeviceStagingTest, WhatDoesNotBelongThereHasHostMemory) {
  EXPECT_FALSE(staging_.Take(0, 100, result_).is_device()) << "nothing is reserved";
  ASSERT_TRUE(staging_.Reserve(of_gpu_, &error_)) << error_;
  EXPECT_FALSE(staging_.Take(0, 100, {}).is_device()) << "a result in host memory";
  EXPECT_FALSE(staging_.Take(0, 100, {nullptr, &of_other_}).is_device()) << "on another GPU";
  const Buffer large = staging_.Take(0, DeviceStaging::kSlotBytes + 1, result_);
  EXPECT_FALSE(large.is_device()) << "more than a slot has";
  EXPECT_NE(large.data, nullptr);
}

TEST_F(DeviceStagingTest, ItsMemoryIsGivenBack) {
  RegionId id = 0;
  std::byte* at = nullptr;
  {
    DeviceStaging staging(&gpu_, &table_, kSlots);
    ASSERT_TRUE(staging.Reserve(of_gpu_, &error_)) << error_;
    const Buffer taken = staging.Take(0, 1, result_);
    id = taken.memory->id;
    at = taken.data;
    EXPECT_TRUE(gpu_.Of(at).has_value());
  }
  EXPECT_EQ(table_.Find(id), nullptr);
  EXPECT_TRUE(verbs_.unregistered.contains({id, 1}));
  EXPECT_FALSE(gpu_.Of(at).has_value());
}

TEST_F(DeviceStagingTest, WithoutMemoryOrAWayThereALineSaysSo) {
  gpu_.full = true;
  EXPECT_FALSE(staging_.Reserve(of_gpu_, &error_));
  EXPECT_EQ(error_, "R2CC: cannot find memory on GPU 0: out of memory");
  gpu_.full = false;
  verbs_.lost = {1};
  EXPECT_FALSE(staging_.Reserve(of_gpu_, &error_));
  EXPECT_EQ(error_, "cannot; it is copied by way of the host");
  EXPECT_FALSE(staging_.Take(0, 100, result_).is_device());
}

}  // namespace
}  // namespace r2cc::net
