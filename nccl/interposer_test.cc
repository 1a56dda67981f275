// For which communicators a rank checks in, and what it logs if it has not. Other cases are tested in tests/seat.
#include "nccl/interposer.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace r2cc::nccl {
namespace {

struct Made {
  int ranks = 0, rank = 0;
};

Comm Of(Made* made) { return reinterpret_cast<Comm>(made); }

// Every call succeeds at once.
class PlainNccl final : public Nccl {
 public:
  Result AllReduce(const AllReduceCall&, Comm) override { return Result::kSuccess; }
  Result GroupStart() override { return Result::kSuccess; }
  Result GroupEnd() override { return Result::kSuccess; }
  Result Count(Comm comm, int* ranks) override {
    *ranks = reinterpret_cast<Made*>(comm)->ranks;
    return Result::kSuccess;
  }
  Result Rank(Comm comm, int* rank) override {
    *rank = reinterpret_cast<Made*>(comm)->rank;
    return Result::kSuccess;
  }
  Result Split(Comm, int, Comm*) override { return Result::kInvalidUsage; }
  Result SplitOff(Comm, int, int, Comm* child, void*) override {
    *child = next_split;
    return split_result;
  }
  Result Settle(Comm) override { return Result::kSuccess; }
  Result Register(Comm, void*, size_t, void**) override { return Result::kSuccess; }
  Result Deregister(Comm, void*) override { return Result::kSuccess; }
  Result Finalize(Comm) override { return Result::kSuccess; }
  Result Destroy(Comm) override { return Result::kSuccess; }
  Result Abort(Comm, Comm) override { return Result::kSuccess; }
  Result Revoke(Comm, int) override { return Result::kSuccess; }
  Result AsyncError(Comm, Result* error) override {
    *error = Result::kSuccess;
    return Result::kSuccess;
  }

  Comm next_split = nullptr;
  Result split_result = Result::kSuccess;
};

class NoCuda final : public Cuda {
 public:
  bool IsCaptured(Stream) override { return false; }
  bool MakeEvent(Event*) override { return false; }
  bool Record(Event, Stream) override { return false; }
  bool Wait(Stream, Event) override { return false; }
  bool Finish(Event, const std::function<void()>&) override { return false; }
  bool Finish(Stream) override { return false; }
  uint32_t* AllocateWords(size_t) override { return nullptr; }
  void Free(Event) override {}
  void FreeWords(uint32_t*) override {}
  uint64_t FreeBytes() override { return 0; }
};

// A communicator that all ranks but the second have joined.
class OneIsMissing final : public RollCall {
 public:
  void Ask() override {}
  Verdict Await() override { return {Verdict::Kind::kMissing, 1, 0}; }
  void End() override {}
};

class CountedRollCalls final : public RollCalls {
 public:
  void Note(UniqueId*) override {}
  std::shared_ptr<RollCall> CheckIn(const UniqueId&, int ranks, int) override { return Join(ranks); }
  std::shared_ptr<RollCall> CheckInSplit(const RollCall&, uint32_t, int, int ranks, int) override { return Join(ranks); }

  std::vector<int> ranks;  // of each communicator that was joined
  bool answers = true;

 private:
  std::shared_ptr<RollCall> Join(int count) {
    ranks.push_back(count);
    return answers ? std::make_shared<OneIsMissing>() : nullptr;
  }
};

class InterposerTest : public testing::Test {
 protected:
  void Begin(Made* made) {
    EXPECT_EQ(interposer_.Init({}, made->ranks, made->rank, Keep(made), [] { return Result::kSuccess; }), Result::kSuccess);
  }
  void SplitInto(Made* parent, Made* child) {
    nccl_.next_split = Of(child);
    Comm made = nullptr;
    EXPECT_EQ(interposer_.Split(Of(parent), 0, 0, &made, nullptr), nccl_.split_result);
  }
  // The log of the first agreement.
  std::vector<std::string> Logged(Made* made) {
    logged_.clear();
    for (uint32_t call = 0; call < 2 * kEvery; ++call)
      EXPECT_EQ(interposer_.AllReduce({.count = 1, .type = DataType::kFloat32}, Of(made)), Result::kSuccess);
    std::vector<std::string> lines;
    for (const std::string& line : logged_)
      lines.push_back(line.substr(line.find(": AllReduce") == std::string::npos ? 0 : line.rfind(": ") + 2));
    return lines;
  }
  const Comm* Keep(Made* made) {
    kept_.push_back(Of(made));
    return &kept_.back();
  }

  static constexpr uint32_t kEvery = 4;
  PlainNccl nccl_;
  NoCuda cuda_;
  CountedRollCalls rolls_;
  std::vector<std::string> logged_;
  std::vector<Comm> kept_;
  Interposer interposer_{{&nccl_, &cuda_, nullptr, &rolls_, [this](const std::string& line) { logged_.push_back(line); }, nullptr, kEvery}};
};

const std::string kMissing = "rank 1 has no libr2cc-nccl.so with R2CC_SEAT=1";
const std::string kNoMaker = "the process that made its ID has no libr2cc-nccl.so with R2CC_SEAT=1, or cannot be reached";
const std::string kNotFollowed = "it was begun neither by ncclCommInitRank nor by a blocking ncclCommSplit outside of a group";

using Lines = std::vector<std::string>;

TEST_F(InterposerTest, ARankChecksInWhereASeatIsPossible) {
  Made two{2, 0}, three{3, 0}, half{2, 0}, all{3, 0};
  Begin(&two);
  EXPECT_EQ(rolls_.ranks, std::vector<int>());
  Begin(&three);
  SplitInto(&three, &half);
  SplitInto(&three, &all);
  EXPECT_EQ(rolls_.ranks, (std::vector<int>{3, 3}));
  EXPECT_EQ(Logged(&two), Lines());
  EXPECT_EQ(Logged(&half), Lines());
  EXPECT_EQ(Logged(&three), Lines{kMissing});
  EXPECT_EQ(Logged(&all), Lines{kMissing});
}

TEST_F(InterposerTest, WithoutTheMakerOfTheIdTheFirstTwoRanksLogIt) {
  rolls_.answers = false;
  Made ranks[] = {{4, 0}, {4, 1}, {4, 2}};
  Made child{4, 0};
  for (Made& rank : ranks) Begin(&rank);
  // Its roll call would need the same process.
  SplitInto(&ranks[0], &child);
  EXPECT_EQ(rolls_.ranks.size(), 3U);
  EXPECT_EQ(Logged(&ranks[0]), Lines{kNoMaker});
  EXPECT_EQ(Logged(&ranks[1]), Lines{kNoMaker});
  EXPECT_EQ(Logged(&ranks[2]), Lines());
  EXPECT_EQ(Logged(&child), Lines{kNoMaker});
}

TEST_F(InterposerTest, ACommunicatorThatNobodySawBeginIsNamedSo) {
  // By ncclCommInitAll.
  Made zero{4, 0}, one{4, 1};
  EXPECT_EQ(Logged(&zero), Lines{kNotFollowed});
  EXPECT_EQ(Logged(&one), Lines());
  // A call of such a communicator.
  Made child{4, 0};
  SplitInto(&zero, &child);
  EXPECT_EQ(Logged(&child), Lines{kNotFollowed});
}

TEST_F(InterposerTest, ASplitInAGroupOrInProgressIsNotFollowed) {
  Made parent{4, 0}, grouped{4, 0}, slow{4, 0};
  Begin(&parent);
  interposer_.GroupStart();
  SplitInto(&parent, &grouped);
  interposer_.GroupEnd();
  EXPECT_EQ(Logged(&grouped), Lines{kNotFollowed});
  nccl_.split_result = Result::kInProgress;
  SplitInto(&parent, &slow);
  EXPECT_EQ(Logged(&slow), Lines{kNotFollowed});
  EXPECT_EQ(rolls_.ranks, std::vector<int>{4});
}

}  // namespace
}  // namespace r2cc::nccl
