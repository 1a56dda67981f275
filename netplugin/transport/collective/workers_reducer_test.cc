#include "netplugin/transport/collective/workers_reducer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "netplugin/transport/os/processors.h"

namespace r2cc::net {
namespace {

using abi::DataType;
using abi::RedOp;

constexpr size_t kCount = 100'000;  // some of the workers' pieces

class WorkersReducerTest : public testing::TestWithParam<int> {
 protected:
  WorkersReducerTest() {
    std::string error;
    workers_ = ReduceWorkers::Start(GetParam(), Processors::OfMainThread(), &error);
    EXPECT_NE(workers_, nullptr) << error;
    reducer_ = std::make_unique<WorkersReducer>(workers_.get());
  }
  std::vector<float>& Source(float value) { return *sources_.emplace_back(std::make_unique<std::vector<float>>(kCount, value)); }
  static Buffer BufferOf(std::vector<float>* floats) { return Buffer(floats->data()); }

  std::vector<std::unique_ptr<std::vector<float>>> sources_;
  std::unique_ptr<ReduceWorkers> workers_;
  std::unique_ptr<WorkersReducer> reducer_;
};

// 1 is lost beside 2^24, so that the order of sources shows.
TEST_P(WorkersReducerTest, AddsUpInTheOrderOfTheSources) {
  std::vector<float>&big = Source(0x1p24f), &minus = Source(-0x1p24f), &one = Source(1), &out = Source(7);
  reducer_->Begin(DataType::kFloat32, RedOp::kSum, {BufferOf(&big), BufferOf(&one), BufferOf(&minus)}, BufferOf(&out), kCount)->Wait();
  EXPECT_EQ(out, std::vector<float>(kCount, 0));
  reducer_->Begin(DataType::kFloat32, RedOp::kSum, {BufferOf(&big), BufferOf(&minus), BufferOf(&one)}, BufferOf(&out), kCount)->Wait();
  EXPECT_EQ(out, std::vector<float>(kCount, 1));
}

TEST_P(WorkersReducerTest, OperationAndTypeAreHandedOn) {
  std::vector<float>&three = Source(3), &four = Source(4);
  reducer_->Begin(DataType::kFloat32, RedOp::kProd, {BufferOf(&three), BufferOf(&four)}, BufferOf(&three), kCount)->Wait();
  EXPECT_EQ(three, std::vector<float>(kCount, 12)) << "where the result is one of the sources";
  // 1 is 0x3f800000, and twice that is 2^127.
  std::vector<float>&one = Source(1), &another = Source(1);
  reducer_->Begin(DataType::kUint32, RedOp::kSum, {BufferOf(&one), BufferOf(&another)}, BufferOf(&one), kCount)->Wait();
  EXPECT_EQ(one, std::vector<float>(kCount, 0x1p127f));
}

TEST_P(WorkersReducerTest, SeveralAreUnderWayAtATimeAndEachReportsItsEnd) {
  std::vector<std::vector<float>*> outs;
  std::vector<std::unique_ptr<collnet::Reducer::Reduction>> begun;
  for (int i = 0; i < 8; ++i) {
    std::vector<float>& source = Source(static_cast<float>(i));
    outs.push_back(&Source(-1));
    begun.push_back(
        reducer_->Begin(DataType::kFloat32, RedOp::kSum, {BufferOf(&source), BufferOf(&source)}, BufferOf(outs.back()), kCount));
  }
  for (size_t i = begun.size(); i-- > 0;) {
    begun[i]->Wait();
    EXPECT_TRUE(begun[i]->done());
    EXPECT_EQ(*outs[i], std::vector<float>(kCount, static_cast<float>(2 * i)));
  }
}

TEST_P(WorkersReducerTest, NothingIsDoneAtOnce) {
  std::vector<float>&source = Source(1), &out = Source(5);
  EXPECT_TRUE(reducer_->Begin(DataType::kFloat32, RedOp::kSum, {BufferOf(&source)}, BufferOf(&out), 0)->done());
  EXPECT_EQ(out.front(), 5);
}

INSTANTIATE_TEST_SUITE_P(Threads, WorkersReducerTest, testing::Values(0, 2));

}  // namespace
}  // namespace r2cc::net
