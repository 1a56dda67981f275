// One machine of the cluster, and its daemon: the production Wiring over fakes.
#ifndef R2CC_TESTS_CLUSTER_NODE_H_
#define R2CC_TESTS_CLUSTER_NODE_H_

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "daemon/io/fake_attach_server.h"
#include "daemon/io/fake_files.h"
#include "daemon/io/page_sink.h"
#include "daemon/io/socket_attach_server.h"
#include "daemon/wiring.h"
#include "health/io/fake_datagram.h"
#include "health/io/fake_link_watch.h"
#include "health/io/fake_mad_fabric.h"
#include "health/io/fake_sysfs.h"
#include "tests/cluster/bug.h"
#include "tests/cluster/peers.h"
#include "tests/cluster/store.h"
#include "tests/cluster/watch.h"
#include "tests/sim/charge.h"

namespace r2cc::cluster {

// What all nodes share. All outlive them.
struct Surroundings {
  sim::Timeline* timeline;
  Network* network;
  health::FakeDatagramNet* datagrams;
  PeerDirectory* directory;
  StoreServer* store;
  Observer* watch;
  // The prefix of the paths at which jobs attach, by the sockets and in the memory that they share with r2ccd; empty: jobs are AddJob()'s.
  std::string attach;
  // The clock of each node, which its jobs share; empty: one that nobody else knows.
  std::vector<sim::MachineClock> clocks;
  bool twins = false;            // rails 0 and 1 have names of one hash
  bool short_histories = false;  // daemons keep few events and little evidence, as World::events_max and evidence_max say
  // The daemon of a node has written to the sockets of its jobs.
  std::function<void(int node)> rings_jobs = [](int) {};
};

// A job as one node's daemon knows it: the nodes that it talks to from here, over all rails.
using JobPeers = std::vector<int>;

class Node {
 public:
  Node(int number, int rails, Surroundings around);
  ~Node() { End(); }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Starts the daemon; its jobs attach at once.
  void Start();
  // Ends it on purpose, as systemd does; or it is killed: what it would have written then is lost. Its kernel closes what it had open.
  void End(bool killed = true);
  // SIGSTOP and SIGCONT.
  void Pause();
  void Continue();
  // Some job has written to its daemon's socket, or closed it.
  void LookSoon();
  // Where jobs attach.
  std::string attach_path() const { return around_.attach + std::to_string(number_); }
  // The request of a process with all rails.
  plan::AttachRequest RequestOf(const std::string& job) const;
  // The machine is imaged anew: its files are gone, and its clock is `ahead` of what it was.
  void Reimage(Nanos clock_ahead);
  // The machine's time of day jumps.
  void StepClock(Nanos by) { clock_ahead_ += by; }
  bool running() const { return daemon_ != nullptr; }
  int rails() const { return rails_; }
  std::string nic_name(int rail) const { return around_.twins && rail < 2 ? kTwins[rail] : RailName(rail); }

  void AddJob(JobPeers peers) { jobs_.push_back(std::move(peers)); }
  const std::vector<JobPeers>& jobs() const { return jobs_; }
  // What the kernel says of a NIC's link.
  void SetLink(int rail, bool up);

  // Hands the alarms of its status to `done`, a moment later.
  void AskAlarms(std::function<void(std::vector<std::string>)> done) const {
    daemon_->wiring->backend().Ask(v1::StatusRequest(), daemon::Caller(),
                                   [done = std::move(done)](const absl::StatusOr<v1::StatusReply>& reply) {
                                     if (reply.ok()) done({reply->alarms().begin(), reply->alarms().end()});
                                   });
  }

  // An operator's request to this daemon, about a NIC of any node; `done` gets the answer. REQUIRES: running().
  void Ask(const v1::NicActionRequest& request, daemon::Answer<v1::NicActionReply> done) const;
  // The processes that it has in its list, or had (`ended`), a moment later. REQUIRES: running().
  void AskJobs(bool ended, std::function<void(const v1::ListJobsReply&)> done) const;
  // What they take of the places for all users.
  size_t places() const { return daemon_ == nullptr || daemon_->attach == nullptr ? 0 : daemon_->attach->places(); }
  daemon::FakeFiles& files() { return files_; }

  // Streams with other daemons.
  size_t connections() const { return daemon_ == nullptr ? 0 : daemon_->peers.connections(); }

 private:
  class Page final : public daemon::PageSink {
   public:
    // `shared`: null if no job looks at it.
    Page(const Node* node, std::unique_ptr<daemon::SharedPage> shared) : node_(node), shared_(std::move(shared)) {}
    absl::Status Publish(const plan::Plan& plan, const std::string& own_node, Nanos now) override;
    std::vector<plan::PageConflict> conflicts() const override { return {}; }
    void Heartbeat(Nanos now) override {
      if (shared_ != nullptr) shared_->Heartbeat(now);
    }
    void EndOnPurpose(Nanos now) override {
      if (shared_ != nullptr) shared_->EndOnPurpose(now);
    }
    int fd() const { return shared_->fd(); }

   private:
    const Node* const node_;
    const std::unique_ptr<daemon::SharedPage> shared_;
  };
  // The shipped server of a socket, whose daemon has no thread that waits for it.
  class Attach final : public daemon::AttachServer {
   public:
    Attach(const Node* node, SimExecutor* executor, int page_fd) : node_(node), server_(executor, node->attach_path(), page_fd, {}) {}
    absl::Status Start(Callbacks callbacks) override;
    void RingPageDoorbell() override {
      server_.RingPageDoorbell();
      node_->around_.rings_jobs(node_->number_);
    }
    void DrainRings() override { server_.DrainRings(); }
    void SetAccess(const daemon::AttachAccess& access) override { server_.SetAccess(access); }
    // Jobs name their rails.
    void OfferRails(const RailsFile&) override {}
    void Stop() override { server_.Stop(); }
    uint64_t refused() const override { return server_.refused(); }
    size_t places() const { return server_.places(); }
    // A daemon that is killed leaves the socket's file.
    void LeaveSocket() { server_.LeaveSocket(); }

   private:
    const Node* const node_;
    daemon::SocketAttachServer server_;
  };
  // The files of one run of the daemon: after a kill it writes nothing any more.
  class RunFiles final : public daemon::Files {
   public:
    explicit RunFiles(daemon::FakeFiles* files) : files_(files) {}
    void Close() { closed_ = true; }
    absl::StatusOr<std::string> Read(const std::string& path) override { return files_->Read(path); }
    absl::Status WriteAtomically(const std::string& path, const std::string& contents) override {
      const sim::Charge charge(sim::Account::kSimulation);
      return closed_ || bug == Bug::kSettingForgotten ? absl::OkStatus() : files_->WriteAtomically(path, contents);
    }
    absl::Status Append(const std::string& path, const std::string& text) override {
      const sim::Charge charge(sim::Account::kSimulation);
      return closed_ ? absl::OkStatus() : files_->Append(path, text);
    }
    absl::Status Rename(const std::string& from, const std::string& to) override {
      return closed_ ? absl::OkStatus() : files_->Rename(from, to);
    }

   private:
    daemon::FakeFiles* const files_;
    bool closed_ = false;
  };
  // Sees what the daemon says of its node on its way to the store.
  class WatchedStore final : public daemon::Store {
   public:
    WatchedStore(const Node* node, SimExecutor* executor)
        : node_(node), client_(node->number_, executor, node->around_.network, node->around_.store) {}
    void Start(const std::string& prefix, Callbacks callbacks) override { client_.Start(prefix, std::move(callbacks)); }
    void Put(const std::string& key, const std::string& value, int64_t lease_ms) override;
    void Stop() override { client_.Stop(); }

   private:
    const Node* const node_;
    StoreClient client_;
  };
  struct Daemon {
    explicit Daemon(Node* node);
    ~Daemon();
    SimExecutor executor;
    health::FakeLinkWatch links;
    health::FakeDatagrams datagrams;
    health::FakeMadFabric fabric;
    daemon::FakeAddresses addresses;
    RunFiles files;
    Page page;
    std::unique_ptr<Attach> attach;  // null: jobs are function calls
    daemon::FakeAttachServer calls;
    Peers peers;
    WatchedStore store;
    std::unique_ptr<daemon::Wiring> wiring;
  };
  daemon::World WorldOf(Daemon* daemon);
  daemon::Config Config() const;
  void AttachJobs();

  const int number_;
  const int rails_;
  const Surroundings around_;
  const sim::MachineClock clock_;
  Nanos clock_ahead_ = 0;
  int boots_ = 1;
  std::vector<JobPeers> jobs_;
  std::vector<bool> links_up_;
  daemon::FakeFiles files_;
  health::FakeSysfs sysfs_;
  const health::FakeTopology topology_;
  std::unique_ptr<Daemon> daemon_;
  mutable std::map<std::string, uint64_t> first_process_;  // planted: by job
};

}  // namespace r2cc::cluster

#endif  // R2CC_TESTS_CLUSTER_NODE_H_
