// Tests of the whole daemon in a world of fakes.
#ifndef R2CC_DAEMON_WIRING_RIG_H_
#define R2CC_DAEMON_WIRING_RIG_H_

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "daemon/fake_world.h"
#include "plan/page/text.h"

namespace r2cc::daemon {

constexpr Nanos kMs = kNanosPerMs;
inline const Caller kRoot{.kind = Caller::Kind::kLocal, .pid = 1};
inline const Caller kForwarded{.kind = Caller::Kind::kLocal, .pid = 1, .via = "n1"};

inline plan::AttachRequest JobWithRails(const std::vector<std::string>& addresses) {
  plan::AttachRequest request{};
  request.magic = plan::kAttachMagic;
  request.version = plan::kAttachVersion;
  request.rail_count = static_cast<uint32_t>(addresses.size());
  plan::SetText("train", request.job);
  for (size_t i = 0; i < addresses.size(); ++i) {
    plan::SetText("r" + std::to_string(i), request.rails[i].name);
    plan::SetText(addresses[i], request.rails[i].address);
  }
  return request;
}

inline v1::NodeView PeerView(uint64_t counter, v1::NicState state) {
  v1::NodeView view;
  view.set_node("n1");
  view.mutable_epoch()->set_incarnation(1);
  view.mutable_epoch()->set_counter(counter);
  view.set_protocol(kPeerProtocol);
  view.set_word(v1::NODE_HEALTHY);
  view.set_peer_address("h1:7460");
  auto* nic = view.add_nics();
  nic->set_name("rail0");
  nic->set_state(state);
  nic->set_operator_weight_permille(1000);
  return view;
}

class WiringTest : public testing::Test, protected FakeWorld {
 protected:
  WiringTest() { MakeDaemon(/*incarnation=*/1000); }

  void MakeDaemon(uint64_t incarnation) {
    FakeWorld::MakeDaemon(R"(node: "n0" peers { node: "n1" address: "h1:7460" } peers { node: "n2" address: "h2:7460" }
                             nics { name: "rail0" interface: "eth0" } nics { name: "rail1" interface: "eth1" }
                             nics { name: "rail2" address: "127.0.0.9" })",
                          incarnation);
  }
  void TearDown() override { wiring_.reset(); }

  absl::StatusOr<v1::NicActionReply> Act(const std::string& node, const std::string& nic, v1::NicAction action, uint32_t weight = 0,
                                         const Caller& caller = kRoot, int64_t drill_ns = 0) {
    v1::NicActionRequest request;
    request.set_node(node);
    request.set_nic(nic);
    request.set_action(action);
    request.set_weight_permille(weight);
    request.set_drill_ns(drill_ns);
    std::optional<absl::StatusOr<v1::NicActionReply>> result;
    wiring_->backend().Ask(request, caller, [&](absl::StatusOr<v1::NicActionReply> reply) { result.emplace(std::move(reply)); });
    Settle();
    return result.has_value() ? *result : absl::StatusOr<v1::NicActionReply>(absl::DeadlineExceededError("no answer"));
  }

  v1::StatusReply Status() {
    v1::StatusReply status;
    wiring_->backend().Ask(v1::StatusRequest(), Caller(), [&](absl::StatusOr<v1::StatusReply> reply) { status = *std::move(reply); });
    Settle();
    return status;
  }

  uint16_t Weight(const std::string& node, const std::string& nic) {
    const auto planned = page_->Find(node, nic);
    EXPECT_TRUE(planned.has_value()) << node << "/" << nic;
    return planned.has_value() ? planned->weight_permille : 0xffff;
  }

  // The newest event of `kind`; empty if there is none.
  v1::Event Newest(const std::string& kind) {
    core_.RunPosted();
    v1::Event newest;
    for (auto event = wiring_->backend().events().After(0); event.has_value(); event = wiring_->backend().events().After(event->sequence()))
      if (event->kind() == kind) newest = *event;
    return newest;
  }
  int Count(const std::string& kind) {
    core_.RunPosted();
    int count = 0;
    for (auto event = wiring_->backend().events().After(0); event.has_value(); event = wiring_->backend().events().After(event->sequence()))
      count += event->kind() == kind;
    return count;
  }
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_WIRING_RIG_H_
