#include "tests/cluster/node.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/core/check.h"
#include "plan/page/text.h"

namespace r2cc::cluster {
namespace {

constexpr int64_t kEpochNs = 1'700'000'000 * kNanosPerSecond;
constexpr uint64_t kRateBitsPerS = 400'000'000'000;

std::string Interface(int rail) { return absl::StrCat("eth", rail); }

std::string ManagementAddress(int node) { return absl::StrCat("10.200.", node / 256, ".", node % 256, ":7460"); }

std::string Mac(int node, int rail) { return absl::StrFormat("02:00:%02x:%02x:00:%02x", node / 256, node % 256, rail); }

daemon::Addresses::Map AddressesOf(int node, int rails) {
  daemon::Addresses::Map map;
  for (int rail = 0; rail < rails; ++rail) map[Interface(rail)] = {Network::RailAddress(node, rail)};
  return map;
}

}  // namespace

Node::Node(int number, int rails, Surroundings around)
    : number_(number),
      rails_(rails),
      around_(around),
      ahead_(static_cast<Nanos>(around.network->Random() % 1'000'000) * kNanosPerMs),
      links_up_(static_cast<size_t>(rails), true) {
  for (int rail = 0; rail < rails; ++rail) {
    const std::string folder = absl::StrCat("class/net/", Interface(rail));
    sysfs_.Set(folder + "/ifindex", absl::StrCat(rail + 1));
    sysfs_.Set(folder + "/carrier_changes", "1");
    sysfs_.Set(folder + "/speed", absl::StrCat(kRateBitsPerS / 1'000'000));
    sysfs_.Set(folder + "/address", Mac(number, rail));
    sysfs_.Set(folder + "/device", absl::StrFormat("../../../0000:%02x:00.0", 0x10 + rail));
    for (const char* counter : {"rx_packets", "tx_packets", "rx_crc_errors", "rx_frame_errors", "rx_length_errors", "rx_errors",
                                "tx_carrier_errors", "tx_errors"})
      sysfs_.Set(absl::StrCat(folder, "/statistics/", counter), "0");
  }
}

Node::Daemon::Daemon(Node* node)
    : life(node->around_.queue, node->ahead_),
      datagrams(node->around_.datagrams, &life),
      addresses(AddressesOf(node->number_, node->rails_)),
      page(node),
      peers(node->number_, ManagementAddress(node->number_), &life, node->around_.directory),
      store(node, &life) {
  for (int rail = 0; rail < node->rails_; ++rail)
    links.Set(Interface(rail), node->links_up_[static_cast<size_t>(rail)], Mac(node->number_, rail));
  wiring = std::make_unique<daemon::Wiring>(node->Config(), node->WorldOf(this));
}

Node::Daemon::~Daemon() {
  wiring.reset();
  life.End();
}

daemon::Config Node::Config() const {
  daemon::Config config;
  config.node = NodeName(number_);
  config.listen = ManagementAddress(number_);
  config.run_dir = "/run";
  config.state_dir = "/state";
  for (int rail = 0; rail < rails_; ++rail) {
    daemon::NicSpec nic;
    nic.name = RailName(rail);
    nic.interface = Interface(rail);
    config.nics.push_back(std::move(nic));
  }
  return config;
}

daemon::World Node::WorldOf(Daemon* daemon) {
  daemon::World world;
  world.core = &daemon->life;
  world.disk = &daemon->life;
  world.boot_ns = [this] { return around_.queue->Now(); };
  world.realtime_ns = [this] { return kEpochNs + around_.queue->Now() + clock_ahead_; };
  world.links = &daemon->links;
  world.sysfs = &sysfs_;
  world.datagrams = &daemon->datagrams;
  world.fabric = &daemon->fabric;
  world.topology = &topology_;
  world.addresses = &daemon->addresses;
  world.files = &files_;
  world.page = &daemon->page;
  world.jobs = &daemon->attach;
  world.peers = &daemon->peers;
  world.store = &daemon->store;
  world.boot_id = absl::StrCat("boot ", boots_, " of ", NodeName(number_));
  world.incarnation = around_.network->Random() | 1;
  world.new_probe_secret = [network = around_.network] {
    health::ProbeSecret secret{};
    const uint64_t random = network->Random();
    std::memcpy(secret.data(), &random, sizeof(random));
    return secret;
  };
  world.netns_inode = 1;
  return world;
}

void Node::Start() {
  if (running()) return;
  around_.watch->Forget(number_);
  daemon_ = std::make_unique<Daemon>(this);
  daemon_->peers.Serve(&daemon_->wiring->backend());
  R2CC_CHECK(daemon_->wiring->Start().ok());
  daemon_->wiring->SetPeerAddress(ManagementAddress(number_));
  AttachJobs();
}

void Node::End() { daemon_.reset(); }

void Node::Reimage(Nanos clock_ahead) {
  R2CC_CHECK(!running());
  files_.Lose();
  clock_ahead_ += clock_ahead;
  ++boots_;
}

void Node::AttachJobs() {
  for (size_t job = 0; job < jobs_.size(); ++job) {
    const daemon::JobId id = job + 1;
    plan::AttachRequest request{};
    request.magic = plan::kAttachMagic;
    request.version = plan::kAttachVersion;
    request.rail_count = static_cast<uint32_t>(rails_);
    plan::SetText("train", request.job);
    for (int rail = 0; rail < rails_; ++rail) {
      plan::SetText(Interface(rail), request.rails[rail].name);
      plan::SetText(Network::RailAddress(number_, rail), request.rails[rail].address);
    }
    daemon_->attach.Attach(id, 1000 + static_cast<int32_t>(job), request);
    std::vector<plan::EvidenceRecord> records;
    for (const int peer : jobs_[job]) {
      for (int rail = 0; rail < rails_; ++rail) {
        plan::EvidenceRecord& record = records.emplace_back();
        record.kind = static_cast<uint32_t>(plan::EvidenceKind::kLinkUp);
        record.time_ns = daemon_->life.Now();
        record.local_rail = static_cast<uint32_t>(rail);
        plan::SetText(NodeName(peer), record.peer_node);
        plan::SetText(RailName(rail), record.peer_nic);
      }
    }
    daemon_->attach.Tell(id, records);
  }
}

void Node::SetLink(int rail, bool up) {
  links_up_[static_cast<size_t>(rail)] = up;
  if (daemon_ != nullptr) daemon_->links.Set(Interface(rail), up);
}

absl::Status Node::Page::Publish(const plan::Plan& plan, const std::string&, Nanos) {
  node_->around_.watch->OnPage(node_->number_, plan, node_->around_.queue->Now());
  return absl::OkStatus();
}

void Node::WatchedStore::Put(const std::string& key, const std::string& value, int64_t lease_ms) {
  v1::NodeView view;
  if (view.ParseFromString(value)) node_->around_.watch->OnView(view, node_->number_, node_->around_.queue->Now());
  client_.Put(key, value, lease_ms);
}

}  // namespace r2cc::cluster
