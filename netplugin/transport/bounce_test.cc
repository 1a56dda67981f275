#include "netplugin/transport/bounce.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

#include "netplugin/gpu/fake_gpu.h"

namespace r2cc::net {
namespace {

class FakeDevices final : public Transport {
 public:
  TransportKind kind() const override { return TransportKind::kVerbs; }
  bool Listen(const Rail&, Endpoint*, std::string*) override { return true; }
  std::unique_ptr<Port> NewPort(const SessionKey&, const PeerState*) override { return nullptr; }
  bool Register(const Memory& memory, uint16_t, Endpoint* key, std::string* error) override {
    *error = "no memory";
    if (refuses) return false;
    registered.insert(memory.id);
    *key = {1};
    return true;
  }

  bool refuses = false;
  std::set<RegionId> registered;
};

class BounceTest : public testing::Test {
 protected:
  static std::string TextOf(const Buffer& buffer, size_t bytes) { return {reinterpret_cast<const char*>(buffer.data), bytes}; }

  FakeDevices devices_;
  MemoryTable table_{{&devices_}, 1, [](const Region&) {}};
  BouncePool pool_{&table_};
  std::array<uint64_t, kRequestsMax> sizes_{};
  std::string error_;
};

TEST_F(BounceTest, SentBytesAreCopiedIntoRegisteredMemory) {
  Bounce bounce(&pool_, false);
  std::string text = "hello";
  const Buffer posted = bounce.Post(0, Buffer(text.data()), text.size(), &error_);
  text = "later";
  ASSERT_NE(posted.data, nullptr);
  EXPECT_EQ(TextOf(posted, 5), "hello");
  ASSERT_NE(posted.memory, nullptr);
  EXPECT_TRUE(devices_.registered.contains(posted.memory->id));
  EXPECT_EQ(posted.memory->base, posted.data);
  EXPECT_GE(posted.memory->bytes, 5u);
}

// A forked child lacks what a device reaches: whole pages, and nothing beside it.
TEST_F(BounceTest, UsesWholePages) {
  Bounce bounce(&pool_, false);
  const auto page = static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::vector<std::byte> text(200'000);
  for (const uint64_t bytes : {uint64_t{5}, uint64_t{5000}, uint64_t{200'000}}) {
    const Buffer posted = bounce.Post(bytes % 16, Buffer(text.data()), bytes, &error_);
    ASSERT_NE(posted.data, nullptr) << error_;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(posted.data) % page, 0u) << bytes;
    EXPECT_EQ(posted.memory->bytes % page, 0u) << bytes;
  }
}

TEST_F(BounceTest, ReceivedBytesReachTheJobWhenItIsDoneAndNoMoreThanCame) {
  Bounce bounce(&pool_, true);
  std::string first(8, '-'), second(8, '-');
  const Buffer one = bounce.Post(0, Buffer(first.data()), first.size(), &error_);
  const Buffer two = bounce.Post(1, Buffer(second.data()), second.size(), &error_);
  std::memcpy(one.data, "abcdefgh", 8);
  std::memcpy(two.data, "ABCDEFGH", 8);
  sizes_[0] = 3;
  sizes_[1] = 8;
  EXPECT_EQ(bounce.Finish(1, sizes_, &error_), 1u);
  EXPECT_EQ(first, "abc-----");
  EXPECT_EQ(second, "--------");
  EXPECT_EQ(bounce.Finish(2, sizes_, &error_), 2u);
  EXPECT_EQ(second, "ABCDEFGH");
}

TEST_F(BounceTest, PiecesAreUsedAgainAndNotTwiceAtATime) {
  std::vector<char> buffer(10000);
  {
    Bounce bounce(&pool_, false);
    std::set<std::byte*> at;
    for (uint64_t number = 0; number < 3; ++number) at.insert(bounce.Post(number, Buffer(buffer.data()), buffer.size(), &error_).data);
    EXPECT_EQ(at.size(), 3u);
    bounce.Finish(2, sizes_, &error_);
    for (uint64_t number = 3; number < 5; ++number) at.insert(bounce.Post(number, Buffer(buffer.data()), buffer.size(), &error_).data);
    EXPECT_EQ(at.size(), 3u);
  }
  // What a comm had when it ended is free again, too; a small one is of another size.
  Bounce bounce(&pool_, false);
  for (uint64_t number = 0; number < 3; ++number) bounce.Post(number, Buffer(buffer.data()), buffer.size(), &error_);
  EXPECT_EQ(devices_.registered.size(), 3u);
  bounce.Post(3, Buffer(buffer.data()), 100, &error_);
  EXPECT_EQ(devices_.registered.size(), 4u);
}

TEST_F(BounceTest, WithoutRegisteredMemoryThereIsNoBufferAndALine) {
  devices_.refuses = true;
  Bounce bounce(&pool_, true);
  char byte = 0;
  EXPECT_EQ(bounce.Post(0, Buffer(&byte), 1, &error_).data, nullptr);
  EXPECT_EQ(error_, "no memory");
  bounce.Finish(1, sizes_, &error_);
}

class GpuBounceTest : public BounceTest {
 protected:
  gpu::FakeGpu gpu_;
  BouncePool gpu_pool_{&table_, &gpu_};
  std::byte* const at_ = gpu_.Allocate(0, 64, &error_);
  const Memory memory_ = [this] {
    Memory memory{.kind = MemoryKind::kCuda, .base = at_, .bytes = 64};
    memory.gpu = 0;
    return memory;
  }();
};

TEST_F(GpuBounceTest, MemoryOfAGpuIsCopiedByItself) {
  ASSERT_TRUE(gpu_.Copy(0, at_, "hello", 5, &error_));
  Bounce sends(&gpu_pool_, false), receives(&gpu_pool_, true);
  const Buffer out = sends.Post(0, {at_, &memory_}, 5, &error_);
  EXPECT_EQ(TextOf(out, 5), "hello");
  EXPECT_FALSE(out.is_device());
  const Buffer in = receives.Post(0, {at_ + 8, &memory_}, 8, &error_);
  std::memcpy(in.data, "came", 4);
  sizes_[0] = 4;
  EXPECT_EQ(receives.Finish(1, sizes_, &error_), 1u);
  char seen[5] = {};
  ASSERT_TRUE(gpu_.Copy(0, seen, at_ + 8, 4, &error_));
  EXPECT_STREQ(seen, "came");
}

TEST_F(GpuBounceTest, AGpuThatTakesNoCopyIsALine) {
  Bounce sends(&gpu_pool_, false), receives(&gpu_pool_, true);
  ASSERT_NE(receives.Post(0, {at_, &memory_}, 8, &error_).data, nullptr);
  gpu_.broken = true;
  EXPECT_EQ(sends.Post(0, {at_, &memory_}, 8, &error_).data, nullptr);
  EXPECT_NE(error_.find("it is broken"), std::string::npos);
  error_.clear();
  sizes_[0] = 8;
  EXPECT_EQ(receives.Finish(1, sizes_, &error_), 0u) << "what has not arrived is not done";
  EXPECT_NE(error_.find("it is broken"), std::string::npos);
}

}  // namespace
}  // namespace r2cc::net
