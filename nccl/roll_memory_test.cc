// The thread that answers roll calls while there is no memory for it.
#include <gtest/gtest.h>
#include <netinet/in.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "nccl/roll_call.h"
#include "nccl/roll_server.h"

namespace {

std::atomic<bool> others_fail{false};  // allocations of threads other than the test's
std::atomic<int> failed{0};
thread_local bool is_the_tests = false;

}  // namespace

void* operator new(size_t bytes) {
  if (others_fail && !is_the_tests) {
    ++failed;
    throw std::bad_alloc();
  }
  void* const memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }

namespace r2cc::nccl {
namespace {

TEST(RollMemory, ARankThatFindsNoMemoryAsksAgain) {
  is_the_tests = true;
  RollAddress address;
  sockaddr_in loopback{};
  loopback.sin_family = AF_INET;
  loopback.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::memcpy(&address.address, &loopback, address.bytes = sizeof(loopback));
  address.nonce = 5;
  address.key = 7;
  ASSERT_NE(RollServer::Start(&address.address, address.bytes, address.nonce), nullptr);
  SocketRollCall zero(address, {0, 2, 256, 3}, kNanosPerSecond);
  SocketRollCall one(address, {1, 2, 256, 3}, kNanosPerSecond);
  others_fail = true;
  // More than it has connections for.
  for (int i = 0; i < 300; ++i) ASSERT_TRUE(zero.CheckIn()) << "the thread has ended";
  EXPECT_TRUE(one.CheckIn());
  EXPECT_GT(failed, 0) << "nothing needed memory";
  others_fail = false;
  // Both checked in while nothing could be kept.
  EXPECT_EQ(zero.Await().kind, Verdict::Kind::kMissing);
  EXPECT_EQ(one.Await().kind, Verdict::Kind::kMissing);
  // The next communicator has memory from the start.
  address.key = 8;
  SocketRollCall alone(address, {0, 1, 256, 3}, kNanosPerSecond);
  EXPECT_EQ(alone.Await().kind, Verdict::Kind::kAll);
}

}  // namespace
}  // namespace r2cc::nccl
