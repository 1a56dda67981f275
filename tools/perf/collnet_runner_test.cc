#include "tools/perf/collnet_runner.h"

#include <gtest/gtest.h>

#include <deque>
#include <vector>

namespace r2cc::perf {
namespace {

using abi::Result;

constexpr int kRanks = 3;
constexpr int64_t kSlotElements = CollNetRunner::kSlotBytes / sizeof(float);

// All members have the same vector, so a sum is kRanks times what this one has. An operation is done when it was asked for some times.
struct FakeCollNet final : CollNet {
  struct Operation {
    const float* from = nullptr;
    float* to = nullptr;
    size_t count = 0;
    int asked = 0;
  };
  Result Init(uint64_t, abi::Logger) override { return Result::kSuccess; }
  Result Listen(int, void*, void** listen_comm) override { return *listen_comm = this, Result::kSuccess; }
  Result Connect(std::vector<void*>* handles, int, void*, void** coll_comm) override {
    connected = handles->size();
    return *coll_comm = this, Result::kSuccess;
  }
  Result ReduceSupport(abi::DataType asked, bool* supported) override {
    type = asked;
    return *supported = supports, Result::kSuccess;
  }
  Result RegisterMemory(void*, void*, size_t, void** mhandle) override { return *mhandle = this, Result::kSuccess; }
  Result DeregisterMemory(void*, void*) override { return Result::kSuccess; }
  Result AllReduce(void*, void* from, void* to, size_t count, abi::DataType of, void*, void*, void** request) override {
    types_differ |= of != type;
    *request = nullptr;
    if (open >= room) return Result::kSuccess;
    most_open = std::max(most_open, ++open);
    operations.push_back({static_cast<const float*>(from), static_cast<float*>(to), count, 0});
    *request = &operations.back();
    return Result::kSuccess;
  }
  Result Test(void* request, bool* done) override {
    auto* const operation = static_cast<Operation*>(request);
    *done = false;
    if (operations.size() > fails_at) return Result::kRemoteError;
    if (silent || ++operation->asked < 3) return Result::kSuccess;
    for (size_t i = 0; i < operation->count; ++i) operation->to[i] = kRanks * operation->from[i];
    --open;
    *done = true;
    return Result::kSuccess;
  }
  Result CloseColl(void*) override { return Result::kSuccess; }
  Result CloseListen(void*) override { return Result::kSuccess; }
  Result Finalize() override { return finalized = true, Result::kSuccess; }

  abi::DataType type = abi::DataType::kInt8;
  bool types_differ = false;
  bool supports = true, silent = false, finalized = false;
  size_t room = 100, fails_at = SIZE_MAX, connected = 0;
  size_t open = 0, most_open = 0;
  std::deque<Operation> operations;
};

class CollNetRunnerTest : public testing::Test {
 protected:
  Status Begin(int64_t timeout_ns = 0, abi::DataType type = abi::DataType::kFloat32) {
    Idle idle;
    idle.timeout_ns = timeout_ns;
    Options options;
    options.type = type;
    runner_ = std::make_unique<CollNetRunner>(&net_, &trace_, options, idle, 0);
    std::string handles;
    if (Status status = runner_->Listen(&handles); !status.ok()) return status;
    return runner_->Connect(std::vector<std::string>(kRanks, handles), 0);
  }
  Status Run(int64_t elements, int times = 1) {
    input_.resize(static_cast<size_t>(elements));
    for (size_t i = 0; i < input_.size(); ++i) input_[i] = static_cast<float>(i % 1000);
    output_.assign(input_.size(), -1);
    Work work;
    work.input = input_.data();
    work.output = output_.data();
    work.elements = elements;
    work.times = times;
    return runner_->Run(work);
  }
  void ExpectSums() const {
    size_t wrong = 0;
    for (size_t i = 0; i < input_.size(); ++i) wrong += output_[i] != kRanks * input_[i];
    EXPECT_EQ(wrong, 0u);
  }

  FakeCollNet net_;
  Trace trace_;
  std::unique_ptr<CollNetRunner> runner_;
  std::vector<float> input_, output_;
};

TEST_F(CollNetRunnerTest, EveryElementGoesThroughTheSlots) {
  ASSERT_TRUE(Begin().ok());
  EXPECT_EQ(net_.connected, size_t{kRanks});
  for (const int64_t elements : {int64_t{1}, kSlotElements, kSlotElements + 1, 11 * kSlotElements + 5}) {
    net_.operations.clear();
    const Status status = Run(elements);
    ASSERT_TRUE(status.ok()) << status.message();
    ExpectSums();
    EXPECT_EQ(net_.operations.size(), static_cast<size_t>((elements + kSlotElements - 1) / kSlotElements));
  }
  EXPECT_EQ(net_.most_open, size_t{CollNetRunner::kSlots});
  runner_->CheckAllSlots();
  EXPECT_EQ(runner_->late_writes(), 0);
  EXPECT_TRUE(runner_->Close().ok());
  EXPECT_TRUE(net_.finalized);
}

TEST_F(CollNetRunnerTest, ElementsAreOfTheType) {
  ASSERT_TRUE(Begin(0, abi::DataType::kBfloat16).ok());
  EXPECT_EQ(net_.type, abi::DataType::kBfloat16);
  ASSERT_TRUE(Run(100).ok());
  EXPECT_EQ(net_.operations.back().count, 200u);
  EXPECT_FALSE(net_.types_differ);
}

TEST_F(CollNetRunnerTest, AVectorOfNothingIsOneOperation) {
  ASSERT_TRUE(Begin().ok());
  ASSERT_TRUE(Run(0, 2).ok());
  EXPECT_EQ(net_.operations.size(), 2u);
}

TEST_F(CollNetRunnerTest, AFullPluginIsAskedAgain) {
  net_.room = 2;
  ASSERT_TRUE(Begin().ok());
  ASSERT_TRUE(Run(5 * kSlotElements).ok());
  ExpectSums();
  EXPECT_EQ(net_.most_open, 2u);
}

TEST_F(CollNetRunnerTest, AWriteAfterTheEndIsSeen) {
  ASSERT_TRUE(Begin().ok());
  ASSERT_TRUE(Run(100).ok());
  net_.operations.back().to[99] = 7;
  runner_->CheckAllSlots();
  EXPECT_EQ(runner_->late_writes(), 1);
}

TEST_F(CollNetRunnerTest, AnErrorNamesTheCallAndTheOperation) {
  net_.fails_at = 2;
  ASSERT_TRUE(Begin().ok());
  const Status status = Run(5 * kSlotElements);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("test returned"), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("CollNet, operation 0"), std::string::npos) << status.message();
}

TEST_F(CollNetRunnerTest, SilenceEndsAtTheTimeout) {
  net_.silent = true;
  ASSERT_TRUE(Begin(10'000'000).ok());
  const Status status = Run(100);
  EXPECT_FALSE(status.ok());
  EXPECT_NE(status.message().find("(--timeout); CollNet has 1 operations outstanding"), std::string::npos) << status.message();
}

TEST_F(CollNetRunnerTest, ATableWithoutFloatsIsRefused) {
  net_.supports = false;
  EXPECT_EQ(std::string(Begin().message()), "the plugin's CollNet table adds up no float");
}

}  // namespace
}  // namespace r2cc::perf
