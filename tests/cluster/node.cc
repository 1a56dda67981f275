#include "tests/cluster/node.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/core/check.h"
#include "base/core/release.h"
#include "plan/page/text.h"

namespace r2cc::cluster {
namespace {

constexpr int64_t kEpochNs = 1'700'000'000 * kNanosPerSecond;
constexpr uint64_t kRateBitsPerS = 400'000'000'000;
// Soon full, so that all that grows after it grows without end.
constexpr size_t kShortHistory = 16;

std::string Interface(int rail) { return absl::StrCat("eth", rail); }

std::string ManagementAddress(int node) { return absl::StrCat("10.200.", node / 256, ".", node % 256, ":7460"); }

std::string Mac(int node, int rail) { return absl::StrFormat("02:00:%02x:%02x:00:%02x", node / 256, node % 256, rail); }

daemon::Addresses::Map AddressesOf(int node, int rails) {
  daemon::Addresses::Map map;
  for (int rail = 0; rail < rails; ++rail) map[Interface(rail)] = {Network::RailAddress(node, rail)};
  return map;
}

std::unique_ptr<daemon::SharedPage> NewPage(bool shared) {
  if (!shared) return nullptr;
  auto page = daemon::SharedPage::Create();
  R2CC_CHECK(page.ok());
  return *std::move(page);
}

}  // namespace

Node::Node(int number, int rails, Surroundings around)
    : number_(number),
      rails_(rails),
      around_(around),
      clock_(around.clocks.empty() ? sim::MachineClock{around.timeline->random().Between(0, 1'000'000) * kNanosPerMs}
                                   : around.clocks[static_cast<size_t>(number)]),
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
    : executor(node->around_.timeline, node->clock_),
      datagrams(node->around_.datagrams, &executor),
      addresses(AddressesOf(node->number_, node->rails_)),
      files(&node->files_),
      page(node, NewPage(!node->around_.attach.empty())),
      attach(node->around_.attach.empty() ? nullptr : std::make_unique<Attach>(node, &executor, page.fd())),
      peers(node->number_, ManagementAddress(node->number_), &executor, node->around_.directory),
      store(node, &executor) {
  for (int rail = 0; rail < node->rails_; ++rail)
    links.Set(Interface(rail), node->links_up_[static_cast<size_t>(rail)], Mac(node->number_, rail));
  wiring = std::make_unique<daemon::Wiring>(node->Config(), node->WorldOf(this));
}

Node::Daemon::~Daemon() {
  wiring.reset();
  executor.End();
}

daemon::Config Node::Config() const {
  daemon::Config config;
  config.node = NodeName(number_);
  config.listen = ManagementAddress(number_);
  config.run_dir = "/run";
  config.state_dir = "/state";
  for (int rail = 0; rail < rails_; ++rail) {
    daemon::NicSpec nic;
    nic.name = nic_name(rail);
    nic.interface = Interface(rail);
    config.nics.push_back(std::move(nic));
  }
  return config;
}

daemon::World Node::WorldOf(Daemon* daemon) {
  daemon::World world;
  world.core = &daemon->executor;
  world.disk = &daemon->executor;
  world.boot_ns = [this] { return clock_.At(around_.timeline->now()); };
  world.realtime_ns = [this] { return kEpochNs + clock_.At(around_.timeline->now()) - clock_.ahead + clock_ahead_; };
  world.links = &daemon->links;
  world.sysfs = &sysfs_;
  world.datagrams = &daemon->datagrams;
  world.fabric = &daemon->fabric;
  world.topology = &topology_;
  world.addresses = &daemon->addresses;
  world.files = &daemon->files;
  world.page = &daemon->page;
  world.jobs = daemon->attach != nullptr ? static_cast<daemon::AttachServer*>(daemon->attach.get()) : &daemon->calls;
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
  if (around_.short_histories) world.events_max = world.evidence_max = kShortHistory;
  return world;
}

void Node::Start() {
  if (running()) return;
  const sim::Charge charge(sim::Account::kDaemons);
  around_.watch->Forget(number_);
  daemon_ = std::make_unique<Daemon>(this);
  daemon_->peers.Serve(&daemon_->wiring->backend());
  R2CC_CHECK(daemon_->wiring->Start().ok());
  daemon_->wiring->SetPeerAddress(ManagementAddress(number_));
  for (int rail = 0; rail < rails_; ++rail) around_.watch->OnLink(number_, rail, links_up_[static_cast<size_t>(rail)]);
  AttachJobs();
}

void Node::End(bool killed) {
  if (!running()) return;
  if (killed) {
    daemon_->files.Close();
    if (daemon_->attach != nullptr) daemon_->attach->LeaveSocket();
  } else {
    daemon_->wiring->EndOnPurpose();
  }
  daemon_.reset();
  // What waited for it finds nobody.
  Continue();
  around_.rings_jobs(number_);
}

void Node::Pause() {
  if (!running()) return;
  daemon_->executor.Stop();
  around_.network->SetPaused(number_, true);
  for (int rail = 0; rail < rails_; ++rail) around_.datagrams->Freeze(Network::RailAddress(number_, rail));
}

void Node::Continue() {
  around_.network->SetPaused(number_, false);
  for (int rail = 0; rail < rails_; ++rail) around_.datagrams->Thaw(Network::RailAddress(number_, rail));
  if (running()) daemon_->executor.Continue();
}

void Node::LookSoon() {
  if (running()) daemon_->executor.LookSoon();
}

void Node::Ask(const v1::NicActionRequest& request, daemon::Answer<v1::NicActionReply> done) const {
  daemon_->wiring->backend().Ask(request, {.kind = daemon::Caller::Kind::kLocal, .pid = 1}, std::move(done));
}

void Node::AskJobs(bool ended, std::function<void(const v1::ListJobsReply&)> done) const {
  v1::ListJobsRequest request;
  request.set_all_ended(ended);
  daemon_->wiring->backend().Ask(request, daemon::Caller(), [done = std::move(done)](const absl::StatusOr<v1::ListJobsReply>& reply) {
    if (reply.ok()) done(*reply);
  });
}

void Node::Reimage(Nanos clock_ahead) {
  R2CC_CHECK(!running());
  files_.Lose();
  StepClock(clock_ahead);
  ++boots_;
}

plan::AttachRequest Node::RequestOf(const std::string& job) const {
  plan::AttachRequest request{};
  request.magic = plan::kAttachMagic;
  request.version = plan::kAttachVersion;
  request.rail_count = static_cast<uint32_t>(rails_);
  plan::SetText(job, request.job);
  plan::SetText(Release(), request.release);
  for (int rail = 0; rail < rails_; ++rail) {
    plan::SetText(Interface(rail), request.rails[rail].name);
    plan::SetText(Network::RailAddress(number_, rail), request.rails[rail].address);
  }
  return request;
}

void Node::AttachJobs() {
  for (size_t job = 0; job < jobs_.size(); ++job) {
    const daemon::JobId id = job + 1;
    daemon_->calls.Attach(id, 1000 + static_cast<int32_t>(job), RequestOf("train"));
    std::vector<plan::EvidenceRecord> records;
    for (const int peer : jobs_[job]) {
      for (int rail = 0; rail < rails_; ++rail) {
        plan::EvidenceRecord& record = records.emplace_back();
        record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkUp);
        record.time_ns = daemon_->executor.Now();
        record.local_rail = static_cast<uint32_t>(rail);
        plan::SetText(NodeName(peer), record.peer_node);
        plan::SetText(RailName(rail), record.peer_nic);
      }
    }
    daemon_->calls.Deliver(id, records);
  }
}

void Node::SetLink(int rail, bool up) {
  links_up_[static_cast<size_t>(rail)] = up;
  if (!running()) return;
  daemon_->executor.Post([this, rail, up] {
    if (up || bug != Bug::kLinkEventLost) daemon_->links.Set(Interface(rail), up);
    around_.watch->OnLink(number_, rail, up);
  });
}

absl::Status Node::Page::Publish(const plan::Plan& plan, const std::string& own_node, Nanos now) {
  node_->around_.watch->OnPage(node_->number_, plan, node_->around_.timeline->now());
  return shared_ == nullptr ? absl::OkStatus() : shared_->Publish(plan, own_node, now);
}

absl::Status Node::Attach::Start(Callbacks callbacks) {
  if (bug == Bug::kReportsDecide)
    callbacks.on_evidence = [this, next = callbacks.on_evidence](auto id, const auto& records, uint64_t dropped) {
      for (const plan::EvidenceRecord& record : records)
        if (record.kind == static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkLost))
          node_->daemon_->links.Set(Interface(static_cast<int>(record.local_rail)), false);
      next(id, records, dropped);
    };
  if (bug == Bug::kEndUnheard) callbacks.on_end = [](daemon::JobId) {};
  if (bug == Bug::kRunsMixed)
    callbacks.on_attach = [this, next = callbacks.on_attach](auto id, const auto& process, plan::AttachRequest request) {
      request.process_id = node_->first_process_.emplace(request.job, request.process_id).first->second;
      return next(id, process, request);
    };
  if (bug == Bug::kEvidenceKept)
    callbacks.on_evidence = [next = callbacks.on_evidence, kept = std::make_shared<std::vector<plan::EvidenceRecord>>()](
                                auto id, const auto& records, uint64_t dropped) {
      kept->insert(kept->end(), records.begin(), records.end());
      next(id, records, dropped);
    };
  return server_.Start(std::move(callbacks));
}

void Node::WatchedStore::Put(const std::string& key, const std::string& value, int64_t lease_ms) {
  v1::NodeView view;
  if (view.ParseFromString(value)) node_->around_.watch->OnView(view, node_->number_, node_->around_.timeline->now());
  client_.Put(key, value, lease_ms);
}

}  // namespace r2cc::cluster
