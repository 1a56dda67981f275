// Test rig: a node of two NICs, with evidence that a test makes.
#ifndef R2CC_HEALTH_VIEW_NODE_HEALTH_RIG_H_
#define R2CC_HEALTH_VIEW_NODE_HEALTH_RIG_H_

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "health/view/node_health.h"

namespace r2cc::health {

constexpr Nanos kSecond = kNanosPerSecond;
constexpr uint64_t kGbit = 1'000'000'000;

class NodeHealthTest : public testing::Test {
 protected:
  std::unique_ptr<NodeHealth> Make(const OperatorSettings& settings = {}) {
    const std::vector<NicIdentity> nics = {{.name = "r0", .interface = "eth0", .rate_bits_per_s = 25 * kGbit},
                                           {.name = "r1", .interface = "eth1"}};
    return std::make_unique<NodeHealth>("n0", nics, NodePolicy(), settings, now_);
  }
  // "r0 HEALTHY>FAILED (link down); ..."
  std::string See(EvidenceKind kind, const std::string& nic, int64_t value = 0, const std::string& detail = "", const NicKey& peer = {}) {
    return TextOf(health_->Handle({"n0", {"n0", nic}, kind, value, now_, peer, detail}));
  }
  std::string SeePeer(EvidenceKind kind, const NicKey& nic) { return TextOf(health_->Handle({nic.node, nic, kind, 0, now_, {}, ""})); }
  std::string Pass(Nanos by) {
    now_ += by;
    return TextOf(health_->Tick(now_));
  }
  std::string TextOf(const std::vector<NicChange>& changes) {
    std::string changes_text;
    for (const NicChange& change : changes) {
      EXPECT_EQ(change.when, now_);
      changes_text += change.nic + " " + NicStateName(change.transition.from) + ">" + NicStateName(change.transition.to) + " (" +
                      change.transition.reason + "); ";
    }
    return changes_text;
  }
  void BothUp() {
    See(EvidenceKind::kLinkUp, "r0");
    See(EvidenceKind::kLinkUp, "r1");
  }
  const NicStatus& Nic(const std::string& name) { return *health_->Snapshot().Find(name); }

  Nanos now_ = kSecond;
  std::unique_ptr<NodeHealth> health_ = Make();
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_VIEW_NODE_HEALTH_RIG_H_
