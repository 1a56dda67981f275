#include "netplugin/transport/memory_table.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>
#include <vector>

#include "netplugin/transport/fake_transport.h"

namespace r2cc::net {
namespace {

constexpr size_t kRails = 2;

class MemoryTableTest : public testing::Test {
 protected:
  const Memory* Register(MemoryKind kind) {
    return table_.Register({.kind = kind, .base = bytes_.data(), .bytes = bytes_.size()}, &error_);
  }

  std::array<std::byte, 64> bytes_;
  std::string error_;
  FakeTransport tcp_{TransportKind::kTcp, false}, verbs_{TransportKind::kVerbs, true};
  std::vector<Region> announced_;
  MemoryTable table_{{&tcp_, &verbs_}, kRails, [this](const Region& region) { announced_.push_back(region); }};
};

TEST_F(MemoryTableTest, HostMemoryThatNeedsNoKeyIsNamedByNobody) {
  MemoryTable table({&tcp_}, kRails, [](const Region&) { FAIL() << "nobody has to be told"; });
  const Memory* const memory = table.Register({.base = bytes_.data(), .bytes = bytes_.size()}, &error_);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(BufferIn(memory, bytes_.data()).memory, nullptr);
  EXPECT_EQ(BufferIn(nullptr, bytes_.data()).memory, nullptr);
  EXPECT_EQ(BufferIn(memory, bytes_.data()).data, bytes_.data());
  table.Unregister(memory);
}

TEST_F(MemoryTableTest, EachRailAndTransportHasItsKey) {
  const Memory* const memory = Register(MemoryKind::kHost);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(BufferIn(memory, bytes_.data()).memory, memory);
  const auto region = table_.Find(memory->id);
  ASSERT_NE(region, nullptr);
  EXPECT_EQ(region->generation, 1u);
  EXPECT_EQ(region->base, reinterpret_cast<uintptr_t>(bytes_.data()));
  EXPECT_EQ(region->bytes, bytes_.size());
  const std::vector<RailEndpoint> first = {{TransportKind::kTcp, {}}, {TransportKind::kVerbs, {1}}};
  const std::vector<RailEndpoint> second = {{TransportKind::kTcp, {}}, {TransportKind::kVerbs, {2}}};
  EXPECT_EQ(region->keys, (std::vector<std::vector<RailEndpoint>>{first, second}));
  const Memory* const other = Register(MemoryKind::kHost);
  EXPECT_NE(other->id, memory->id);
  EXPECT_EQ(table_.Find(other->id)->id, other->id);
  EXPECT_TRUE(announced_.empty()) << "peers hear of it with their first grant";
}

TEST_F(MemoryTableTest, MemoryThatNoRailReachesIsRefused) {
  EXPECT_FALSE(table_.Takes(MemoryKind::kCuda));
  EXPECT_TRUE(table_.Takes(MemoryKind::kHost));
  EXPECT_EQ(Register(MemoryKind::kCuda), nullptr);
  EXPECT_EQ(error_, "cannot");
  verbs_.kinds.insert(MemoryKind::kCuda);
  const Memory* const memory = Register(MemoryKind::kCuda);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(table_.Find(memory->id)->keys[0], (std::vector<RailEndpoint>{{TransportKind::kVerbs, {1}}}));
}

TEST_F(MemoryTableTest, MemoryOfAGpuIsOnAllRailsOrOnNone) {
  verbs_.kinds.insert(MemoryKind::kCuda);
  verbs_.lost = {1};
  EXPECT_FALSE(table_.Takes(MemoryKind::kCuda)) << "one rail does not";
  EXPECT_FALSE(table_.promised());
  verbs_.lost.clear();
  EXPECT_TRUE(table_.Takes(MemoryKind::kCuda));
  EXPECT_TRUE(table_.promised());
  verbs_.lost = {1};
  const Memory* memory = Register(MemoryKind::kCuda);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(error_, "cannot; it is copied through host memory");
  EXPECT_EQ(memory->id, 0u);
  EXPECT_TRUE(verbs_.unregistered.contains({1, 0})) << "what one rail took is given back";
  EXPECT_EQ(BufferIn(memory, bytes_.data()).memory, memory) << "who posts it must know what it is";
  table_.Unregister(memory);
  // The job was told that it may: it has a handle also where no rail is left.
  verbs_.lost = {0, 1};
  memory = Register(MemoryKind::kCuda);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(memory->id, 0u);
  table_.Unregister(memory);
}

TEST_F(MemoryTableTest, ALostDeviceTakesItsKeysAndComesBackWithOthers) {
  const Memory* const memory = Register(MemoryKind::kHost);
  verbs_.lost = {1};
  table_.DeviceBack(TransportKind::kVerbs, 1);
  ASSERT_EQ(announced_.size(), 1u);
  EXPECT_EQ(announced_[0].generation, 2u);
  EXPECT_EQ(announced_[0].keys[0].size(), 2u);
  EXPECT_EQ(announced_[0].keys[1], (std::vector<RailEndpoint>{{TransportKind::kTcp, {}}}));
  // What is registered meanwhile has no key there, and gets one.
  const Memory* const later = Register(MemoryKind::kHost);
  EXPECT_EQ(table_.Find(later->id)->keys[1].size(), 1u);
  table_.DeviceBack(TransportKind::kVerbs, 1);
  ASSERT_EQ(announced_.size(), 1u) << "it is not back yet";
  verbs_.lost.clear();
  table_.DeviceBack(TransportKind::kVerbs, 1);
  ASSERT_EQ(announced_.size(), 3u);
  EXPECT_EQ(announced_[1].id, memory->id);
  EXPECT_EQ(announced_[1].generation, 3u);
  EXPECT_NE(announced_[1].keys[1], (std::vector<RailEndpoint>{{TransportKind::kTcp, {}}, {TransportKind::kVerbs, {2}}}));
  EXPECT_EQ(announced_[1].keys[1].size(), 2u);
  EXPECT_EQ(announced_[2].id, later->id);
  EXPECT_EQ(announced_[2].generation, 2u);
  EXPECT_EQ(*table_.Find(memory->id), announced_[1]);
}

TEST_F(MemoryTableTest, UnregisteredMemoryHasNoKeyAndItsHandleIsStillReadable) {
  const Memory* const memory = Register(MemoryKind::kHost);
  table_.DeviceBack(TransportKind::kVerbs, 0);
  table_.Unregister(memory);
  ASSERT_EQ(announced_.size(), 2u);
  EXPECT_EQ(announced_[1], (Region{.id = memory->id, .generation = Region::kGone}));
  EXPECT_EQ(table_.Find(memory->id), nullptr);
  EXPECT_EQ(verbs_.unregistered, (std::set<std::pair<RegionId, uint16_t>>{{1, 0}, {1, 1}}));
  EXPECT_EQ(memory->bytes, bytes_.size());
  table_.Unregister(memory);
  EXPECT_EQ(announced_.size(), 2u);
}

TEST_F(MemoryTableTest, HandlesThatWereUnregisteredAreBounded) {
  announced_.reserve(MemoryTable::kRetiredMost + 100);
  for (size_t i = 0; i < MemoryTable::kRetiredMost + 100; ++i) table_.Unregister(Register(MemoryKind::kHost));
  EXPECT_EQ(table_.retired(), MemoryTable::kRetiredMost);
  const Memory* const memory = Register(MemoryKind::kHost);
  table_.Unregister(memory);
  EXPECT_EQ(memory->bytes, bytes_.size()) << "the last ones stay";
}

TEST(LiesIn, ABufferLiesInItsRegistrationWithAllItsBytes) {
  std::array<std::byte, 64> bytes;
  const Memory memory{.base = bytes.data(), .bytes = bytes.size()};
  EXPECT_TRUE(LiesIn(nullptr, bytes.data(), 1 << 20));
  EXPECT_TRUE(LiesIn(&memory, bytes.data(), 64));
  EXPECT_TRUE(LiesIn(&memory, bytes.data() + 63, 1));
  EXPECT_TRUE(LiesIn(&memory, nullptr, 0));
  EXPECT_FALSE(LiesIn(&memory, bytes.data(), 65));
  EXPECT_FALSE(LiesIn(&memory, bytes.data() + 1, 64));
  EXPECT_FALSE(LiesIn(&memory, bytes.data() - 1, 1));
  EXPECT_FALSE(LiesIn(&memory, bytes.data() + 1, UINT64_MAX));
  EXPECT_FALSE(LiesIn(&memory, nullptr, 1));
}

// NCCL closes its descriptor when regMrDmaBuf has returned, and a device that comes back needs one.
TEST_F(MemoryTableTest, ADescriptorIsKept) {
  verbs_.kinds.insert(MemoryKind::kDmaBuf);
  const int descriptor = open("/dev/null", O_RDONLY | O_CLOEXEC);
  const Memory* const memory = table_.Register({.kind = MemoryKind::kDmaBuf, .dma_buf = descriptor, .dma_buf_offset = 4096}, &error_);
  ASSERT_NE(memory, nullptr) << error_;
  close(descriptor);
  EXPECT_NE(memory->dma_buf, descriptor);
  EXPECT_EQ(memory->dma_buf_offset, 4096u);
  table_.DeviceBack(TransportKind::kVerbs, 0);
  EXPECT_EQ(announced_.size(), 1u);
  const int kept = memory->dma_buf;
  table_.Unregister(memory);
  EXPECT_LT(fcntl(kept, F_GETFD), 0);
  EXPECT_EQ(table_.Register({.kind = MemoryKind::kDmaBuf, .dma_buf = -1}, &error_), nullptr);
  EXPECT_NE(error_.find("dma-buf"), std::string::npos);
}

}  // namespace
}  // namespace r2cc::net
