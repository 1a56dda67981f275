// The owners of names under TLS: nodes with valid certificates that lie or have another's name, and certificates renewed under a load.
#include <gmock/gmock.h>

#include <atomic>
#include <cstdio>
#include <thread>

#include "daemon/core/convert.h"
#include "daemon/program/r2ccd_trust_rig.h"

namespace r2cc::daemon {
namespace {

using testing::HasSubstr;

class IdentityTest : public TrustTest {
 protected:
  CertificateAndKey CertificateOf(int node, int64_t until_s) {
    return *Issue(ca_, {Identity::Kind::kNode, Node(node)}, {NowS() - 100, until_s});
  }
  // The answer of the daemon of `node` to another node.
  v1::NodeView ViewOf(int node, const CertificateAndKey& asker) {
    grpc::ClientContext context;
    SetDeadline(&context);
    const auto stub = v1::Peer::NewStub(Channel(node, &asker));
    const auto stream = stub->Exchange(&context);
    v1::PushReply reply;
    EXPECT_TRUE(stream->Read(&reply));
    context.TryCancel();
    EXPECT_FALSE(stream->Finish().ok());
    return reply.view();
  }
  // Another daemon than that of node 1, with its name, and certificates in `tls`.
  std::vector<std::string> TwinArguments(const std::string& tls, int port) {
    std::string config = ReadFile(ConfigFile(1));
    const auto replace = [&config](const std::string& before, const std::string& after) {
      config.replace(config.find(before), before.size(), after);
    };
    replace("listen: \"127.0.0.1:" + std::to_string(ports_[1]) + "\"", "listen: \"127.0.0.1:" + std::to_string(port) + "\"");
    replace(TlsDirectory(1), tls);
    std::ofstream(folder_ + "/twin.conf") << config;
    return {"--config", folder_ + "/twin.conf", "--run_dir", folder_ + "/twin", "--state_dir", folder_ + "/twin-kept"};
  }
};

// Two nodes of the cluster, each with a certificate of its own, report silence of a NIC that answers every probe.
TEST_F(IdentityTest, ReportsOfTwoCertifiedNodesFailNoSoundNic) {
  UseTls();
  StartAll();
  AwaitAnswers(5);
  struct Liar {
    CertificateAndKey certificate;
    v1::NodeView view;
    std::unique_ptr<v1::Peer::Stub> stub;
    grpc::ClientContext context;
    std::unique_ptr<grpc::ClientReaderWriter<v1::PushRequest, v1::PushReply>> stream;
  };
  Liar liars[2];
  for (int i = 0; i < 2; ++i) {
    Liar& liar = liars[i];
    liar.certificate = CertificateOf(i + 1, NowS() + 1000);
    liar.view = ViewOf(i + 1, liar.certificate);
    EXPECT_EQ(liar.view.node(), Node(i + 1));
    liar.stub = v1::Peer::NewStub(Channel(0, &liar.certificate));
    liar.stream = liar.stub->Exchange(&liar.context);
  }
  int pushed = 0;
  for (int round = 0; round < 12; ++round) {
    for (int i = 0; i < 2; ++i) {
      v1::NodeView& view = liars[i].view;
      view.mutable_epoch()->set_counter(view.epoch().counter() + 1'000'000);
      view.clear_pairs();
      for (const std::string& peer : {std::string("n0"), Node(2 - i)}) {
        v1::RailPair* pair = view.add_pairs();
        pair->set_nic("rail0");
        pair->set_peer_node(peer);
        pair->set_peer_nic("rail0");
        pair->set_silent(peer == "n0");
      }
      v1::PushRequest request;
      *request.mutable_view() = view;
      pushed += liars[i].stream->Write(request);
    }
    AwaitAnswers(3);
  }
  EXPECT_GT(pushed, 0);
  for (Liar& liar : liars) {
    liar.context.TryCancel();
    (void)liar.stream->Finish();
  }
  ExpectSound();
}

TEST_F(IdentityTest, AnotherNodesNameNeedsAnotherNodesCertificate) {
  UseTls();
  StartAll();
  const int port = FreePort();
  {
    Process liar(TwinArguments(TlsDirectory(2), port), folder_ + "/liar.log");
    for (const int node : {0, 2}) {
      std::string last;
      EXPECT_TRUE(WaitUntil([&] { return Refused(node, "other-node", &last) > 0; })) << liar.log();
      EXPECT_THAT(last, HasSubstr("node n2 at 127.0.0.1:"));
    }
    EXPECT_THAT(liar.log(), HasSubstr("the certificate of node n2 is not that of node 'n1'"));
  }
  for (int node = 0; node < nodes_; ++node) {
    EXPECT_TRUE(Events(node, "duplicate-node").empty());
    EXPECT_EQ(StateOf(node, "n1", "rail0"), v1::HEALTHY);
  }
  // A machine that was copied with its key is reported by all, and stops nobody.
  Process copy(TwinArguments(TlsDirectory(1), port), folder_ + "/twin.log");
  for (int node = 0; node < nodes_; ++node) {
    ASSERT_TRUE(WaitUntil([&] { return !Events(node, "duplicate-node").empty(); })) << "n" << node << "\n" << copy.log();
    const std::string message = Events(node, "duplicate-node")[0].message();
    EXPECT_THAT(message, HasSubstr("two daemons call themselves n1"));
    for (const int at : {port, ports_[1]}) EXPECT_THAT(message, HasSubstr("127.0.0.1:" + std::to_string(at)));
  }
  EXPECT_TRUE(copy.alive());
  const auto plugin = Attach(0);
  EXPECT_EQ(Act(1, "n1", "rail0", v1::DRAIN), "");
  EXPECT_NE(plugin->AwaitState("n1", "rail0", plan::PlannedState::kDrained), 0) << "the first one has the name";
}

// Verdicts go from node to node all the time; meanwhile all certificates are replaced, and the old ones expire.
TEST_F(IdentityTest, CertificatesAreRenewedUnderALoadAndTheOldOnesExpire) {
  UseTls();
  const int64_t expires_s = NowS() + 30;
  for (int node = 0; node < nodes_; ++node) Put(TlsDirectory(node), "node", CertificateOf(node, expires_s));
  StartAll();
  const auto plugin = Attach(2);
  std::atomic<bool> over = false;
  std::atomic<int> verdicts = 0;
  Nanos longest = 0;
  std::string error;
  std::thread load([&] {
    for (uint32_t weight = 1; !over && error.empty(); weight = weight % 900 + 1) {
      const Nanos begin = Now();
      error = Act(0, "n0", "rail0", v1::SET_WEIGHT, weight);
      if (!WaitUntil([&] { return plugin->Weight("n0", "rail0") == weight; })) error += "weight " + std::to_string(weight) + " is nowhere";
      longest = std::max(longest, Now() - begin);
      ++verdicts;
    }
  });
  EXPECT_TRUE(WaitUntil([&] { return verdicts > 20; }));
  for (int node = 0; node < nodes_; ++node) IssueTo(node);
  // The old ones are of no use now, and a little later nobody may have any other.
  EXPECT_TRUE(WaitUntil([&] { return NowS() > expires_s + 2; }, 60 * kNanosPerSecond));
  const int before = verdicts;
  EXPECT_TRUE(WaitUntil([&] { return verdicts > before + 20; }));
  daemons_[1]->Signal(SIGKILL);
  daemons_[1]->Wait();
  StartDaemon(1);
  EXPECT_TRUE(AwaitPeers(1)) << Status(1).DebugString();
  over = true;
  load.join();
  EXPECT_EQ(error, "");
  EXPECT_EQ(Refused(0, "certificate") + Refused(2, "certificate"), 0u);
  EXPECT_LT(longest, kVerdictMax);
  std::printf("%d verdicts, the slowest after %.1f ms\n", verdicts.load(), longest / 1e6);
  const CertificateAndKey old = CertificateOf(1, expires_s);
  EXPECT_EQ(ActAsPeer(Channel(0, &old), "n0").error_code(), grpc::StatusCode::UNAUTHENTICATED);
}

// Names of NICs that have the hashes of others: of n3's own, by which a plan was refused for ever; and of n1/rail0, which a job's drain
// hit.
TEST_F(TrustTest, NamesOfOneHashFreezeAndSteerNoPage) {
  UseTls();
  StartAll();
  const auto plugin = Attach(0);
  const CertificateAndKey n3 = *Issue(ca_, {Identity::Kind::kNode, "n3"}, ForDays(NowS(), 10));
  v1::NodeView view = Forged("n3");
  view.set_protocol(kPeerProtocol);
  view.clear_nics();
  for (const char* const name : {"8yn0iYCKYHlIj4-BwPqk", "GReLUrM4wMqfg9yzV3KQ", "fG0oF9PXZaxRaKAYT"}) {
    v1::NicView* const nic = view.add_nics();
    nic->set_name(name);
    nic->set_state(v1::HEALTHY);
    nic->set_operator_weight_permille(1000);
    nic->add_drained_jobs("test");
  }
  std::vector<v1::NodeView> answers;
  EXPECT_TRUE(Push(Channel(0, &n3), {view}, &answers).ok());
  ASSERT_TRUE(WaitUntil([&] { return Status(0).nodes_size() == kNodes + 1; })) << "the view is believed, as it is n3's own";
  EXPECT_EQ(Act(0, "n0", "rail0", v1::FAIL), "");
  EXPECT_NE(plugin->AwaitState("n0", "rail0", plan::PlannedState::kFailed, 5 * kNanosPerSecond), 0) << "the page is frozen";
  EXPECT_FALSE(plugin->DrainedFor("test", "n1", "rail0"));
  const v1::StatusReply status = Status(0);
  EXPECT_THAT(std::vector<std::string>(status.alarms().begin(), status.alarms().end()),
              testing::Contains(testing::HasSubstr("node n3 calls a NIC")));
}

// A key was stolen: its certificate is good for days, until it is named on each node. Its open connections end, and nothing new begins.
TEST_F(TrustTest, ACertificateThatIsRefusedEndsItsStreams) {
  UseTls();
  StartAll();
  const CertificateAndKey stolen = *Issue(ca_, {Identity::Kind::kNode, "n2"}, ForDays(NowS(), 10));
  const auto channel = Channel(0, &stolen);
  grpc::ClientContext context;
  const auto stub = v1::Peer::NewStub(channel);
  const auto stream = stub->Exchange(&context);
  v1::PushRequest request;
  *request.mutable_view() = Forged("n2");
  ASSERT_TRUE(stream->Write(request));
  v1::PushReply reply;
  ASSERT_TRUE(stream->Read(&reply)) << "it is received";
  // Another thief's will be over in a moment, and nobody has noticed: it ends with its date.
  const int64_t expires_s = NowS() + 10;
  const CertificateAndKey brief = *Issue(ca_, {Identity::Kind::kNode, "n2"}, {NowS() - 100, expires_s});
  grpc::ClientContext brief_context;
  const auto brief_stub = v1::Peer::NewStub(Channel(1, &brief));
  const auto brief_stream = brief_stub->Exchange(&brief_context);
  ASSERT_TRUE(brief_stream->Write(request));
  ASSERT_TRUE(brief_stream->Read(&reply));
  std::ofstream(folder_ + "/stolen.crt") << stolen.certificate;
  for (int node = 0; node < nodes_; ++node)
    ASSERT_EQ(std::system(
                  ("openssl x509 -in " + folder_ + "/stolen.crt -noout -fingerprint -sha256 > " + TlsDirectory(node) + "/refused").c_str()),
              0);
  for (const auto& daemon : daemons_) daemon->Signal(SIGHUP);
  const Nanos begin = Now();
  while (stream->Read(&reply)) continue;
  std::printf("a refused certificate's stream ended %.1f s after the reload\n", (Now() - begin) / 1e9);
  EXPECT_LT(Now() - begin, 61 * kNanosPerSecond);
  EXPECT_FALSE(stream->Finish().ok());
  while (brief_stream->Read(&reply)) continue;
  EXPECT_LT(NowS(), expires_s + 65);
  EXPECT_FALSE(brief_stream->Finish().ok());
  for (const int node : {1, 2})
    EXPECT_EQ(ActAsPeer(Channel(node, &stolen), Node(node)).error_code(), grpc::StatusCode::UNAUTHENTICATED) << "n" << node;
  const grpc::Status again = ActAsPeer(Channel(0, &stolen), "n0");
  EXPECT_EQ(again.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(again.error_message(), testing::HasSubstr("is refused: its SHA-256 is in the list"));
  EXPECT_TRUE(AwaitPeers(0)) << "the true n2 has another certificate";
  EXPECT_TRUE(WaitUntil([&] { return StateOf(0, "n2", "rail0") == v1::HEALTHY && StateOf(1, "n2", "rail0") == v1::HEALTHY; }))
      << "and is believed";
}

// The commands of docs/operate/security.md#a-stolen-key: the stolen certificate is refused on every node, and the new one is not.
TEST_F(TrustTest, TheProcedureForAStolenKeyRefusesTheStolenOneAlone) {
  const std::string ca = folder_ + "/r2cc-ca";
  const std::string stolen = ca + "/n2.stolen";
  const auto issue = [&](int node) {
    return Ctl("certs issue " + Node(node) + " --dir " + ca + " --out " + TlsDirectory(node) + " && chmod 400 " + TlsDirectory(node) +
               "/node.key");
  };
  const auto answer = [&](int node, const std::string& certificates) {
    return Ctl("--server 127.0.0.1:" + std::to_string(ports_[node]) + " --certs " + certificates + " status");
  };
  const auto run = [](const std::string& command) { ASSERT_EQ(std::system(command.c_str()), 0) << command; };
  ASSERT_THAT(Ctl("certs init --dir " + ca), testing::StartsWith("0 "));
  for (int node = 0; node < nodes_; ++node) ASSERT_THAT(issue(node), testing::StartsWith("0 "));
  UseTls();
  StartAll();
  run("cp -a " + TlsDirectory(2) + " " + stolen);
  EXPECT_THAT(answer(0, stolen), HasSubstr("does not have the role VIEW")) << "it is a node of the cluster";
  run("openssl x509 -in " + stolen + "/node.crt -noout -fingerprint -sha256 > " + ca + "/n2.refused");
  ASSERT_THAT(issue(2), testing::StartsWith("0 "));
  for (int node = 0; node < nodes_; ++node)
    run("cat " + ca + "/n2.refused >> " + TlsDirectory(node) + "/refused && chmod 644 " + TlsDirectory(node) + "/refused");
  for (int node = 0; node < nodes_; ++node) {
    EXPECT_TRUE(WaitUntil([&] { return answer(node, stolen).find("is in the list of refused certificates") != std::string::npos; }))
        << Node(node) << ": " << answer(node, stolen);
    EXPECT_THAT(answer(node, TlsDirectory(2)), HasSubstr("does not have the role VIEW"))
        << "n2 is a node of the cluster for " << Node(node);
  }
  EXPECT_TRUE(AwaitPeers(0));
}

}  // namespace
}  // namespace r2cc::daemon
