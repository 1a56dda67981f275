// A writer of etcd may write under every key: that alone makes it no other node.
#include <gmock/gmock.h>

#include <cstdio>
#include <cstdlib>

#include "daemon/core/convert.h"
#include "daemon/http/http_client_rig.h"
#include "daemon/program/r2ccd_trust_rig.h"
#include "daemon/rpc/etcd_process.h"
#include "daemon/trust/signed_store.h"
#include "proto/etcd.grpc.pb.h"

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;

class EtcdTrustTest : public TrustTest {
 protected:
  void SetUp() override {
    if (access(kEtcdBinary, X_OK) != 0) GTEST_SKIP() << "needs etcd: there is no " << kEtcdBinary << " (bazelw installs it)";
    TrustTest::SetUp();
    etcd_ = std::make_unique<EtcdProcess>(folder_);
    kv_ = etcdserverpb::KV::NewStub(grpc::CreateChannel(etcd_->endpoint(), grpc::InsecureChannelCredentials()));
    for (int node = 0; node < nodes_; ++node)
      std::ofstream(ConfigFile(node)) << "node: \"" << Node(node) << "\"\nlisten: \"127.0.0.1:" << ports_[node]
                                      << "\"\nnics { name: \"rail0\" address: \"" << Address(node, 0) << "\" }\nstore { etcd_endpoints: \""
                                      << etcd_->endpoint() << "\" }\n"
                                      << Tls(node);
  }

  static std::string Key(const std::string& node) { return "/r2cc/nodes/" + node; }
  // As any program with access to etcd does it.
  void Write(const std::string& key, const std::string& value) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    etcdserverpb::PutRequest request;
    request.set_key(key);
    request.set_value(value);
    etcdserverpb::PutResponse reply;
    const grpc::Status status = kv_->Put(&context, request, &reply);
    ASSERT_TRUE(status.ok()) << status.error_message();
  }
  std::string Stored(const std::string& key) {
    grpc::ClientContext context;
    etcdserverpb::RangeRequest request;
    request.set_key(key);
    etcdserverpb::RangeResponse reply;
    return kv_->Range(&context, request, &reply).ok() && reply.kvs_size() == 1 ? reply.kvs(0).value() : "";
  }
  // A view that states that the NICs of `node` are dead, signed by `writer`'s key as if it were stored under `key`.
  std::string Forgery(const std::string& node, const CertificateAndKey& writer, const std::string& key) {
    v1::NodeView view = Forged(node);
    view.set_protocol(kPeerProtocol);
    v1::SignedValue stored;
    stored.set_value(view.SerializeAsString());
    stored.set_certificate(writer.certificate);
    const KeyPtr writers_key = *ParseKey(writer.key);
    stored.set_signature(*Sign(writers_key.get(), SignedText(key, stored.value())));
    return stored.SerializeAsString();
  }
  // The owner of the certificate that is stored with the value of `key`.
  std::string WriterOf(const std::string& key) {
    v1::SignedValue stored;
    if (!stored.ParseFromString(Stored(key))) return "";
    const auto certificate = Certificate::Parse(stored.certificate());
    return certificate.ok() && certificate->identity().ok() ? certificate->identity()->name : "";
  }

  std::unique_ptr<EtcdProcess> etcd_;
  std::unique_ptr<etcdserverpb::KV::Stub> kv_;
};

TEST_F(EtcdTrustTest, AnotherNodesValidCertificateSpeaksForNobodyElse) {
  for (const int node : {0, 1}) StartDaemon(node);
  ASSERT_TRUE(WaitUntil([&] { return StateOf(0, "n1", "rail0") == v1::HEALTHY && StateOf(1, "n0", "rail0") == v1::HEALTHY; }))
      << Status(0).DebugString();
  const auto job = Attach(0);
  ASSERT_NE(job->AwaitState("n1", "rail0", plan::PlannedState::kHealthy), 0);

  // Valid, of this cluster, and of a node that has no daemon to be disturbed.
  const CertificateAndKey n2 = *Issue(ca_, {Identity::Kind::kNode, "n2"}, ForDays(NowS(), 10));
  Write(Key("n1"), Forgery("n1", n2, Key("n1")));
  std::string last;
  ASSERT_TRUE(WaitUntil([&] { return Refused(0, "other-node", &last) >= 1; })) << Status(0).DebugString();
  EXPECT_EQ(last, "node n2") << "the caller";
  EXPECT_THAT(daemons_[0]->log(), HasSubstr("refused: the store's /r2cc/nodes/n1: node n2 wrote it who=\"node n2\" listener=store"));
  EXPECT_EQ(StateOf(0, "n1", "rail0"), v1::HEALTHY);
  EXPECT_EQ(job->Weight("n1", "rail0"), 1000);
  // The victim gets it too, and puts its own value back: late comers read that.
  EXPECT_TRUE(WaitUntil([&] { return Refused(1, "other-node") >= 1; }));
  EXPECT_TRUE(WaitUntil([&] { return WriterOf(Key("n1")) == "n1"; })) << WriterOf(Key("n1"));
  EXPECT_EQ(StateOf(0, "n1", "rail0"), v1::HEALTHY);

  // Its own good word under the victim's key, and the victim's key over nothing.
  Write(Key("n1"), Forgery("n1", n2, Key("n2")));
  EXPECT_TRUE(WaitUntil([&] { return Refused(0, "not-proven") >= 1; })) << "signed for another key";
  Write(Key("n1"), "garbage");
  EXPECT_TRUE(WaitUntil([&] { return Refused(0, "garbled") >= 1; }));
  EXPECT_EQ(StateOf(0, "n1", "rail0"), v1::HEALTHY);
  // Its own views are believed: the refusals have to do with the name.
  Write(Key("n2"), Forgery("n2", n2, Key("n2")));
  EXPECT_TRUE(WaitUntil([&] { return StateOf(0, "n2", "rail0") == v1::FAILED; })) << Status(0).DebugString();
  // A job attached before and after sees the truth.
  EXPECT_EQ(job->Weight("n1", "rail0"), 1000);
}

// A copy of n1's view, from when its NIC had less weight, is put back, without a lease, when n1 has gone. A daemon whose clock is an hour
// later, the only thing that an hour changes, does not believe it.
TEST_F(EtcdTrustTest, AnOldReportOfANodeThatIsGoneExpires) {
  for (const int node : {0, 1}) StartDaemon(node);
  ASSERT_TRUE(WaitUntil([&] { return StateOf(0, "n1", "rail0") == v1::HEALTHY; })) << Status(0).DebugString();
  const std::string before = Stored(Key("n1"));
  ASSERT_EQ(Act(1, "n1", "rail0", v1::SET_WEIGHT, 300), "");
  ASSERT_TRUE(WaitUntil([&] { return Stored(Key("n1")) != before; }));
  const std::string copy = Stored(Key("n1"));
  ASSERT_EQ(Act(1, "n1", "rail0", v1::SET_WEIGHT, 1000), "");
  daemons_[1]->Signal(SIGTERM);
  ASSERT_EQ(daemons_[1]->Wait(), 0);
  Write(Key("n1"), copy);
  flags_ = {"--wall_clock_offset_s", "3600"};
  StartDaemon(2);
  ASSERT_TRUE(WaitUntil([&] { return Refused(2, "too-old") >= 1; })) << Status(2).DebugString();
  EXPECT_EQ(StateOf(2, "n1", "rail0"), v1::NIC_STATE_UNSPECIFIED) << "a daemon that starts later knows nothing of it";
}

// 256 nodes whose jobs talk all to all: each has 8 NICs and 1,016 active pairs, 26 KB of them.
TEST_F(EtcdTrustTest, AFreshDaemonKnowsALargeClusterWithinSeconds) {
  constexpr int kOthers = 255;
  const auto name = [](int node) { return "far" + std::to_string(node); };
  size_t bytes = 0;
  for (int node = 0; node < kOthers; ++node) {
    v1::NodeView view = Forged(name(node));
    view.set_protocol(kPeerProtocol);
    view.set_word(v1::NODE_HEALTHY);
    view.clear_nics();
    for (int nic = 0; nic < 8; ++nic) {
      v1::NicView* const one = view.add_nics();
      one->set_name("rail" + std::to_string(nic));
      one->set_state(v1::HEALTHY);
      one->set_operator_weight_permille(1000);
      for (int peer = 0; peer < 127; ++peer) {
        v1::RailPair* const pair = view.add_pairs();
        pair->set_nic("rail" + std::to_string(nic));
        pair->set_peer_node(name((node + 1 + peer) % kOthers));
        pair->set_peer_nic("rail" + std::to_string(nic));
      }
    }
    ASSERT_EQ(view.pairs_size(), 1016);
    const CertificateAndKey own = *Issue(ca_, {Identity::Kind::kNode, name(node)}, ForDays(NowS(), 10));
    v1::SignedValue stored;
    stored.set_value(view.SerializeAsString());
    bytes += stored.value().size();
    stored.set_certificate(own.certificate);
    const KeyPtr key = *ParseKey(own.key);
    stored.set_signature(*Sign(key.get(), SignedText(Key(name(node)), stored.value())));
    Write(Key(name(node)), stored.SerializeAsString());
  }
  const int http = FreePort();
  std::ofstream(ConfigFile(0), std::ios::app) << "http { listen: \"127.0.0.1:" << http << "\" }\n";
  const Nanos begin = Now();
  StartDaemon(0);
  ASSERT_TRUE(WaitUntil([&] { return Status(0).nodes_size() == kOthers + 1; })) << Status(0).nodes_size();
  const auto job = Attach(0);
  EXPECT_NE(job->AwaitState(name(kOthers - 1), "rail7", plan::PlannedState::kHealthy), 0);
  const Nanos took = Now() - begin;
  HttpClient client(http);
  client.Send("GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const std::string metrics = client.Response();
  const size_t longest = metrics.find("\nr2cc_core_turn_longest_seconds ");
  ASSERT_NE(longest, std::string::npos);
  std::printf("%zu KB of views were known after %.2f s; longest turn of the core %.1f ms\n", bytes / 1000, took / 1e9,
              1000 * std::atof(metrics.c_str() + longest + 32));
  EXPECT_LT(took, 10 * kNanosPerSecond);
  EXPECT_THAT(metrics, HasSubstr("\nr2cc_core_long_turns_total 0\n"));
}

}  // namespace
}  // namespace r2cc::daemon
