// Whole daemons, several seeds: what each fault's verdict is, who must know it, what it costs, and what does not disturb.
//
//   ./bazelw test //tests/cluster:cluster_test --test_arg=--seed=7 --test_output=all     # one seed again
//   ./bazelw test //tests/cluster:cluster_test --test_arg=--seeds=100 --test_timeout=3600
#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/log.h"
#include "bazel/processor_seconds.h"
#include "tests/cluster/scenario.h"

namespace r2cc::cluster {
namespace {

constexpr Nanos kMs = kNanosPerMs;
constexpr Nanos kEventMax = 20 * kMs;  // from a link's event to the last page: a commit and two ways
constexpr Nanos kSilenceMax = 1000 * kMs;
constexpr Nanos kImagedMax = 5000 * kMs;  // streams of its former run count for 2 s
constexpr Nanos kHealMax = 6000 * kMs;    // a connection is given up after 2 s, and tried again every 2 s

uint64_t first_seed = 1;
uint64_t seeds = 1;

class Story {
 public:
  explicit Story(uint64_t seed) : cluster_({.nodes = 32, .rails = 8, .rack_nodes = 8, .seed = seed}) {}

  bool Begin() {
    if (!cluster_.Start(60 * kNanosPerSecond)) return false;
    healthy_ = MeasureHealthy(&cluster_, 2 * kNanosPerSecond);
    return true;
  }

  void NoVerdictWhenNothingIsWrong() {
    EXPECT_EQ(healthy_.views, 0);
    EXPECT_EQ(healthy_.counts.Of(Kind::kStoreWrite).messages, 0U);
    EXPECT_LE(PerNodeSecond(Kind::kProbe), 2 * 200) << "a ping and its answer are two";
    EXPECT_LE(PerNodeSecond(Kind::kPush), 32) << "two a second to each node of a job, at most 16 of them";
  }

  void OneLinkDown() {
    const Outcome outcome = Measure(LinkDown(&cluster_, {AnyNic()}, "link down"), kEventMax);
    EXPECT_EQ(outcome.verdicts, 1);
    EXPECT_LE(outcome.views, 3 + 16) << "its own, and of those that leave a word out";
    // Each view is a put, its answer and an event to each node, and goes to the nodes of the jobs.
    EXPECT_LE(outcome.counts.NewsMessages(), static_cast<uint64_t>(outcome.views * (Nodes() + 2 + 16) + Nodes()));
  }

  void OnePortSilent() {
    const Outcome outcome = Measure(Silence(&cluster_, {AnyNic()}, "silent port"), kSilenceMax);
    EXPECT_EQ(outcome.verdicts, 1);
    // Its own node, those that ask it often, and the few that lend their eyes, a few words each.
    EXPECT_LE(outcome.views, 3 * 16);
  }

  void ARackOfLinksDown() {
    const Outcome outcome = Measure(LinkDown(&cluster_, cluster_.NicsOf(AnyRack()), "rack's links down"), 2 * kEventMax);
    EXPECT_EQ(outcome.verdicts, 8 * 8);
    EXPECT_LE(outcome.views, 3 * Nodes());
  }

  // One rail of a rack, and no kernel sees it.
  void ALeafSwitchThatDies() {
    const int rail = Any(8);
    std::vector<Nic> ports;
    for (const int node : AnyRack()) ports.push_back({node, rail});
    const Outcome outcome = Measure(Silence(&cluster_, ports, "leaf switch"), 2 * kSilenceMax);
    EXPECT_EQ(outcome.verdicts, 8);
    EXPECT_LE(outcome.views, 20 * Nodes());
  }

  // Nobody is left to be compared with, and when the rack is back none of its rails is first to accuse the others.
  void ASilentRack() {
    const Outcome outcome = Measure(Silence(&cluster_, cluster_.NicsOf(AnyRack()), "rack silent", /*known=*/false), 0);
    EXPECT_EQ(outcome.verdicts, 0);
  }

  void ARackWithoutPower() {
    const Outcome outcome = Measure(PowerLoss(&cluster_, AnyRack(), "rack's power lost"), 0);
    EXPECT_EQ(outcome.verdicts, 0) << "an unreachable daemon is not a dead NIC";
  }

  void ADaemonThatStartsAgain() {
    const int number = Any(Nodes());
    const Nic other = {(number + 1) % Nodes(), Any(8)};
    cluster_.node(number).End();
    cluster_.Run(static_cast<Nanos>(Any(3000)) * kMs);
    Expect({other}, false, cluster_.Running(), kEventMax, "a daemon is not there", [&] { cluster_.SetLink(other, false); });
    Expect({other}, false, {number}, kHealMax, "it has started again", [&] { cluster_.node(number).Start(); });
    Expect({other}, true, cluster_.Running(), kHealMax, "the link is back", [&] { cluster_.SetLink(other, true); });
    Rest();
  }

  // Nobody closes its connections, its files are gone, its clock is hours back or years ahead, and it is there again before the others have
  // found its streams to be dead. What it says then is its first word; what it said before must not outlive it.
  void AReimagedMachine() {
    const int number = Any(Nodes());
    const Nic own = {number, Any(8)};
    const Nic later = {number, (own.rail + 1) % 8};
    cluster_.watch().Break(cluster_.NicsOf({number}));
    cluster_.SetPower(number, false);
    cluster_.SetLink(own, false);
    cluster_.Run(static_cast<Nanos>(1 + Any(1500)) * kMs);
    cluster_.node(number).Reimage((Any(2) == 0 ? -20 : 5 * 365 * 24) * 3600 * kNanosPerSecond);
    Expect({own}, false, cluster_.Running(), kImagedMax, "imaged anew", [&] { cluster_.SetPower(number, true); });
    Expect({later}, false, cluster_.Running(), kEventMax, "its later words", [&] { cluster_.SetLink(later, false); });
    Expect({own, later}, true, cluster_.Running(), kHealMax, "the links are back", [&] {
      cluster_.SetLink(own, true);
      cluster_.SetLink(later, true);
    });
    Rest();
  }

  void AStoreThatIsDown() {
    const Nic nic = AnyNic();
    cluster_.watch().AllowPaths(true);
    cluster_.store().SetUp(false);
    cluster_.Run(static_cast<Nanos>(1 + Any(2000)) * kMs);
    std::set<int> direct = {nic.node};
    for (const JobPeers& job : cluster_.node(nic.node).jobs()) direct.insert(job.begin(), job.end());
    Expect({nic}, false, direct, kEventMax, "the store is down", [&] { cluster_.SetLink(nic, false); });
    Expect({nic}, false, cluster_.Running(direct), kHealMax, "the store is back", [&] { cluster_.store().SetUp(true); });
    Expect({nic}, true, cluster_.Running(), kHealMax, "the link is back", [&] { cluster_.SetLink(nic, true); });
    Rest();
  }

  // The rack's rails go on; its management network is cut off.
  void ARackThatIsCutOff() {
    const std::set<int> rack = AnyRack();
    const Nic within = {*rack.begin(), Any(8)};
    const Nic without = {(*rack.begin() + 8) % Nodes(), Any(8)};
    cluster_.watch().AllowPaths(true);
    for (const int node : rack) cluster_.network().SetSide(node, 1);
    cluster_.Run(static_cast<Nanos>(500 + Any(8000)) * kMs);
    Expect({without}, false, cluster_.Running(rack), kEventMax, "outside", [&] { cluster_.SetLink(without, false); });
    Expect({within}, false, {within.node}, kEventMax, "within", [&] { cluster_.SetLink(within, false); });
    Expect({within, without}, false, cluster_.Running(), kHealMax, "together again", [&] {
      for (const int node : rack) cluster_.network().SetSide(node, 0);
    });
    Expect({within, without}, true, cluster_.Running(), kHealMax, "the links are back", [&] {
      cluster_.SetLink(within, true);
      cluster_.SetLink(without, true);
    });
    Rest();
  }

  void NoFalseVerdict() { EXPECT_TRUE(cluster_.watch().wrong().empty()) << absl::StrJoin(cluster_.watch().wrong(), "\n"); }

  int Any(int end) { return static_cast<int>(cluster_.network().Random() % static_cast<uint64_t>(end)); }

 private:
  int Nodes() const { return cluster_.options().nodes; }
  Nic AnyNic() { return {Any(Nodes()), Any(8)}; }
  std::set<int> AnyRack() { return cluster_.Rack(Any(4)); }
  double PerNodeSecond(Kind kind) const { return static_cast<double>(healthy_.counts.Of(kind).messages) / Nodes() / 2; }

  Outcome Measure(const Fault& fault, Nanos most) {
    SCOPED_TRACE(fault.name);
    Outcome outcome = MeasureFault(&cluster_, healthy_, fault);
    EXPECT_EQ(outcome.pages_missing, 0U);
    EXPECT_EQ(outcome.back_missing, 0U);
    EXPECT_LE(outcome.delays.empty() ? 0 : outcome.delays.back(), most);
    return outcome;
  }

  // `act` makes the pages of `nodes` say that `nics` are usable, or not, within `most`.
  void Expect(const std::vector<Nic>& nics, bool usable, const std::set<int>& nodes, Nanos most, const std::string& when,
              const std::function<void()>& act) {
    Watch& watch = cluster_.watch();
    watch.Break(nics);
    watch.Await(nics, usable, nodes, cluster_.Now());
    act();
    EXPECT_TRUE(cluster_.RunUntil([&] { return watch.missing() == 0; }, most)) << when << ": " << watch.missing() << " pages do not know";
  }
  void Rest() {
    EXPECT_TRUE(cluster_.RunUntilQuiet(20 * kNanosPerSecond));
    cluster_.watch().Recovered();
    cluster_.watch().AllowPaths(false);
  }

  Cluster cluster_;
  Healthy healthy_;
};

TEST(Cluster, EachFaultIsKnownToAllWhomItConcernsAndNoneIsInvented) {
  for (uint64_t seed = first_seed; seed < first_seed + seeds; ++seed) {
    SCOPED_TRACE(absl::StrCat("again: ./bazelw test //tests/cluster:cluster_test --test_arg=--seed=", seed, " --test_output=all"));
    Story story(seed);
    ASSERT_TRUE(story.Begin());
    story.NoVerdictWhenNothingIsWrong();
    std::vector<void (Story::*)()> chapters = {
        &Story::OneLinkDown,      &Story::OnePortSilent,     &Story::ALeafSwitchThatDies,    &Story::ARackOfLinksDown,
        &Story::ASilentRack,      &Story::ARackWithoutPower, &Story::ADaemonThatStartsAgain, &Story::AReimagedMachine,
        &Story::AStoreThatIsDown, &Story::ARackThatIsCutOff};
    // In an order of the seed's own.
    for (size_t i = chapters.size(); i > 1; --i) std::swap(chapters[i - 1], chapters[static_cast<size_t>(story.Any(static_cast<int>(i)))]);
    for (const auto chapter : chapters) (story.*chapter)();
    story.NoFalseVerdict();
    if (testing::Test::HasFailure()) return;
  }
}

// Each daemon names it in one line, and no other.
TEST(Cluster, ADeadLeafSwitchOfTwoIsNamedInOneLineWithinFiveSeconds) {
  Cluster cluster({.nodes = 64, .rails = 8, .rack_nodes = 32, .seed = first_seed});
  ASSERT_TRUE(cluster.Start(60 * kNanosPerSecond));
  const auto lines = [&] {
    std::map<std::string, int> seen_by;
    for (const int node : cluster.Running())
      cluster.node(node).AskAlarms([&](const std::vector<std::string>& alarms) {
        for (const std::string& alarm : alarms)
          if (absl::StrContains(alarm, " is bad on ")) ++seen_by[alarm];
      });
    cluster.Run(kMs);
    return seen_by;
  };
  EXPECT_TRUE(lines().empty());
  const std::set<int> rack = cluster.Rack(1);
  for (const int node : rack) cluster.SetSilent({node, 3}, true);
  cluster.Run(5 * kNanosPerSecond - 2 * kMs);
  const std::map<std::string, int> seen_by = lines();
  ASSERT_EQ(seen_by.size(), 1U) << absl::StrJoin(seen_by, "\n", absl::PairFormatter(" by "));
  EXPECT_EQ(seen_by.begin()->second, 64);
  const std::string first = NodeName(*rack.begin()), last = NodeName(*rack.rbegin());
  EXPECT_EQ(seen_by.begin()->first,
            absl::StrCat("rail3 is bad on 32 of 32 nodes of ", first, " to ", last, ": look at its leaf switch there"));
  for (const int node : rack) cluster.SetSilent({node, 3}, false);
  EXPECT_TRUE(cluster.RunUntilQuiet(60 * kNanosPerSecond));
  cluster.Run(2 * kNanosPerSecond);
  EXPECT_TRUE(lines().empty());
}

}  // namespace
}  // namespace r2cc::cluster

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  r2cc::RecordProcessorSeconds();
  r2cc::SetMinSeverity(r2cc::Severity::kError);
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    const size_t equals = argument.find('=');
    const uint64_t number = equals == std::string_view::npos ? 0 : std::strtoull(argv[i] + equals + 1, nullptr, 10);
    if (number > 0 && argument.starts_with("--seed=")) {
      r2cc::cluster::first_seed = number;
      r2cc::cluster::seeds = 1;
    } else if (number > 0 && argument.starts_with("--seeds=")) {
      r2cc::cluster::seeds = number;
    } else if (number > 0 && argument.starts_with("--first=")) {
      r2cc::cluster::first_seed = number;
    } else {
      std::fprintf(stderr, "cluster_test: '%s' is none of --seed=N, --seeds=N, --first=N\n", argv[i]);
      return 2;
    }
  }
  return RUN_ALL_TESTS();
}
