#include "netplugin/flow/memory_ops.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "netplugin/flow/recv_ledger.h"
#include "netplugin/flow/send_ledger.h"

namespace r2cc::net {
namespace {

// Memory that nobody here can follow: what a device does is written down.
class FakeDevice final : public MemoryOps {
 public:
  std::vector<std::string> copied;

 private:
  void CopyDevice(const Buffer& to, const Buffer& from, size_t bytes) override {
    copied.push_back(std::string(to.memory == nullptr ? "out " : "in ") + std::to_string(bytes));
    if (to.memory == nullptr) std::memset(to.data, 0x5a, bytes);
    static_cast<void>(from);
  }
};

const Memory kDevice{.id = 1, .kind = MemoryKind::kCuda, .base = nullptr, .bytes = 1 << 20};
// An address that ends whoever follows it.
std::byte* const kNowhere = reinterpret_cast<std::byte*>(0x1000);

TEST(MemoryOps, HostMemoryIsCopiedAtOnceRegisteredOrNot) {
  const char from[] = "abc";
  char to[4] = {};
  const Memory registered{.id = 2, .base = reinterpret_cast<std::byte*>(to), .bytes = sizeof(to)};
  FakeDevice ops;
  ops.Copy({to, &registered}, from, sizeof(to));
  EXPECT_STREQ(to, "abc");
  ops.Copy(nullptr, nullptr, 0);
  EXPECT_TRUE(ops.copied.empty());
}

// No ledger follows an address: all that it does with the bytes of a message goes through MemoryOps.
TEST(MemoryOps, AnEagerMessageOfADeviceIsCopiedByIt) {
  FakeDevice ops;
  BufferPool pool(&ops);
  uint64_t order = 1;
  SendLedger ledger(1, {.chunk_base_bytes = 1024, .eager_bytes = 1024}, &order, &pool);
  ledger.set_eager_window(8);
  const MessageId id = ledger.Post({kNowhere, &kDevice}, 100);
  Chunk chunk;
  ASSERT_TRUE(ledger.Pull(0, &chunk));
  EXPECT_EQ(chunk.data, kNowhere);
  EXPECT_EQ(chunk.memory, &kDevice);
  const std::byte* const copy = ledger.Release(id);
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy[99], std::byte{0x5a});
  EXPECT_EQ(ops.copied, (std::vector<std::string>{"out 100"}));
  // What is replayed is the copy.
  EXPECT_EQ(ledger.Reclaim(0), 100u);
  ASSERT_TRUE(ledger.Pull(1, &chunk));
  EXPECT_EQ(chunk.data, copy);
  EXPECT_EQ(chunk.memory, nullptr);
}

TEST(MemoryOps, AStagedMessageGoesToItsDeviceWhenTheBufferIsThere) {
  FakeDevice ops;
  RecvLedger ledger(1, &ops);
  const Chunk header{1, 0, 100, 128, 0, nullptr, 100, true};
  std::byte* destination = nullptr;
  ASSERT_EQ(ledger.Begin(header, 0, &destination), RecvLedger::Verdict::kPlace);
  EXPECT_FALSE(ledger.Finish(0, 0, 0));
  ledger.Post({kNowhere, &kDevice}, 100);
  EXPECT_EQ(ledger.placed_through(), 1u);
  EXPECT_EQ(ops.copied, (std::vector<std::string>{"in 100"}));
}

TEST(MemoryOps, ALargeMessageIsNotTouched) {
  FakeDevice ops;
  RecvLedger ledger(1, &ops);
  ledger.Post({kNowhere, &kDevice}, 4096);
  std::byte* destination = nullptr;
  ASSERT_EQ(ledger.Begin({1, 0, 4096, 2048, 1, nullptr, 2048}, 0, &destination), RecvLedger::Verdict::kPlace);
  EXPECT_EQ(destination, kNowhere + 2048);
  EXPECT_TRUE(ops.copied.empty());
}

}  // namespace
}  // namespace r2cc::net
