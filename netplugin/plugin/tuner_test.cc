// Contexts and memory: that nothing is left over, and what happens if there is none. The tables are tested through the library that is
// shipped (tests/plugin/tuner_test.cc).
#include "netplugin/plugin/tuner.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <new>
#include <string>
#include <vector>

namespace {

std::atomic<int> living{0};  // allocations that were not freed
thread_local int left = -1;  // allocations before one that fails; negative: none fails

}  // namespace

void* operator new(size_t bytes) {
  void* const memory = left == 0 ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (left >= 0) --left;
  if (memory == nullptr) throw std::bad_alloc();
  ++living;
  return memory;
}
void operator delete(void* memory) noexcept {
  if (memory != nullptr) --living;
  std::free(memory);
}
void operator delete(void* memory, size_t) noexcept { operator delete(memory); }

namespace r2cc::net {
namespace {

using abi::Result;

// The environment is read once, with the first communicator: before any test.
const int kSet = setenv("R2CC_COLLNET_MIN_BYTES", "1048576", 1);

int warnings = 0;
void Count(abi::DebugLogLevel level, unsigned long, const char*, int, const char*, ...) { warnings += level == abi::DebugLogLevel::kWarn; }

// First in this process, so that reading the environment takes memory, too.
TEST(Tuner, WithoutMemoryThereIsNoCommunicator) {
  int number = 0;
  for (;; ++number) {
    void* context = &number;
    left = number;
    const Result result = OpenTuner(16, 2, Count, &context);
    const bool failed = left < 0;
    left = -1;
    EXPECT_EQ(result == Result::kSystemError, failed) << number;
    EXPECT_EQ(context == nullptr, failed) << number;
    if (!failed) {
      EXPECT_EQ(CloseTuner(context), Result::kSuccess);
      break;
    }
  }
  EXPECT_GT(number, 0);
  EXPECT_EQ(warnings, number);
}

TEST(Tuner, OpenAndCloseBalance) {
  void* first = nullptr;  // what is read with it stays for the process
  ASSERT_EQ(OpenTuner(16, 2, nullptr, &first), Result::kSuccess);
  ASSERT_EQ(CloseTuner(first), Result::kSuccess);
  const int before = living;
  for (int round = 0; round < 100; ++round) {
    std::vector<void*> contexts(16);
    for (void*& context : contexts) {
      EXPECT_EQ(OpenTuner(16, 2, nullptr, &context), Result::kSuccess);
      EXPECT_NE(context, nullptr);
    }
    float cost[7][3] = {};
    for (void* context : contexts) {
      EXPECT_EQ(TuneCosts(context, abi::Function::kAllReduce, 1 << 20, reinterpret_cast<float**>(cost), 7, 3), Result::kSuccess);
      EXPECT_EQ(CloseTuner(context), Result::kSuccess);
    }
  }
  EXPECT_EQ(living, before);
  // What was never opened can be closed.
  EXPECT_EQ(CloseTuner(nullptr), Result::kSuccess);
}

TEST(Tuner, TheAnswerNeedsNoMemory) {
  ASSERT_EQ(kSet, 0);
  void* context = nullptr;
  ASSERT_EQ(OpenTuner(16, 2, nullptr, &context), Result::kSuccess);
  float cost[7][3];
  for (auto& row : cost)
    for (float& entry : row) entry = 5;
  int algorithm = -1;
  int protocol = -1;
  left = 0;
  const Result by_cost = TuneCosts(context, abi::Function::kAllReduce, 1 << 20, reinterpret_cast<float**>(cost), 7, 3);
  const Result by_choice = TuneChoice(context, abi::Function::kAllReduce, 1 << 20, 1, &algorithm, &protocol);
  left = -1;
  EXPECT_EQ(by_cost, Result::kSuccess);
  EXPECT_EQ(cost[2][2], 0);
  EXPECT_EQ(by_choice, Result::kSuccess);
  EXPECT_EQ(algorithm, 3);
  EXPECT_EQ(protocol, 2);
  EXPECT_EQ(CloseTuner(context), Result::kSuccess);
}

}  // namespace
}  // namespace r2cc::net
