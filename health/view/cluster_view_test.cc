#include "health/view/cluster_view.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace r2cc::health {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Merged = ClusterView::Merged;

constexpr Nanos kSecond = kNanosPerSecond;

NodeState Node(const std::string& node, const Epoch& epoch, NicState state) {
  NodeState made;
  made.node = node;
  made.epoch = epoch;
  made.status = state == NicState::kHealthy ? NodeStatus::kHealthy : NodeStatus::kUnhealthy;
  NicStatus nic;
  nic.identity.name = "r0";
  nic.state = state;
  made.nics.push_back(nic);
  return made;
}

TEST(ClusterView, AVerdictOnAPathIsANewRevisionAndOtherReportsOfProbesAreNot) {
  ClusterView view("n0");
  NodeState state = Node("n1", {1, 1}, NicState::kHealthy);
  view.Merge(state, 0);
  uint64_t revision = view.revision();
  const auto merge = [&](PairReports pairs) {
    ++state.epoch.counter;
    state.pairs = std::move(pairs);
    EXPECT_EQ(view.Merge(state, 0), Merged::kNew);
    return std::exchange(revision, view.revision()) != view.revision();
  };
  const NicKey peer = {"n2", "r0"};
  EXPECT_FALSE(merge({{"r0", peer, false}}));
  EXPECT_FALSE(merge({{"r0", peer, true}}));
  EXPECT_TRUE(merge({{"r0", peer, true, true}}));
  EXPECT_FALSE(merge({{"r0", {"n3", "r0"}, true}, {"r0", peer, true, true}}));
  EXPECT_TRUE(merge({{"r0", {"n3", "r0"}, true, true}, {"r0", peer, true}}));
  EXPECT_TRUE(merge({}));
}

TEST(ClusterView, ALaterEpochReplacesAnEarlierOneNeverTheOtherWayRound) {
  ClusterView view("n0");
  EXPECT_EQ(view.Merge(Node("n1", {1, 5}, NicState::kHealthy), 0), Merged::kNew);
  EXPECT_EQ(view.Merge(Node("n1", {1, 6}, NicState::kFailed), 0), Merged::kNew);
  const uint64_t revision = view.revision();
  EXPECT_EQ(view.Merge(Node("n1", {1, 6}, NicState::kFailed), 0), Merged::kSame);
  EXPECT_EQ(view.Merge(Node("n1", {1, 5}, NicState::kHealthy), 0), Merged::kOutdated);
  EXPECT_EQ(view.revision(), revision);
  EXPECT_EQ(view.Find(NicKey{"n1", "r0"})->state, NicState::kFailed);
  // Another run, whose number does not show its age: the caller has decided to believe it.
  for (const uint64_t run : {9, 2}) {
    EXPECT_EQ(view.Merge(Node("n1", {run, 1}, NicState::kHealthy), 0), Merged::kNew);
    EXPECT_EQ(view.Merge(Node("n1", {run, 1}, NicState::kHealthy), 0), Merged::kSame);
    EXPECT_EQ(view.Merge(Node("n1", {run, 0}, NicState::kFailed), 0), Merged::kOutdated);
  }
}

TEST(ClusterView, NobodyKnowsBetterAboutTheOwnNode) {
  ClusterView view("n0");
  view.SetOwn(Node("n0", {1, 1}, NicState::kHealthy), 0);
  EXPECT_EQ(view.Merge(Node("n0", {9, 9}, NicState::kFailed), 0), Merged::kOwn);
  EXPECT_EQ(view.Find(NicKey{"n0", "r0"})->state, NicState::kHealthy);
  const uint64_t revision = view.revision();
  view.SetOwn(Node("n0", {1, 2}, NicState::kHealthy), 0);
  EXPECT_EQ(view.revision(), revision);
  view.SetOwn(Node("n0", {1, 3}, NicState::kFailed), 0);
  EXPECT_EQ(view.revision(), revision + 1);
  EXPECT_EQ(view.Find("n0")->state.epoch.counter, 3u);
}

TEST(ClusterView, ASilentDaemonIsUnreachableAndItsNicsAreAsTheyWere) {
  ClusterView view("n0");
  view.SetOwn(Node("n0", {1, 1}, NicState::kHealthy), 0);
  view.Merge(Node("n1", {1, 1}, NicState::kHealthy), 0);
  EXPECT_THAT(view.Tick(kNodeLease - 1), IsEmpty());
  EXPECT_FALSE(view.NoteAlive("n1", 1 * kSecond));
  EXPECT_THAT(view.Tick(kNodeLease), IsEmpty());
  const uint64_t revision = view.revision();
  EXPECT_THAT(view.Tick(kNodeLease + 1 * kSecond), ElementsAre("n1"));
  EXPECT_THAT(view.Tick(kNodeLease + 1 * kSecond), IsEmpty());
  EXPECT_GT(view.revision(), revision);
  EXPECT_EQ(view.StatusOf(*view.Find("n1")), NodeStatus::kUnreachable);
  EXPECT_EQ(view.Find(NicKey{"n1", "r0"})->state, NicState::kHealthy);
  EXPECT_EQ(view.StatusOf(*view.Find("n0")), NodeStatus::kHealthy);
  // Old news on its way for long is no sign of life; a new connection is.
  EXPECT_EQ(view.Merge(Node("n1", {1, 0}, NicState::kFailed), 7 * kSecond), Merged::kOutdated);
  EXPECT_FALSE(view.Find("n1")->reachable);
  EXPECT_EQ(view.Merge(Node("n1", {1, 1}, NicState::kHealthy), 8 * kSecond), Merged::kSame);
  EXPECT_EQ(view.StatusOf(*view.Find("n1")), NodeStatus::kHealthy);
  EXPECT_FALSE(view.NoteAlive("n9", 8 * kSecond));
  EXPECT_EQ(view.Find("n9"), nullptr);
  EXPECT_EQ(view.Find(NicKey{"n1", "r9"}), nullptr);
}

TEST(ClusterView, ANodeThatIsKnownToRunIsReachable) {
  ClusterView view("n0");
  view.Merge(Node("n1", {1, 1}, NicState::kHealthy), 0);
  view.Merge(Node("n2", {1, 1}, NicState::kHealthy), 0);
  const auto first = [](const std::string& node) { return node == "n1"; };
  EXPECT_THAT(view.Tick(kNodeLease, first), ElementsAre("n2"));
  EXPECT_THAT(view.Tick(2 * kNodeLease - 1), IsEmpty());
  EXPECT_THAT(view.Tick(2 * kNodeLease), ElementsAre("n1"));
  EXPECT_THAT(view.Tick(2 * kNodeLease, first), IsEmpty()) << "a sign of life by the callback is no message";
}

// The work for each change covers only the nodes that changed.
TEST(ClusterView, EachNodeKnowsWhenItChanged) {
  ClusterView view("n0");
  view.SetOwn(Node("n0", {1, 1}, NicState::kHealthy), 0);
  view.Merge(Node("n1", {1, 1}, NicState::kHealthy), 0);
  const auto revision = [&](const char* node) { return view.Find(node)->revision; };
  const auto changes = [&](const char* node) { return view.Find(node)->changes; };
  EXPECT_EQ(revision("n1"), view.revision());
  EXPECT_EQ(changes("n1"), view.changes());
  EXPECT_LT(revision("n0"), revision("n1"));

  const uint64_t places = view.places();
  const uint64_t before = view.revision();
  std::optional<NodeState> old;
  NodeState state = Node("n1", {1, 2}, NicState::kHealthy);
  state.pairs = {{"r0", {"n0", "r0"}, true}};
  EXPECT_EQ(view.Merge(state, 0, &old), Merged::kNew);
  EXPECT_EQ(old, Node("n1", {1, 1}, NicState::kHealthy));
  EXPECT_EQ(revision("n1"), before) << "words about probes are no verdict";
  EXPECT_EQ(changes("n1"), view.changes());
  state.epoch.counter = 3;
  state.nics[0].state = NicState::kFailed;
  view.Merge(state, 0);
  EXPECT_EQ(revision("n1"), before + 1);
  EXPECT_EQ(view.places(), places) << "a verdict is no other place";
  state.epoch.counter = 4;
  state.nics[0].probe_port = 7460;
  view.Merge(state, 0);
  EXPECT_EQ(view.places(), places + 1);
  EXPECT_EQ(view.Merge(Node("n2", {1, 1}, NicState::kHealthy), 0, &old), Merged::kNew);
  EXPECT_EQ(old, std::nullopt);
  EXPECT_EQ(revision("n1"), before + 2);
  EXPECT_EQ(revision("n2"), view.revision());
}

// Goal: for any order and ways by which states arrive, the view ends with each node's last one. Method: shuffled, repeated.
TEST(ClusterView, OrderOfArrivalDoesNotMatter) {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    std::vector<NodeState> states;
    for (uint64_t counter = 1; counter <= 15; ++counter)
      for (const std::string node : {"n1", "n2"}) {
        states.push_back(Node(node, {1, counter}, static_cast<NicState>(random() % kNicStates)));
        states.push_back(states.back());
      }
    const NodeState last1 = states[states.size() - 4];
    const NodeState last2 = states.back();
    std::shuffle(states.begin(), states.end(), random);
    ClusterView view("n0");
    Nanos now = 0;
    for (const NodeState& state : states) {
      view.Merge(state, ++now);
      const NodeState& kept = view.Find(state.node)->state;
      ASSERT_FALSE(state.epoch.LaterThan(kept.epoch));
    }
    ASSERT_EQ(view.Find("n1")->state, last1) << "seed " << seed;
    ASSERT_EQ(view.Find("n2")->state, last2) << "seed " << seed;
  }
}

TEST(ClusterViewTest, ForgetsWhoHasLeft) {
  ClusterView view("n0");
  NodeState own;
  own.node = "n0";
  view.SetOwn(own, 0);
  for (const auto& [name, last_received] : {std::pair("n1", 2 * kNanosPerSecond), {"n2", kNanosPerSecond}, {"n3", 20 * kNanosPerSecond}}) {
    NodeState state;
    state.node = name;
    state.epoch = {1, 1};
    view.Merge(state, last_received);
  }
  EXPECT_TRUE(view.SilentSince(INT64_MAX).empty()) << "all sent something a moment ago";
  view.Tick(21 * kNanosPerSecond);
  EXPECT_EQ(view.SilentSince(INT64_MAX), (std::vector<std::string>{"n2", "n1"}));
  EXPECT_EQ(view.SilentSince(2 * kNanosPerSecond), std::vector<std::string>{"n2"});
  const uint64_t revision = view.revision(), places = view.places(), changes = view.changes();
  view.Forget("n2");
  EXPECT_EQ(view.Find("n2"), nullptr);
  EXPECT_TRUE(view.revision() > revision && view.places() > places && view.changes() > changes);
  EXPECT_EQ(view.forgotten(), 1u);
  view.Forget("n9");
  EXPECT_EQ(view.forgotten(), 1u) << "there was none";
  NodeState back;
  back.node = "n2";
  back.epoch = {7, 1};
  EXPECT_EQ(view.Merge(back, 22 * kNanosPerSecond), ClusterView::Merged::kNew);
  EXPECT_TRUE(view.Find("n2")->reachable);
}

}  // namespace
}  // namespace r2cc::health
