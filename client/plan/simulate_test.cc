#include "client/plan/simulate.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "client/plan/plot.h"

namespace r2cc::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

SimulateCommand EightNodes(std::vector<std::string> losses) {
  SimulateCommand command{
      .nodes = 8, .rails = 8, .lost = {}, .size_bytes = uint64_t{1} << 30, .rail_bits_per_s = 50'000'000'000, .plot_path = ""};
  for (const std::string& loss : losses) EXPECT_TRUE(AddLoss(loss, command).ok()) << loss;
  return command;
}

const v1::ScheduleCandidate& Of(const v1::PlanSimulation& answer, absl::string_view schedule) {
  for (const v1::ScheduleCandidate& candidate : answer.candidates())
    if (candidate.schedule() == schedule) return candidate;
  ADD_FAILURE() << "no " << schedule;
  return answer.candidates(0);
}

// If steps cost nothing the ratios are those of the papers' formulas: 8 nodes, a quarter lost.
TEST(SimulateTest, RatiosAreThePapers) {
  const v1::PlanSimulation answer = Answer(EightNodes({"n0:2"}));
  EXPECT_NEAR(Of(answer, "ring").ratio_to_ring(), 2, 1e-4);
  EXPECT_NEAR(Of(answer, "balance").ratio_to_ring(), 4.0 / 3, 1e-4);
  EXPECT_NEAR(Of(answer, "r2cc-allreduce").ratio_to_ring(), 1.1905, 0.002);
  EXPECT_NEAR(answer.bound_time_s() / answer.ring_time_s(), 1.0323, 1e-4);
  EXPECT_NEAR(answer.ring_time_s(), 2.0 * 7 / 8 * (1 << 30) / 50e9, 1e-9);
  EXPECT_LT(answer.bound_ratio(), 33.0 / 32);
  EXPECT_EQ(answer.candidates(0).schedule(), answer.chosen());
  EXPECT_EQ(answer.candidates(0).ratio_to_bound(), answer.bound_ratio());
  EXPECT_NEAR(answer.simulated_time_s() / answer.candidates(0).time_s(), 1, 0.02);
  ASSERT_EQ(answer.lost_size(), 1);
  EXPECT_EQ(answer.lost(0).node(), "n0");
}

// NCCL's tree next to the plugin's own AllReduce: half of a node is free there.
TEST(SimulateTest, ASeatInNcclsTree) {
  const v1::PlanSimulation half = Answer(EightNodes({"n3:4"}));
  // 2 D/B, and the fill of eight channels of 256 chunks each.
  EXPECT_NEAR(Of(half, "seat").time_s(), 2.0 * (1 << 30) / 50e9 * (1 + 6.0 / 128), 1e-9);
  EXPECT_THAT(Of(half, "seat").note(),
              AllOf(HasSubstr("n3 has a free seat in NCCL's tree; 0.60 of NCCL's own time, from "), HasSubstr("MiB on")));
  EXPECT_NE(half.chosen(), "seat");
  EXPECT_THAT(Of(Answer(EightNodes({})), "seat").note(), HasSubstr("no seat gains"));
  SimulateCommand two = EightNodes({"n0:4"});
  two.nodes = 2;
  two.lost.resize(2);
  EXPECT_EQ(Of(Answer(two), "seat").note(), "the tree of two nodes has no slack: declines");
  SimulateCommand three = EightNodes({"n0:4"});
  three.nodes = 3;
  three.lost.resize(3);
  EXPECT_THAT(Of(Answer(three), "seat").note(), HasSubstr("n0 has a free seat in NCCL's tree; 0.79 of NCCL's own time"));
  SimulateCommand command = EightNodes({"n3:1"});
  command.gpus = 8;
  EXPECT_THAT(Of(Answer(command), "seat").note(), HasSubstr("0.93 of NCCL's own time"));
  command.gpus = 0;
  EXPECT_THAT(std::string(CheckCommand(command).message()), HasSubstr("--gpus 0 is not between 1 and 64"));
}

TEST(SimulateTest, SeveralNodesLoseRails) {
  SimulateCommand command = EightNodes({"n0:2", "n5:1", "n0:1"});
  EXPECT_EQ(command.lost[0], 3u);
  const v1::PlanSimulation answer = Answer(command);
  EXPECT_NEAR(Of(answer, "balance").ratio_to_ring(), 8.0 / 5, 1e-4);
  EXPECT_GT(Of(answer, "recursive").ratio_to_ring(), 1);
  EXPECT_EQ(answer.lost_size(), 2);
}

TEST(SimulateTest, ShowsTheNodesName) {
  const SimulateCommand command = EightNodes({"n3:4"});
  const std::string text = FormatSimulation(command, Answer(command), Style());
  EXPECT_THAT(text,
              AllOf(HasSubstr("lost: n3:4"), HasSubstr("n3 sets the pace with 50.0 %"), HasSubstr("chosen: "), Not(HasSubstr("member"))));
  const SimulateCommand healthy = EightNodes({});
  EXPECT_THAT(FormatSimulation(healthy, Answer(healthy), Style()), AllOf(HasSubstr("nothing is lost"), HasSubstr("chosen: ring")));
}

TEST(SimulateTest, ManyNodesAreAnsweredToo) {
  SimulateCommand command = EightNodes({});
  command.nodes = 1024;
  ASSERT_TRUE(AddLoss("n1000:1", command).ok());
  const v1::PlanSimulation answer = Answer(command);
  EXPECT_GT(answer.simulated_time_s(), 0);
  EXPECT_THAT(PlotSvg(command), HasSubstr("represents all that do the same"));
}

// Every element is closed, and the same question gives the same bytes.
TEST(SimulateTest, PlotsOneWellFormedDrawing) {
  for (const SimulateCommand& command : {EightNodes({"n0:2"}), EightNodes({"n0:2", "n1:5"}), EightNodes({})}) {
    const std::string svg = PlotSvg(command);
    EXPECT_EQ(svg, PlotSvg(command));
    std::vector<std::string> open;
    for (const absl::string_view piece : absl::StrSplit(svg, '<', absl::SkipEmpty())) {
      const size_t end = piece.find('>');
      ASSERT_NE(end, absl::string_view::npos) << piece;
      const absl::string_view tag = piece.substr(0, end);
      if (tag.front() == '/') {
        ASSERT_FALSE(open.empty());
        EXPECT_EQ(open.back(), tag.substr(1));
        open.pop_back();
      } else if (tag.back() != '/') {
        open.emplace_back(tag.substr(0, tag.find(' ')));
      }
    }
    EXPECT_TRUE(open.empty());
    EXPECT_THAT(svg,
                AllOf(HasSubstr(">lower bound<"), HasSubstr(">n7<"), HasSubstr("<rect"), Not(HasSubstr("nan")), Not(HasSubstr("inf"))));
  }
}

TEST(SimulateTest, ChecksRanges) {
  SimulateCommand command = EightNodes({});
  EXPECT_TRUE(CheckCommand(command).ok());
  command.nodes = kSimulatedNodesMax + 1;
  EXPECT_THAT(std::string(CheckCommand(command).message()), HasSubstr("--nodes 4097 is not between 2 and 4096"));
}

}  // namespace
}  // namespace r2cc::client
