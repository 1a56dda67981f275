// Real daemons with a real etcd: it is there, it dies, it comes back; a member of it dies; it forgets; and one that refuses.
#include <gmock/gmock.h>

#include "daemon/program/r2ccd_rig.h"
#include "daemon/rpc/etcd_process.h"
#include "proto/etcd.grpc.pb.h"

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;

class R2ccdEtcdTest : public R2ccdTest {
 protected:
  void SetUp() override {
    if (access(kEtcdBinary, X_OK) != 0) GTEST_SKIP() << "needs etcd: there is no " << kEtcdBinary << " (bazelw installs it)";
    R2ccdTest::SetUp();
    etcd_ = std::make_unique<EtcdProcess>(folder_);
    for (int node = 0; node < kNodes; ++node) UseEtcd(node, etcd_->endpoint(), /*with_peers=*/true);
  }

  void UseEtcd(int node, const std::string& endpoint, bool with_peers) {
    std::istringstream lines(ReadFile(ConfigFile(node)));
    std::ofstream file(ConfigFile(node) + ".new");
    for (std::string line; std::getline(lines, line);)
      if (!line.starts_with("store") && (with_peers || !line.starts_with("peers"))) file << line << "\n";
    file << "store { etcd_endpoints: \"" << endpoint << "\" }\n";
    file.close();
    std::filesystem::rename(ConfigFile(node) + ".new", ConfigFile(node));
  }
  bool AwaitStore(int node, const std::string& beginning) {
    return WaitUntil([&] { return Status(node).store().starts_with(beginning); });
  }

  etcdserverpb::KV::Stub* Kv(const std::string& endpoint) {
    auto& kv = kvs_[endpoint];
    if (kv == nullptr) kv = etcdserverpb::KV::NewStub(grpc::CreateChannel(endpoint, grpc::InsecureChannelCredentials()));
    return kv.get();
  }
  // What `node`'s daemon has put; empty if there is nothing.
  etcdserverpb::KeyValue Entry(const std::string& endpoint, const std::string& node) {
    grpc::ClientContext context;
    etcdserverpb::RangeRequest request;
    request.set_key("/r2cc/nodes/" + node);
    etcdserverpb::RangeResponse reply;
    const bool found = Kv(endpoint)->Range(&context, request, &reply).ok() && reply.kvs_size() == 1;
    return found ? reply.kvs(0) : etcdserverpb::KeyValue();
  }
  int64_t LeaseOf(const std::string& endpoint, const std::string& node) { return Entry(endpoint, node).lease(); }
  bool LeaseIsValid(const std::string& endpoint, int64_t lease) { return Put(endpoint, "/other", "x", lease).ok(); }
  grpc::Status Put(const std::string& endpoint, const std::string& key, const std::string& value, int64_t lease = 0,
                   etcdserverpb::PutResponse* answer = nullptr) {
    grpc::ClientContext context;
    etcdserverpb::PutRequest request;
    request.set_key(key);
    request.set_value(value);
    request.set_lease(lease);
    etcdserverpb::PutResponse ignored;
    return Kv(endpoint)->Put(&context, request, answer == nullptr ? &ignored : answer);
  }

  std::unique_ptr<EtcdProcess> etcd_;
  std::map<std::string, std::unique_ptr<etcdserverpb::KV::Stub>> kvs_;  // by endpoint
};

TEST_F(R2ccdEtcdTest, ItsEndChangesNothingForJobsAndItsReturnHealsItself) {
  StartAll();
  for (int node = 0; node < kNodes; ++node) ASSERT_TRUE(AwaitStore(node, "connected to etcd at " + etcd_->endpoint()));
  const auto job = Attach(0);
  ASSERT_NE(job->AwaitState("n2", "rail1", plan::PlannedState::kHealthy), 0);

  etcd_->Kill();
  for (int node = 0; node < kNodes; ++node) ASSERT_TRUE(AwaitStore(node, "lost: etcd at " + etcd_->endpoint())) << Status(node).store();
  EXPECT_EQ(job->Weight("n1", "rail0"), 1000) << "the last view stays";
  const Nanos before = Now();
  ASSERT_EQ(Act(1, "n1", "rail0", v1::FAIL), "");
  const Nanos reported = job->AwaitState("n1", "rail0", plan::PlannedState::kFailed);
  ASSERT_NE(reported, 0);
  EXPECT_LT(reported - before, kVerdictMax) << "direct push goes on";

  etcd_->Start("data");
  for (int node = 0; node < kNodes; ++node) EXPECT_TRUE(AwaitStore(node, "connected to etcd at ")) << Status(node).store();
}

// One that knows no peers learns of all through etcd alone, and they of it.
TEST_F(R2ccdEtcdTest, ANodeWithoutPeersIsKnownThroughEtcd) {
  UseEtcd(2, etcd_->endpoint(), /*with_peers=*/false);
  for (int node = 0; node < kNodes; ++node) StartDaemon(node);
  const auto job = Attach(2);
  ASSERT_NE(job->AwaitState("n0", "rail0", plan::PlannedState::kHealthy), 0);
  ASSERT_EQ(Act(0, "n0", "rail0", v1::FAIL), "");
  EXPECT_NE(job->AwaitState("n0", "rail0", plan::PlannedState::kFailed), 0);
  const auto other = Attach(0);
  ASSERT_EQ(Act(2, "n2", "rail1", v1::FAIL), "");
  EXPECT_NE(other->AwaitState("n2", "rail1", plan::PlannedState::kFailed), 0);
}

// Without the direct way: what they know of each other comes through etcd.
TEST_F(R2ccdEtcdTest, AMemberThatDiesIsLeftForTheNextAndNobodyIsTakenForGone) {
  EtcdCluster cluster(folder_);
  // They have a leader.
  ASSERT_TRUE(WaitUntil([&] { return Put(cluster.member(0).endpoint(), "/other", "x").ok(); }));
  std::string endpoints;
  for (const std::string& endpoint : cluster.endpoints()) endpoints += (endpoints.empty() ? "" : "\" etcd_endpoints: \"") + endpoint;
  for (int node = 0; node < kNodes; ++node) {
    UseEtcd(node, endpoints, /*with_peers=*/false);
    StartDaemon(node);
  }
  const std::string used = cluster.member(0).endpoint();
  for (int node = 0; node < kNodes; ++node) ASSERT_TRUE(AwaitStore(node, "connected to etcd at " + used)) << Status(node).store();
  const auto job = Attach(2);
  ASSERT_NE(job->AwaitState("n0", "rail0", plan::PlannedState::kHealthy), 0);
  const int64_t lease = LeaseOf(cluster.member(1).endpoint(), "n0");
  ASSERT_NE(lease, 0);

  cluster.member(0).Kill();
  for (int node = 0; node < kNodes; ++node)
    EXPECT_TRUE(WaitUntil([&] {
      const std::string store = Status(node).store();
      return store.starts_with("connected to etcd at ") && store.find(used) == std::string::npos;
    })) << Status(node).store();
  ASSERT_EQ(Act(0, "n0", "rail0", v1::FAIL), "");
  EXPECT_NE(job->AwaitState("n0", "rail0", plan::PlannedState::kFailed), 0) << "the watch goes on";
  // The entry hangs on a lease of now, which outlives the one before.
  EXPECT_TRUE(WaitUntil([&] { return LeaseOf(cluster.member(1).endpoint(), "n0") != lease; }));
  EXPECT_TRUE(WaitUntil([&] { return !LeaseIsValid(cluster.member(1).endpoint(), lease); }));
  EXPECT_NE(LeaseOf(cluster.member(1).endpoint(), "n0"), 0);
  const v1::StatusReply status = Status(2);
  for (const auto& node : status.nodes()) EXPECT_NE(node.word(), v1::NODE_UNREACHABLE) << node.node();
}

// A daemon that stands still until its lease is over, while others change, and what they changed is compacted: there is no history to go
// on from.
TEST_F(R2ccdEtcdTest, AWatchThatACompactionOvertookIsBegunAgainAndLosesNothing) {
  for (int node = 0; node < kNodes; ++node) {
    UseEtcd(node, etcd_->endpoint(), /*with_peers=*/false);
    StartDaemon(node);
  }
  for (int node = 0; node < kNodes; ++node) ASSERT_TRUE(AwaitStore(node, "connected to etcd at "));
  const auto job = Attach(2);
  ASSERT_NE(job->AwaitState("n0", "rail0", plan::PlannedState::kHealthy), 0);
  ASSERT_NE(job->AwaitState("n1", "rail1", plan::PlannedState::kHealthy), 0);
  ASSERT_TRUE(WaitUntil([&] { return LeaseOf(etcd_->endpoint(), "n2") != 0; }));

  daemons_[2]->Signal(SIGSTOP);
  ASSERT_EQ(Act(0, "n0", "rail0", v1::FAIL), "");
  ASSERT_EQ(Act(1, "n1", "rail1", v1::DRAIN), "");
  ASSERT_TRUE(WaitUntil([&] { return LeaseOf(etcd_->endpoint(), "n2") == 0; })) << "its entry goes with its lease";
  etcdserverpb::PutResponse last;
  ASSERT_TRUE(Put(etcd_->endpoint(), "/other", "x", /*lease=*/0, &last).ok());
  {
    grpc::ClientContext context;
    etcdserverpb::CompactionRequest request;
    request.set_revision(last.header().revision());
    etcdserverpb::CompactionResponse reply;
    ASSERT_TRUE(Kv(etcd_->endpoint())->Compact(&context, request, &reply).ok());
  }
  daemons_[2]->Signal(SIGCONT);
  EXPECT_NE(job->AwaitState("n0", "rail0", plan::PlannedState::kFailed), 0);
  EXPECT_NE(job->AwaitState("n1", "rail1", plan::PlannedState::kDrained), 0);
  EXPECT_TRUE(WaitUntil([&] { return LeaseOf(etcd_->endpoint(), "n2") != 0; })) << "and the others hear of it again";
  EXPECT_TRUE(AwaitStore(2, "connected to etcd at ")) << Status(2).store();
  ASSERT_EQ(Act(0, "n0", "rail0", v1::RESTORE), "");
  EXPECT_NE(job->AwaitState("n0", "rail0", plan::PlannedState::kHealthy), 0) << "it watches";
}

// Nodes that share a job talk directly, though no configuration names the other: what happens while etcd is away is known all the same.
TEST_F(R2ccdEtcdTest, NodesOfAJobCallEachOther) {
  for (int node = 0; node < kNodes; ++node) UseEtcd(node, etcd_->endpoint(), /*with_peers=*/false);
  for (int node = 0; node < kNodes; ++node) StartDaemon(node);
  auto job = Attach(0);
  ASSERT_NE(job->AwaitState("n1", "rail0", plan::PlannedState::kHealthy), 0);
  EXPECT_EQ(Status(0).peers_size(), 0);
  plan::EvidenceRecord opened{};
  opened.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kFlowOpened);
  opened.time_ns = Now();
  plan::SetText("n1", opened.peer_node);
  ASSERT_TRUE(job->ring().Put(opened));
  job->RingEvidence();
  ASSERT_TRUE(WaitUntil([&] { return Status(0).peers_size() == 1 && Status(0).peers(0).connected(); })) << Status(0).DebugString();

  etcd_->Kill();
  for (int node = 0; node < 2; ++node) ASSERT_TRUE(AwaitStore(node, "lost")) << Status(node).store();
  ASSERT_EQ(Act(1, "n1", "rail0", v1::FAIL), "");
  EXPECT_NE(job->AwaitState("n1", "rail0", plan::PlannedState::kFailed), 0);
  job.reset();
  EXPECT_TRUE(WaitUntil([&] { return Status(0).peers_size() == 0; })) << Status(0).DebugString();
}

// No configuration names a peer, no job has called one: whoever is asked asks the NIC's own daemon, which judges and tells who it was.
TEST_F(R2ccdEtcdTest, AnyDaemonForwardsForAnyNode) {
  for (int node = 0; node < kNodes; ++node) UseEtcd(node, etcd_->endpoint(), /*with_peers=*/false);
  for (int node = 0; node < kNodes; ++node) StartDaemon(node);
  for (int node = 0; node < kNodes; ++node)
    ASSERT_TRUE(WaitUntil([&] { return Status(node).nodes_size() == kNodes; })) << Status(node).DebugString();
  EXPECT_EQ(Status(0).peers_size(), 0);
  for (const auto& [asked, node] : {std::pair(0, 1), {1, 0}, {2, 0}, {0, 2}}) {
    SCOPED_TRACE(testing::Message() << Node(node) << " through " << Node(asked));
    ASSERT_EQ(Act(asked, Node(node), "rail0", v1::FAIL), "");
    const std::vector<v1::Event> events = Events(node, "operator");
    ASSERT_FALSE(events.empty());
    EXPECT_THAT(events.back().message(), HasSubstr("on " + Node(asked))) << "who asked, and where";
    EXPECT_THAT(events.back().message(), HasSubstr("uid " + std::to_string(getuid())));
    grpc::ClientContext context;
    v1::ExplainNicRequest request;
    request.set_node(Node(node));
    request.set_nic("rail0");
    v1::ExplainNicReply reply;
    ASSERT_TRUE(Control(asked)->ExplainNic(&context, request, &reply).ok());
    EXPECT_EQ(reply.verdict(), "operator") << "its own daemon knows";
    ASSERT_EQ(Act(asked, Node(node), "rail0", v1::RESTORE), "");
  }
  EXPECT_THAT(Act(0, "n9", "rail0", v1::FAIL), HasSubstr("there is no node 'n9'; the nodes are n0 n1 n2"));
  EXPECT_EQ(Status(0).peers_size(), 0) << "a question makes no peer";
  daemons_[1]->Signal(SIGKILL);
  daemons_[1]->Wait();
  EXPECT_EQ(Act(0, "n1", "rail0", v1::FAIL), "node n1 (127.0.0.1:" + std::to_string(ports_[1]) + ") cannot be reached: Connection refused");
}

TEST_F(R2ccdEtcdTest, ARefusingEtcdIsOneClearLineAndDisturbsNobody) {
  const std::string nobody = "127.0.0.1:" + std::to_string(FreePort());
  for (int node = 0; node < kNodes; ++node) UseEtcd(node, nobody, /*with_peers=*/true);
  StartAll();
  ASSERT_TRUE(AwaitStore(0, "lost"));
  EXPECT_EQ(Status(0).store(), "lost: etcd at " + nobody + ": Connection refused");
  const auto job = Attach(0);
  EXPECT_NE(job->AwaitState("n1", "rail0", plan::PlannedState::kHealthy), 0);
  EXPECT_THAT(daemons_[0]->log(), HasSubstr("the connections to etcd are not encrypted"));
  daemons_[0]->Signal(SIGTERM);
  EXPECT_EQ(daemons_[0]->Wait(), 0);
}

}  // namespace
}  // namespace r2cc::daemon
