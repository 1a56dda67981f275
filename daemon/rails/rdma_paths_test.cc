// Two nodes with a NIC each, on the fake fabric, in virtual time; the test carries their views to each other.
#include "daemon/rails/rdma_paths.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/core/verbs/fake_fabric.h"
#include "base/core/verbs/fake_verbs.h"
#include "base/core/verbs/faulty_verbs.h"
#include "base/fake_executor.h"

namespace r2cc::daemon {
namespace {

using testing::IsEmpty;
using testing::SizeIs;

constexpr Nanos kMs = kNanosPerMs;
constexpr Nanos kInterval = 200 * kMs;  // of pings

// A device whose engine is dead: nothing that is posted completes.
class SilentVerbs : public verbs::FaultyVerbs {
 public:
  using FaultyVerbs::FaultyVerbs;
  int Poll(verbs::CompletionQueueId queue, std::span<verbs::Completion> completions, size_t* taken) override {
    *taken = 0;
    return silent ? 0 : FaultyVerbs::Poll(queue, completions, taken);
  }
  bool silent = false;
};

class RdmaPathsTest : public testing::Test {
 protected:
  struct Node {
    Node(RdmaPathsTest* test, int host) : name(host == 0 ? "a" : "b"), fake(&test->fabric_, host), view(name) { Begin(1); }
    // A run of its daemon.
    void Begin(uint64_t run) {
      paths.reset();
      incarnation = run;
      paths = std::make_unique<RdmaPaths>(name, &pairs, &view, run,
                                          RdmaPaths::Outputs{[this](const std::string&, const std::string& why) {
                                                               fault = why;
                                                               ++faults;
                                                             },
                                                             [this] { ++reports; }});
    }

    const std::string name;
    FakeExecutor core, blocking;
    verbs::FakeVerbs fake;
    SilentVerbs verbs{&fake};
    health::RdmaPairs pairs{&verbs, &core, &blocking};
    health::ClusterView view;
    uint64_t incarnation = 1;
    std::unique_ptr<RdmaPaths> paths;
    std::string fault;
    int faults = 0;  // changes
    int reports = 0;
    bool pings = true;
  };

  RdmaPathsTest() {
    for (const int host : {0, 1}) fabric_.AddDevice(host, "mlx5_0");
    a_ = std::make_unique<Node>(this, 0);
    b_ = std::make_unique<Node>(this, 1);
    Exchange();
    for (Node* node : {a_.get(), b_.get()}) Plug(node);
  }
  void Plug(Node* node) {
    node->paths->SetPort("r0", health::RdmaPortName{"mlx5_0", 1}, time_.now());
    node->paths->SetTargets({{.key = KeyOf(node)}}, time_.now());
  }
  health::PairKey KeyOf(const Node* node) const { return {{node->name, "r0"}, {node == a_.get() ? "b" : "a", "r0"}}; }

  void Exchange() {
    ++counter_;
    for (Node* node : {a_.get(), b_.get()}) {
      health::NodeState state;
      state.node = node->name;
      state.epoch = {node->incarnation, counter_};
      state.nics.push_back({.identity = {.name = "r0", .address = node == a_.get() ? "10.1.0.1" : "10.1.1.1"}});
      state.rdma_ends = node->paths->Report();
      if (node == b_.get() && spoil_) spoil_(&state);
      (node == a_.get() ? b_ : a_)->view.Merge(state, time_.now());
      node->view.SetOwn(state, time_.now());
    }
  }
  // Pings leave, and every 20 ms all events are delivered. While `udp_answers` all pings are answered.
  void RunFor(Nanos time) {
    for (const Nanos end = time_.now() + time; time_.now() < end; time_.RunFor(20 * kMs)) {
      if (time_.now() >= next_ping_) {
        next_ping_ = time_.now() + kInterval;
        for (Node* node : {a_.get(), b_.get()})
          if (node->pings) node->paths->OnPing({.nic = "r0", .peer = KeyOf(node).peer, .answered_sent = udp_answered_}, time_.now());
        if (udp_answers_) udp_answered_ = time_.now();
      }
      for (Node* node : {a_.get(), b_.get()}) {
        node->blocking.RunPosted();
        node->core.RunPosted();
      }
      Exchange();
    }
  }
  // How long it takes until the fault of `node` is there, or is not; at most `most`.
  Nanos Until(const Node& node, bool fault, Nanos most) {
    const Nanos begin = time_.now();
    while (node.fault.empty() == fault && time_.now() - begin < most) RunFor(20 * kMs);
    return time_.now() - begin;
  }
  uint64_t Written() { return a_->fake.counts().sends + b_->fake.counts().sends; }
  static verbs::FakePortName Port(int host) { return {host, "mlx5_0", 1}; }

  verbs::FakeTimeline time_;
  verbs::FakeFabric fabric_{&time_};
  uint64_t counter_ = 0;
  Nanos next_ping_ = 0;
  Nanos udp_answered_ = 0;
  bool udp_answers_ = true;
  std::function<void(health::NodeState*)> spoil_;
  std::unique_ptr<Node> a_, b_;
};

TEST_F(RdmaPathsTest, APairIsJoinedAndWrittenWithEachPing) {
  RunFor(kNanosPerSecond);
  const uint64_t before = Written();
  const int reports = a_->reports;
  RunFor(10 * kInterval);
  EXPECT_EQ(Written(), before + 20);
  EXPECT_EQ(a_->reports, reports) << "a sound path is no news";
  EXPECT_EQ(a_->fault + b_->fault, "");
  EXPECT_THAT(a_->paths->Report(), SizeIs(1));
}

TEST_F(RdmaPathsTest, SilenceOfRdmaAloneIsAFaultAtBothEndsAndIsOverWhenItAnswers) {
  RunFor(kNanosPerSecond);
  fabric_.SetSilent(Port(1), true);
  EXPECT_LE(Until(*a_, true, 10 * kNanosPerSecond), 3 * kNanosPerSecond);
  EXPECT_LE(Until(*b_, true, 10 * kNanosPerSecond), kNanosPerSecond);
  EXPECT_EQ(a_->fault, "RDMA writes to b/r0 are not answered, UDP probes are");
  EXPECT_EQ(b_->fault, "RDMA writes to a/r0 are not answered, UDP probes are");
  RunFor(30 * kNanosPerSecond);
  EXPECT_EQ(a_->faults, 1);
  EXPECT_EQ(b_->faults, 1);
  fabric_.SetSilent(Port(1), false);
  EXPECT_LE(Until(*a_, false, 60 * kNanosPerSecond), 15 * kNanosPerSecond);
  EXPECT_LE(Until(*b_, false, 60 * kNanosPerSecond), kNanosPerSecond);
}

// A loss one way is an answer less the other way, too.
TEST_F(RdmaPathsTest, SilenceOfOneWayIsOneOfThePair) {
  RunFor(kNanosPerSecond);
  fabric_.path = [](const auto& from, const auto&) { return verbs::FakePath{.bytes_per_s = from.host == 0 ? 0 : 1'000'000'000}; };
  EXPECT_LE(Until(*a_, true, 10 * kNanosPerSecond), 4 * kNanosPerSecond);
  EXPECT_LE(Until(*b_, true, 10 * kNanosPerSecond), 4 * kNanosPerSecond);
}

TEST_F(RdmaPathsTest, NothingIsReportedIfUdpIsSilentToo) {
  RunFor(kNanosPerSecond);
  fabric_.SetSilent(Port(1), true);
  udp_answers_ = false;
  RunFor(20 * kNanosPerSecond);
  EXPECT_EQ(a_->faults + b_->faults, 0);
}

TEST_F(RdmaPathsTest, ADeviceThatIsLostIsNoFaultOfThePathAndIsProbedAgainWhenItIsBack) {
  RunFor(kNanosPerSecond);
  fabric_.LoseDevice(1, "mlx5_0");
  b_->paths->SetPort("r0", std::nullopt, time_.now());
  EXPECT_THAT(b_->paths->Report(), IsEmpty());
  RunFor(10 * kNanosPerSecond);
  EXPECT_EQ(a_->faults + b_->faults, 0);
  fabric_.RestoreDevice(1, "mlx5_0");
  b_->paths->SetPort("r0", health::RdmaPortName{"mlx5_0", 1}, time_.now());
  RunFor(10 * kNanosPerSecond);
  const uint64_t before = Written();
  RunFor(kNanosPerSecond);
  EXPECT_EQ(Written(), before + 10);
  EXPECT_EQ(a_->fault + b_->fault, "");
  EXPECT_EQ(fabric_.hangs(), 0);
}

TEST_F(RdmaPathsTest, AFaultIsOverWhenThePeersPortIsGoneWhichExplainsIt) {
  RunFor(kNanosPerSecond);
  fabric_.SetSilent(Port(1), true);
  Until(*a_, true, 10 * kNanosPerSecond);
  b_->paths->SetPort("r0", std::nullopt, time_.now());
  EXPECT_LE(Until(*a_, false, 10 * kNanosPerSecond), kNanosPerSecond);
  EXPECT_EQ(b_->fault, "");
}

TEST_F(RdmaPathsTest, APeerThatIsRestartedIsNoFault) {
  RunFor(kNanosPerSecond);
  // Its kernel ends its queue pairs; nobody answers pings meanwhile.
  b_->paths.reset();
  b_->Begin(2);
  b_->pings = udp_answers_ = false;
  b_->blocking.RunPosted();
  RunFor(2 * kNanosPerSecond);
  udp_answers_ = b_->pings = true;
  Plug(b_.get());
  RunFor(6 * kNanosPerSecond);
  EXPECT_EQ(a_->faults + b_->faults, 0);
  const uint64_t before = Written();
  RunFor(kNanosPerSecond);
  EXPECT_EQ(Written(), before + 10);
}

TEST_F(RdmaPathsTest, APeerThatHasNoEndIsProbedByUdpAlone) {
  spoil_ = [](health::NodeState* state) { state->rdma_ends.clear(); };
  RunFor(10 * kNanosPerSecond);
  EXPECT_EQ(Written(), 0u);
  EXPECT_EQ(a_->fault, "");
}

TEST_F(RdmaPathsTest, AnEndThatMakesNoSenseIsNone) {
  for (const std::string& end : {std::string(), std::string(64, '\xff'), std::string(32, '\0'), std::string("\1\12", 2)}) {
    spoil_ = [&](health::NodeState* state) {
      for (health::RdmaEndReport& report : state->rdma_ends) report.end = end;
    };
    RunFor(5 * kNanosPerSecond);
    EXPECT_EQ(Written(), 0u);
    EXPECT_EQ(a_->fault, "");
  }
}

// Nobody can make this node make queue pairs faster than it wants to.
TEST_F(RdmaPathsTest, AnEndThatChangesAllTheTimeIsFollowedWithBackOff) {
  uint32_t number = 0x1000;
  spoil_ = [&](health::NodeState* state) {
    for (health::RdmaEndReport& report : state->rdma_ends) {
      auto end = health::DecodeRdmaEnd(report.end);
      ASSERT_TRUE(end.has_value());
      end->number = ++number;
      end->meets = 0;
      report.end = health::EncodeRdmaEnd(*end);
    }
  };
  RunFor(10 * kNanosPerSecond);
  const int reports = a_->reports;
  RunFor(60 * kNanosPerSecond);
  // Two calls of each end: made, connected.
  EXPECT_LE(a_->reports - reports, 2 * 13);
}

TEST_F(RdmaPathsTest, AFormerTargetAnswersUntilThePeerKnows) {
  RunFor(kNanosPerSecond);
  a_->paths->SetTargets({}, time_.now());
  EXPECT_THAT(a_->paths->Report(), IsEmpty());
  RunFor(20 * kNanosPerSecond);
  EXPECT_EQ(b_->faults, 0);
}

TEST_F(RdmaPathsTest, ABoundedNumberOfPairsWithActiveOnesFirst) {
  std::vector<health::RailTarget> targets;
  for (size_t i = 0; i < health::kRdmaEndsMax; ++i) targets.push_back({.key = {{"a", "r0"}, {"c" + std::to_string(i), "r0"}}});
  targets.push_back({.key = KeyOf(a_.get()), .active = true});
  a_->paths->SetTargets(targets, time_.now());
  RunFor(kNanosPerSecond);
  EXPECT_THAT(a_->paths->Report(), SizeIs(1)) << "only b is pinged";
  EXPECT_GT(Written(), 0u);
}

TEST_F(RdmaPathsTest, ADeviceThatCompletesNothingIsAFault) {
  RunFor(kNanosPerSecond);
  a_->verbs.silent = true;
  EXPECT_LE(Until(*a_, true, 30 * kNanosPerSecond), 6 * kNanosPerSecond);
}

}  // namespace
}  // namespace r2cc::daemon
