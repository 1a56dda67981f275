#include "daemon/core/convert.h"

#include <gtest/gtest.h>

#include <functional>
#include <set>

namespace r2cc::daemon {
namespace {

constexpr Moment kNow = {5'000, 1'700'000'000'000'005'000};

health::NodeState State() {
  health::NicStatus nic;
  nic.identity = {"rail0", "eth0", "10.0.0.1", "02:00:00:00:00:01", "0000:81:00.0", 0};
  nic.state = health::NicState::kFailed;
  nic.reason = "link down";
  nic.since = 4'000;
  nic.rate_bits_per_s = 400'000'000'000;
  nic.drained = true;
  nic.drill_failed = true;
  nic.operator_weight_permille = 0;
  nic.share_permille = 250;
  nic.flaps_total = 3;
  health::NodeState state;
  state.node = "n1";
  state.epoch = {2, 3};
  state.status = health::NodeStatus::kUnhealthy;
  state.nics = {nic};
  return state;
}

std::string ErrorOf(const v1::NodeView& view) {
  const auto state = FromProto(view, kNow);
  return state.ok() ? "no error" : std::string(state.status().message());
}

TEST(ConvertTest, AViewComesBackAsItWas) {
  health::NodeState expected = State();
  expected.nics[0].identity.interface = "";  // means nothing to another machine
  const v1::NodeView view = ToProto(State(), health::NodeStatus::kUnhealthy, kNow);
  EXPECT_EQ(view.nics(0).since_ns(), kNow.realtime_ns - 1'000);
  const auto back = FromProto(view, kNow);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(*back, expected);
}

TEST(ConvertTest, EveryStateAndHealthHasItsOwnNumber) {
  std::set<int> numbers;
  for (int state = 0; state < health::kNicStates; ++state) {
    health::NodeState view = State();
    view.nics[0].state = static_cast<health::NicState>(state);
    const auto back = FromProto(ToProto(view, view.status, kNow), kNow);
    ASSERT_TRUE(back.ok());
    EXPECT_EQ(static_cast<int>(back->nics[0].state), state);
    numbers.insert(ToProto(view.nics[0].state));
  }
  EXPECT_EQ(numbers.size(), static_cast<size_t>(health::kNicStates));
  EXPECT_EQ(numbers.count(v1::NIC_STATE_UNSPECIFIED), 0u);
  EXPECT_EQ(ToProto(health::NodeStatus::kUnreachable), v1::NODE_UNREACHABLE);
}

TEST(ConvertTest, RefusesWhatCannotBe) {
  const v1::NodeView good = ToProto(State(), health::NodeStatus::kHealthy, kNow);
  v1::NodeView view = good;
  view.set_node("n1/\x1b[2J");
  EXPECT_EQ(ErrorOf(view), "'n1/?[2J' is not a node name");
  view = good;
  view.mutable_nics(0)->set_name("");
  EXPECT_EQ(ErrorOf(view), "'' is not a NIC name");
  view = good;
  *view.add_nics() = view.nics(0);
  EXPECT_EQ(ErrorOf(view), "NIC rail0 is listed twice");
  view = good;
  view.mutable_nics(0)->set_operator_weight_permille(1001);
  EXPECT_EQ(ErrorOf(view), "NIC rail0: weight 1001 is over 1000");
  view = good;
  view.mutable_nics(0)->set_share_permille(1001);
  EXPECT_EQ(ErrorOf(view), "NIC rail0: share 1001 is over 1000");
  view = good;
  view.mutable_nics(0)->set_state(static_cast<v1::NicState>(77));
  EXPECT_EQ(ErrorOf(view), "NIC rail0: NIC state 77 is unknown: is that daemon newer?");
  view = good;
  for (int i = 0; i < 16; ++i) *view.add_nics() = good.nics(0), view.mutable_nics(i + 1)->set_name("x" + std::to_string(i));
  EXPECT_EQ(ErrorOf(view), "17 NICs, more than 16 (limits { nics_per_node })");
  EXPECT_TRUE(FromProto(view, kNow, 17).ok()) << "as it is configured";
}

TEST(ConvertTest, AnOlderDaemonReportsNoShares) {
  v1::NodeView view = ToProto(State(), health::NodeStatus::kHealthy, kNow);
  EXPECT_EQ(view.nics(0).share_permille(), 250u);
  view.mutable_nics(0)->clear_share_permille();
  EXPECT_EQ(FromProto(view, kNow)->nics[0].share_permille, 1000);
  health::NodeState full = State();
  full.nics[0].share_permille = 1000;
  EXPECT_FALSE(ToProto(full, full.status, kNow).nics(0).has_share_permille());
}

TEST(ConvertTest, StrangeTimesAndTextsAreTamed) {
  v1::NodeView view = ToProto(State(), health::NodeStatus::kHealthy, kNow);
  view.mutable_nics(0)->set_since_ns(INT64_MAX);
  view.mutable_nics(0)->set_rate_bits_per_s(UINT64_MAX);
  view.mutable_nics(0)->set_reason(std::string(10'000, '\a'));
  const auto state = FromProto(view, kNow);
  ASSERT_TRUE(state.ok());
  EXPECT_EQ(state->nics[0].since, kNow.monotonic_ns) << "nothing happened in the future";
  EXPECT_LE(state->nics[0].rate_bits_per_s, 1'000'000'000'000'000u);
  EXPECT_EQ(state->nics[0].reason, std::string(256, '?'));
  view.mutable_nics(0)->set_since_ns(INT64_MIN);
  EXPECT_TRUE(FromProto(view, kNow).ok());
}

TEST(ConvertTest, RailPairsTravelAndAreCheckedWhole) {
  const Moment now{1000, 2000};
  health::NodeState state;
  state.node = "n0";
  state.epoch = {5, 1};
  state.probe_nonce = 77;
  state.probe_key = {1, 2, 3};
  state.nics.push_back({.identity = {.name = "rail0"}, .probe_port = 7460, .port_dead = true});
  state.pairs = {{"rail0", {"n1", "rail0"}, true, true}, {"rail0", {"n2", "rail0"}, false}};
  const v1::NodeView view = ToProto(state, state.status, now);
  const auto back = FromProto(view, now);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->pairs, state.pairs);
  EXPECT_EQ(back->probe_nonce, 77u);
  EXPECT_EQ(back->probe_key, state.probe_key);
  EXPECT_EQ(back->nics[0].probe_port, 7460);
  EXPECT_TRUE(back->nics[0].port_dead);

  v1::NodeView wrong = view;
  wrong.set_probe_key("short");
  EXPECT_FALSE(FromProto(wrong, now).ok());
  wrong = view;
  wrong.mutable_nics(0)->set_probe_port(70000);
  EXPECT_FALSE(FromProto(wrong, now).ok());
  wrong = view;
  wrong.mutable_pairs(0)->set_nic("rail9");  // a node speaks of its own ends only
  EXPECT_FALSE(FromProto(wrong, now).ok());
  wrong = view;
  wrong.mutable_pairs(0)->set_peer_node("n0");
  EXPECT_FALSE(FromProto(wrong, now).ok());
  wrong = view;
  wrong.mutable_pairs(0)->set_peer_nic("a b");
  EXPECT_FALSE(FromProto(wrong, now).ok());
  wrong = view;
  for (size_t i = 0; i < health::kPairReportsMax; ++i) *wrong.add_pairs() = view.pairs(0);
  EXPECT_FALSE(FromProto(wrong, now).ok());
}

TEST(ConvertTest, RdmaEndsTravelAndAreBounded) {
  const Moment now{1000, 2000};
  health::NodeState state;
  state.node = "n0";
  state.epoch = {5, 1};
  state.nics.push_back({.identity = {.name = "rail0"}});
  // Its content is the probe's business.
  state.rdma_ends = {{"rail0", {"n1", "rail0"}, std::string("\0\xff", 2)}};
  const v1::NodeView view = ToProto(state, state.status, now);
  const auto back = FromProto(view, now);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->rdma_ends, state.rdma_ends);
  const auto refused = [&](const std::function<void(v1::NodeView*)>& spoil) {
    v1::NodeView wrong = view;
    spoil(&wrong);
    return !FromProto(wrong, now).ok();
  };
  EXPECT_TRUE(refused([](v1::NodeView* wrong) { wrong->mutable_rdma_ends(0)->set_nic("rail9"); }));
  EXPECT_TRUE(refused([](v1::NodeView* wrong) { wrong->mutable_rdma_ends(0)->set_peer_node("n0"); }));
  EXPECT_TRUE(refused([](v1::NodeView* wrong) { wrong->mutable_rdma_ends(0)->set_peer_nic("a b"); }));
  EXPECT_TRUE(refused([](v1::NodeView* wrong) { wrong->mutable_rdma_ends(0)->set_end(std::string(health::kRdmaEndBytesMax + 1, 'x')); }));
  EXPECT_TRUE(refused([&](v1::NodeView* wrong) {
    for (size_t i = 0; i < health::kRdmaEndsMax; ++i) *wrong->add_rdma_ends() = view.rdma_ends(0);
  }));
}

// A daemon of 0.2.0 does not read the fields that it does not know, and a field that it does not send is 0.
TEST(ConvertTest, TheStateOfLargePacketsTravels) {
  const Moment now{10, 1'700'000'000'000'000'000};
  health::NodeState state;
  state.node = "n1";
  state.epoch = {1, 1};
  state.nics.emplace_back().identity.name = "r0";
  state.nics[0].probe_packet_max = 9000;
  state.pairs = {{"r0", {"n0", "r0"}, false, true, health::PairVerdict::kSilent},
                 {"r0", {"n2", "r0"}, false, false, health::PairVerdict::kAnswering},
                 {"r0", {"n3", "r0"}}};
  v1::NodeView view = ToProto(state, health::NodeStatus::kHealthy, now);
  const auto back = FromProto(view, now, kNicsPerNodeDefault);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->nics[0].probe_packet_max, 9000u);
  EXPECT_EQ(back->pairs, state.pairs);
  EXPECT_FALSE(state.ProbedAs(health::NodeState{.node = "n1", .nics = {{.identity = {.name = "r0"}}}}));
}

TEST(ConvertTest, DrainsOfSingleJobsTravel) {
  const Moment now{10, 1'700'000'000'000'000'000};
  health::NodeState state;
  state.node = "n1";
  state.epoch = {1, 1};
  state.nics.emplace_back().identity.name = "r0";
  state.nics[0].drained_jobs = {"eval", "train"};
  v1::NodeView view = ToProto(state, health::NodeStatus::kHealthy, now);
  const auto back = FromProto(view, now, kNicsPerNodeDefault);
  ASSERT_TRUE(back.ok()) << back.status();
  EXPECT_EQ(back->nics[0].drained_jobs, state.nics[0].drained_jobs);

  view.mutable_nics(0)->add_drained_jobs("a b");
  EXPECT_EQ(FromProto(view, now, kNicsPerNodeDefault).status().message(), "NIC r0: 'a b' is not a job name");
  view.mutable_nics(0)->mutable_drained_jobs()->Clear();
  for (size_t i = 0; i <= health::kDrainedJobsMax; ++i) view.mutable_nics(0)->add_drained_jobs("job" + std::to_string(i));
  EXPECT_EQ(FromProto(view, now, kNicsPerNodeDefault).status().message(), "NIC r0: drained for 9 jobs, more than 8");
}

}  // namespace
}  // namespace r2cc::daemon
