#include "tools/perf/schedule.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <random>
#include <tuple>
#include <vector>

namespace r2cc::perf {
namespace {

// Small enough to walk every count over several loops, with a slice that no chunk divides evenly.
constexpr Geometry kSmall{
    .slice_elements = 8, .slice_elements_min = 2, .slices_per_chunk = 4, .align_elements = 2, .channel_elements_min = 5};

// Runs the programs of all ranks in a random order of events, with the flow control of the real thing: a bounded number of slots on either
// side.
class World {
 public:
  World(Collective collective, int ranks, int channels, int64_t count, uint32_t seed)
      : collective_(collective), ranks_(ranks), channels_(channels), count_(count), random_(seed) {
    const int64_t elements = BufferElements(collective, count, ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      output_.emplace_back(elements, 0);
      stored_.emplace_back(elements, 0);
      for (int channel = 0; channel < channels; ++channel) {
        std::vector<Op> program = BuildProgram(collective, {rank, ranks, channel, channels}, count, kSmall);
        ops_ += program.size();
        for (const Op& op : program) EXPECT_LE(op.elements, kSmall.slice_elements);
        sequencers_.emplace_back(std::move(program), ranks);
      }
    }
  }

  // True if it came to its end.
  bool Run() {
    std::vector<size_t> order(sequencers_.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    for (;;) {
      bool moved = false;
      bool finished = true;
      std::shuffle(order.begin(), order.end(), random_);
      for (const size_t which : order) {
        moved = StepOne(which) || moved;
        finished = finished && sequencers_[which].finished();
      }
      if (finished) return true;
      if (!moved) return false;
    }
  }

  // Every output element holds exactly the contributions that it must, and was stored exactly once.
  int64_t Wrong() const {
    int64_t wrong = 0;
    for (int rank = 0; rank < ranks_; ++rank)
      for (size_t i = 0; i < output_[rank].size(); ++i) wrong += output_[rank][i] == Expected(rank, i) && stored_[rank][i] == 1 ? 0 : 1;
    for (const auto& [key, queue] : wires_) wrong += static_cast<int64_t>(queue.size());
    return wrong;
  }
  size_t ops() const { return ops_; }

 private:
  // One more than a chunk has slices: a rank may have sent its whole first chunk and must still find room to pass on. The real thing
  // has 16.
  static constexpr size_t kRoom = 5;

  // Six bits count how often a rank takes part, the upper ones add up the indices: a sum that is equal was made from the right parts.
  static uint64_t Contribution(int rank, int64_t index) { return (uint64_t{1} << (rank * 6)) + (static_cast<uint64_t>(index) << 40); }

  uint64_t Expected(int rank, size_t at) const {
    const auto index = static_cast<int64_t>(at);
    switch (collective_) {
      case Collective::kAllReduce: {
        uint64_t sum = 0;
        for (int from = 0; from < ranks_; ++from) sum += Contribution(from, index);
        return sum;
      }
      case Collective::kSendRecv: return Contribution((rank + ranks_ - 1) % ranks_, index);
      case Collective::kAllToAll: return Contribution(static_cast<int>(index / count_), rank * count_ + index % count_);
    }
    return 0;
  }

  bool StepOne(size_t which) {
    const int rank = static_cast<int>(which) / channels_;
    const int channel = static_cast<int>(which) % channels_;
    const auto wire = [&](int from, int to) -> std::deque<std::vector<uint64_t>>& { return wires_[{channel, from, to}]; };
    const Op* op = sequencers_[which].Next([&](int peer) { return !wire(peer, rank).empty(); },
                                           [&](int peer) { return wire(rank, peer).size() < kRoom; });
    if (op == nullptr) return false;
    std::vector<uint64_t> value(op->elements, 0);
    if (op->recv_peer >= 0) {
      value = wire(op->recv_peer, rank).front();
      wire(op->recv_peer, rank).pop_front();
      EXPECT_EQ(static_cast<int64_t>(value.size()), op->elements) << "sender and receiver disagree on a size";
      value.resize(op->elements);
    }
    for (int64_t i = 0; i < op->elements; ++i) {
      if (op->input_at >= 0) value[i] += Contribution(rank, op->input_at + i);
      if (op->output_at >= 0) {
        output_[rank].at(op->output_at + i) = value[i];
        ++stored_[rank].at(op->output_at + i);
      }
    }
    if (op->send_peer >= 0) wire(rank, op->send_peer).push_back(std::move(value));
    return true;
  }

  const Collective collective_;
  const int ranks_;
  const int channels_;
  const int64_t count_;
  std::mt19937 random_;
  std::vector<Sequencer> sequencers_;
  std::vector<std::vector<uint64_t>> output_;
  std::vector<std::vector<int>> stored_;
  std::map<std::tuple<int, int, int>, std::deque<std::vector<uint64_t>>> wires_;
  size_t ops_ = 0;
};

class EveryCount : public testing::TestWithParam<std::tuple<Collective, int, int>> {};

TEST_P(EveryCount, EndsWithEveryElementRight) {
  const auto [collective, ranks, channels] = GetParam();
  const int64_t two_loops = 2 * kSmall.slice_elements * kSmall.slices_per_chunk * ranks * channels;
  for (int64_t count = 0; count <= two_loops + 5; count += count < 100 ? 1 : 7) {
    World world(collective, ranks, channels, count, static_cast<uint32_t>(count));
    ASSERT_TRUE(world.Run()) << "stuck with count " << count;
    ASSERT_EQ(world.Wrong(), 0) << "count " << count;
    ASSERT_GT(world.ops(), 0u) << "a message without elements moves zero-byte slices";
  }
}

INSTANTIATE_TEST_SUITE_P(ScheduleTest, EveryCount,
                         testing::Combine(testing::Values(Collective::kAllReduce, Collective::kSendRecv, Collective::kAllToAll),
                                          testing::Values(2, 3, 4, 5), testing::Values(1, 2, 3)),
                         [](const auto& info) {
                           return std::string(CollectiveName(std::get<0>(info.param))) + "_" + std::to_string(std::get<1>(info.param)) +
                                  "ranks_" + std::to_string(std::get<2>(info.param)) + "channels";
                         });

TEST(ScheduleTest, RealSizesKeepToTheSliceAndToTheMessage) {
  for (const int64_t count : {int64_t{1}, int64_t{1000003}, int64_t{16} << 20, (int64_t{16} << 20) + 12345}) {
    int64_t stored = 0;
    for (int channel = 0; channel < 4; ++channel) {
      for (const Op& op : BuildProgram(Collective::kAllReduce, {1, 4, channel, 4}, count)) {
        ASSERT_LE(op.elements, Geometry().slice_elements);
        ASSERT_LE(op.input_at + op.elements, count + Geometry().slice_elements * (op.input_at < 0));
        if (op.output_at >= 0) stored += op.elements;
      }
    }
    EXPECT_EQ(stored, count);
  }
}

TEST(ScheduleTest, NextLoopStartsBeforeThisOneHasArrived) {
  const int64_t two_loops = 2 * 2 * kSmall.slice_elements * kSmall.slices_per_chunk;
  Sequencer sequencer(BuildProgram(Collective::kAllReduce, {0, 2, 0, 1}, two_loops, kSmall), 2);
  int received = 0, sent = 0;
  const int per_chunk = 4;
  // The peer's first chunk arrives, its last one does not: everything but the end of loop 1 is possible.
  while (const Op* op = sequencer.Next([&](int) { return received < per_chunk; }, [](int) { return true; })) {
    received += op->recv_peer >= 0 ? 1 : 0;
    sent += op->send_peer >= 0 ? 1 : 0;
  }
  EXPECT_EQ(received, per_chunk);
  EXPECT_EQ(sent, 3 * per_chunk);  // both sends of loop 1, the first of loop 2
}

TEST(ScheduleTest, NothingIsSentWithoutRoom) {
  Sequencer sequencer(BuildProgram(Collective::kSendRecv, {0, 3, 0, 1}, 100, kSmall), 3);
  EXPECT_EQ(sequencer.Next([](int) { return false; }, [](int) { return false; }), nullptr);
  EXPECT_FALSE(sequencer.finished());
}

TEST(ScheduleTest, PeersFitTheProgram) {
  for (const Collective collective : {Collective::kAllReduce, Collective::kSendRecv, Collective::kAllToAll}) {
    for (int rank = 0; rank < 4; ++rank) {
      const std::vector<int> to = SendPeers(collective, rank, 4), from = RecvPeers(collective, rank, 4);
      for (const Op& op : BuildProgram(collective, {rank, 4, 0, 1}, 1000)) {
        EXPECT_TRUE(op.send_peer < 0 || std::find(to.begin(), to.end(), op.send_peer) != to.end());
        EXPECT_TRUE(op.recv_peer < 0 || std::find(from.begin(), from.end(), op.recv_peer) != from.end());
      }
      for (const int peer : to) {
        const std::vector<int> back = RecvPeers(collective, peer, 4);
        EXPECT_NE(std::find(back.begin(), back.end(), rank), back.end());
      }
    }
  }
}

TEST(ScheduleTest, BusFactorsAreThoseOfNcclTests) {
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllReduce, 4), 1.5);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kSendRecv, 4), 1.0);
  EXPECT_DOUBLE_EQ(BusFactor(Collective::kAllToAll, 4), 0.75);
}

TEST(ScheduleTest, CountRoundsDown) {
  EXPECT_EQ(CountOf(Collective::kAllReduce, 11, 4), 2);
  EXPECT_EQ(CountOf(Collective::kAllToAll, 4 * 4 * 5 + 15, 4), 5);
  EXPECT_EQ(BufferElements(Collective::kAllToAll, 5, 4), 20);
}

}  // namespace
}  // namespace r2cc::perf
