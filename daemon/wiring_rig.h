// The whole daemon in simulated time, its world made of fakes.
#ifndef R2CC_DAEMON_WIRING_RIG_H_
#define R2CC_DAEMON_WIRING_RIG_H_

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fake_executor.h"
#include "daemon/io/fake_attach_server.h"
#include "daemon/io/fake_files.h"
#include "daemon/io/fake_page_sink.h"
#include "daemon/io/fake_peer_transport.h"
#include "daemon/io/fake_store.h"
#include "daemon/wiring.h"
#include "health/io/fake_datagram.h"
#include "health/io/fake_fabric.h"
#include "health/io/fake_link_watch.h"
#include "health/io/fake_sysfs.h"
#include "health/io/topology.h"
#include "plan/page/text.h"

namespace r2cc::daemon {

constexpr Nanos kMs = kNanosPerMs;

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
  view.mutable_epoch()->set_counter(counter);
  view.set_word(v1::NODE_HEALTHY);
  view.set_peer_address("h1:7460");
  auto* nic = view.add_nics();
  nic->set_name("rail0");
  nic->set_state(state);
  nic->set_operator_weight_permille(1000);
  return view;
}

class WiringTest : public testing::Test {
 protected:
  WiringTest() { MakeDaemon(/*daemon_start_ns=*/1000); }

  // A daemon on what is left of the world; the one before is gone.
  void MakeDaemon(int64_t daemon_start_ns) {
    wiring_.reset();
    links_ = std::make_unique<health::FakeLinkWatch>();
    links_->Set("eth0", true, "02:00:00:00:00:01");
    links_->Set("eth1", true, "02:00:00:00:00:02");
    page_ = std::make_unique<FakePageSink>();
    jobs_ = std::make_unique<FakeAttachServer>();
    peers_ = std::make_unique<FakePeerTransport>();
    store_ = std::make_unique<FakeStore>();
    const auto config = ParseConfig(R"(node: "n0" peers { node: "n1" address: "h1:7460" } peers { node: "n2" address: "h2:7460" }
                                       nics { name: "rail0" interface: "eth0" } nics { name: "rail1" interface: "eth1" }
                                       nics { name: "rail2" address: "127.0.0.9" })",
                                    "test.conf", {"/run", "host", ""});
    EXPECT_TRUE(config.ok()) << config.status();
    World world;
    world.core = &core_;
    world.disk = &disk_;
    world.realtime_ns = [this] { return 1'700'000'000'000'000'000 + core_.Now(); };
    world.links = links_.get();
    world.sysfs = &sysfs_;
    world.datagrams = &datagrams_;
    world.fabric = &fabric_;
    world.topology = &topology_;
    world.addresses = &addresses_;
    world.files = &files_;
    world.page = page_.get();
    world.jobs = jobs_.get();
    world.peers = peers_.get();
    world.store = store_.get();
    world.boot_id = "boot";
    world.boot_time_s = 77;
    world.daemon_start_ns = daemon_start_ns;
    world.netns_inode = 5;
    wiring_ = std::make_unique<Wiring>(*config, world);
    EXPECT_TRUE(wiring_->Start().ok());
    Settle();
  }
  void TearDown() override { wiring_.reset(); }

  void Settle() {
    core_.RunPosted();
    disk_.RunPosted();
    core_.RunPosted();
  }

  absl::StatusOr<v1::NicActionReply> Act(const std::string& node, const std::string& nic, v1::NicAction action, uint32_t weight = 0,
                                         Backend::Origin origin = Backend::Origin::kOperator) {
    v1::NicActionRequest request;
    request.set_node(node);
    request.set_nic(nic);
    request.set_action(action);
    request.set_weight_permille(weight);
    std::optional<absl::StatusOr<v1::NicActionReply>> result;
    wiring_->ActOnNic(request, origin, [&](absl::StatusOr<v1::NicActionReply> reply) { result.emplace(std::move(reply)); });
    Settle();
    return result.has_value() ? *result : absl::StatusOr<v1::NicActionReply>(absl::DeadlineExceededError("no answer"));
  }

  v1::StatusReply Status() {
    v1::StatusReply status;
    wiring_->GetStatus([&](absl::StatusOr<v1::StatusReply> reply) { status = *std::move(reply); });
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
    for (auto event = wiring_->events().After(0); event.has_value(); event = wiring_->events().After(event->sequence()))
      if (event->kind() == kind) newest = *event;
    return newest;
  }
  int Count(const std::string& kind) {
    core_.RunPosted();
    int count = 0;
    for (auto event = wiring_->events().After(0); event.has_value(); event = wiring_->events().After(event->sequence()))
      count += event->kind() == kind;
    return count;
  }

  FakeExecutor core_;
  FakeExecutor disk_;
  FakeFiles files_;
  health::FakeSysfs sysfs_;
  health::FakeDatagramNet net_{&core_};
  health::FakeDatagrams datagrams_{&net_};
  health::FakeFabric fabric_;
  const health::FakeTopology topology_;
  FakeAddresses addresses_{{{"eth0", {"10.0.0.1"}}, {"eth1", {"10.0.1.1"}}}};
  std::unique_ptr<health::FakeLinkWatch> links_;
  std::unique_ptr<FakePageSink> page_;
  std::unique_ptr<FakeAttachServer> jobs_;
  std::unique_ptr<FakePeerTransport> peers_;
  std::unique_ptr<FakeStore> store_;
  std::unique_ptr<Wiring> wiring_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_WIRING_RIG_H_
