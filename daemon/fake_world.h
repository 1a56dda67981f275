// The world of a Wiring made of fakes, and the daemon in it, in simulated time.
#ifndef R2CC_DAEMON_FAKE_WORLD_H_
#define R2CC_DAEMON_FAKE_WORLD_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/core/check.h"
#include "base/fake_executor.h"
#include "daemon/config/config_patterns.h"
#include "daemon/io/fake_attach_server.h"
#include "daemon/io/fake_files.h"
#include "daemon/io/fake_page_sink.h"
#include "daemon/io/fake_peer_transport.h"
#include "daemon/io/fake_store.h"
#include "daemon/wiring.h"
#include "health/io/fake_datagram.h"
#include "health/io/fake_link_watch.h"
#include "health/io/fake_mad_fabric.h"
#include "health/io/fake_rdma_watch.h"
#include "health/io/fake_sysfs.h"
#include "health/io/topology.h"

namespace r2cc::daemon {

// To be derived from. One thread.
class FakeWorld {
 protected:
  // A daemon with this configuration on what is left of the world; the one before is gone.
  void MakeDaemon(std::string_view config_text, uint64_t incarnation) {
    wiring_.reset();
    links_ = std::make_unique<health::FakeLinkWatch>();
    links_->Set("eth0", true, "02:00:00:00:00:01");
    links_->Set("eth1", eth1_up_, "02:00:00:00:00:02");
    page_ = std::make_unique<FakePageSink>();
    jobs_ = std::make_unique<FakeAttachServer>();
    peers_ = std::make_unique<FakePeerTransport>();
    store_ = std::make_unique<FakeStore>();
    auto config = ParseConfig(std::string(config_text) + "\ninsecure: true", "test.conf", {"/run", "host", "", "/lib"});
    R2CC_CHECK(config.ok() && FitToMachine(addresses_.ByInterface(), &*config, MayLack{.everything = true}).ok());
    World world;
    world.core = &core_;
    world.disk = &disk_;
    world.realtime_ns = [this] { return 1'700'000'000'000'000'000 + core_.Now(); };
    world.boot_ns = [this] { return boot_offset_ + core_.Now(); };
    world.links = links_.get();
    world.sysfs = &sysfs_;
    world.datagrams = &datagrams_;
    world.fabric = &fabric_;
    world.rdma = &rdma_;
    world.topology = &topology_;
    world.addresses = &addresses_;
    world.files = &files_;
    world.page = page_.get();
    world.jobs = jobs_.get();
    world.peers = peers_.get();
    world.store = store_.get();
    world.config = &loader_;
    world.boot_id = boot_id_;
    world.incarnation = incarnation;
    world.netns_inode = 5;
    wiring_ = std::make_unique<Wiring>(*config, world);
    R2CC_CHECK(wiring_->Start().ok());
    Settle();
  }

  void Settle() {
    core_.RunPosted();
    disk_.RunPosted();
    core_.RunPosted();
  }

  std::string boot_id_ = "boot";
  Nanos boot_offset_ = 0;
  FakeExecutor core_;
  FakeExecutor disk_;
  FakeFiles files_;
  health::FakeSysfs sysfs_;
  health::FakeDatagramNet net_{&core_};
  health::FakeDatagrams datagrams_{&net_};
  health::FakeMadFabric fabric_;
  health::FakeRdmaWatch rdma_;
  const health::FakeTopology topology_;
  FakeAddresses addresses_{{{"eth0", {"10.0.0.1"}}, {"eth1", {"10.0.1.1"}}}};
  bool eth1_up_ = true;  // when a daemon is made
  std::unique_ptr<health::FakeLinkWatch> links_;
  std::unique_ptr<FakePageSink> page_;
  std::unique_ptr<FakeAttachServer> jobs_;
  std::unique_ptr<FakePeerTransport> peers_;
  std::unique_ptr<FakeStore> store_;
  FakeConfigLoader loader_{absl::NotFoundError("there are no files")};
  std::unique_ptr<Wiring> wiring_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_FAKE_WORLD_H_
