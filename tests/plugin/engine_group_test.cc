// A group's flows over TCP on the loopback: which rails they take, who gets them, and how they end.

#include "netplugin/transport/collective/engine_group.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/plugin/engine_node.h"

namespace r2cc::net {
namespace {

constexpr uint64_t kBytes = 1 << 20;
constexpr int kMessages = 10;

bool Until(const std::function<bool()>& condition) {
  for (const auto until = std::chrono::steady_clock::now() + std::chrono::minutes(1); !condition();)
    if (std::chrono::steady_clock::now() >= until) return false;
  return true;
}

// Two members, each with two rails.
class EngineGroupTest : public testing::Test {
 protected:
  EngineGroupTest() {
    for (size_t i = 0; i < 2; ++i) listeners_.push_back(nodes_[i].engine->Listen(&handles_[i]));
    for (size_t i = 0; i < 2; ++i) groups_.push_back(std::make_unique<EngineGroup>(nodes_[i].engine.get(), listeners_[i], handles_));
  }
  // A flow from member 0 to member 1 as both have it, over which a message has gone.
  struct Flow {
    FlowRef from = 0, to = 0;
  };
  Flow Open() {
    Flow flow{groups_[0]->Open(1), 0};
    EXPECT_TRUE(Until([&] {
      const std::optional<FlowRef> accepted = groups_[1]->Accept();
      if (accepted.has_value()) flow.to = *accepted;
      return accepted.has_value();
    }));
    return flow;
  }
  void Move(const Flow& flow, int messages) {
    FlowPort &from = *groups_[0]->port(), &to = *groups_[1]->port();
    const uint64_t before = to.DoneThrough(flow.to);
    for (int i = 0; i < messages; ++i) {
      const std::vector<std::byte> sent(kBytes, static_cast<std::byte>(i + 1));
      std::vector<std::byte> received(kBytes);
      EXPECT_TRUE(from.Send(flow.from, sent.data(), kBytes));
      EXPECT_TRUE(to.Receive(flow.to, received.data(), kBytes));
      const uint64_t done = before + static_cast<uint64_t>(i) + 1;
      EXPECT_TRUE(Until([&] { return from.DoneThrough(flow.from) >= done && to.DoneThrough(flow.to) >= done; }));
      EXPECT_EQ(sent, received);
    }
  }
  void Close(const Flow& flow) {
    groups_[1]->port()->Close(flow.to);
    groups_[0]->port()->Close(flow.from);
  }
  // What each rail of member 0 has sent.
  std::vector<double> SentGigabytes() {
    std::vector<double> sent;
    for (const std::string& line : nodes_[0].engine->Summary()) {
      double gigabytes = 0;
      const size_t at = line.find(" sent ");
      if (at != std::string::npos && std::sscanf(line.c_str() + at, " sent %lf GB", &gigabytes) == 1) sent.push_back(gigabytes);
    }
    return sent;
  }

  EngineNode nodes_[2] = {EngineNode("a"), EngineNode("b")};
  std::vector<Handle> handles_ = std::vector<Handle>(2);
  std::vector<uint64_t> listeners_;
  std::vector<std::unique_ptr<EngineGroup>> groups_;
};

TEST_F(EngineGroupTest, TheFlowsToAMemberGoRoundAllRails) {
  const Flow flows[] = {Open(), Open(), Open()};
  // Which rail carries a flow alone. Until both are up each may carry everything.
  const auto rail_of = [&](const Flow& flow) -> std::optional<size_t> {
    const std::vector<double> before = SentGigabytes();
    Move(flow, kMessages);
    const std::vector<double> after = SentGigabytes();
    constexpr double kNothing = 1.5e-3;  // one unit of what is printed
    const bool moved[] = {after.at(0) - before.at(0) > kNothing, after.at(1) - before.at(1) > kNothing};
    return moved[0] != moved[1] ? std::optional<size_t>(moved[0] ? 0 : 1) : std::nullopt;
  };
  EXPECT_TRUE(Until([&] { return rail_of(flows[1]) == 1u; }));
  EXPECT_EQ(rail_of(flows[0]), 0u);
  EXPECT_EQ(rail_of(flows[2]), 0u);
  EXPECT_EQ(rail_of(flows[1]), 1u);
  for (const Flow& flow : flows) Close(flow);
}

TEST_F(EngineGroupTest, AFlowIsGivenOnce) {
  const Flow flow = Open();
  EXPECT_FALSE(groups_[1]->Accept().has_value());
  EXPECT_FALSE(groups_[0]->Accept().has_value());
  Close(flow);
}

TEST_F(EngineGroupTest, AGroupThatEndsIsAnErrorAtTheOtherEnd) {
  const Flow flow = Open();
  Move(flow, 1);
  groups_[1]->port()->Close(flow.to);
  groups_[1].reset();
  std::string error;
  EXPECT_TRUE(Until([&] {
    groups_[0]->port()->DoneThrough(flow.from);
    error = groups_[0]->port()->Error(flow.from);
    return !error.empty();
  }));
  EXPECT_NE(error.find("closed the flow"), std::string::npos) << error;
  // Its listener has gone with it.
  const FlowRef late = groups_[0]->Open(1);
  EXPECT_TRUE(Until([&] {
    groups_[0]->port()->DoneThrough(late);
    error = groups_[0]->port()->Error(late);
    return !error.empty();
  }));
  EXPECT_NE(error.find("does not listen"), std::string::npos) << error;
  groups_[0]->port()->Close(late);
  groups_[0]->port()->Close(flow.from);
}

TEST_F(EngineGroupTest, AHandleThatLeadsNowhereIsAFailedFlow) {
  Handle handle;
  const uint64_t listener = nodes_[0].engine->Listen(&handle);
  std::memset(&handles_[1], 0, sizeof(Handle));
  EngineGroup group(nodes_[0].engine.get(), listener, handles_);
  const FlowRef flow = group.Open(1);
  EXPECT_NE(group.port()->Error(flow), "");
  std::byte byte{};
  EXPECT_FALSE(group.port()->Send(flow, &byte, 1));
  group.port()->Close(flow);
}

}  // namespace
}  // namespace r2cc::net
