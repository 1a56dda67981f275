// Attacks on a running r2ccd, each of which worked once: refused, logged with name and address, counted.
#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "daemon/program/r2ccd_trust_rig.h"
#include "daemon/state/audit.h"

namespace r2cc::daemon {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr grpc::StatusCode kUnknown = grpc::StatusCode::UNAUTHENTICATED;
constexpr grpc::StatusCode kDenied = grpc::StatusCode::PERMISSION_DENIED;

TEST_F(TrustTest, WithoutTlsNobodyCommandsADaemon) {
  std::ofstream(ConfigFile(0)) << "node: \"n0\"\nlisten: \"127.0.0.1:" << ports_[0]
                               << "\"\nnics { name: \"rail0\" address: \"127.7.1.1\" }\nnics { name: \"rail1\" address: \"127.7.1.2\" }\n"
                               << "drills { allow: true }\n";
  StartDaemon(0);
  const auto plugin = Attach(0);
  const auto channel = Channel(0, nullptr, /*tls=*/false);
  const grpc::Status act = ActAsPeer(channel, "n0");
  EXPECT_EQ(act.error_code(), kUnknown);
  EXPECT_THAT(act.error_message(), HasSubstr("this daemon has no tls, so it cannot authenticate callers"));
  std::vector<v1::NodeView> answers;
  EXPECT_EQ(Push(channel, {Forged("ghost")}, &answers).error_code(), kUnknown);
  EXPECT_TRUE(answers.empty()) << "the nonce of the probes is nobody's business";
  EXPECT_EQ(plugin->Weight("n0", "rail0"), 1000);
  EXPECT_EQ(Status(0).nodes_size(), 1);
  std::string last;
  EXPECT_EQ(Refused(0, "no-certificate", &last), 2u);
  EXPECT_THAT(last, HasSubstr("an unauthenticated caller at 127.0.0.1:"));
  EXPECT_THAT(daemons_[0]->log(), HasSubstr("refused: to connect"));
  EXPECT_THAT(daemons_[0]->log(), HasSubstr("at 127.0.0.1:"));
}

TEST_F(TrustTest, WithoutTlsTheDaemonListensOnLoopbackAloneAndHasNoPeers) {
  std::string output;
  const auto check = [&](const std::string& config) {
    std::ofstream(ConfigFile(0)) << "node: \"n0\"\n" << config;
    const int code = Run({"--config", ConfigFile(0), "--check_config"}, &output);
    return std::to_string(code) + " " + output;
  };
  EXPECT_THAT(check("listen: \"0.0.0.0:7460\"\n"), HasSubstr(":2: listen: 0.0.0.0 is not loopback needs tls"));
  EXPECT_THAT(check("peers { node: \"n1\" address: \"127.0.0.1:1\" }\n"), HasSubstr(":2: peers needs tls"));
  EXPECT_THAT(check("store { etcd_endpoints: \"127.0.0.1:1\" }\n"), HasSubstr(":2: a store needs tls"));
  EXPECT_THAT(check("listen: \"0.0.0.0:7460\"\ninsecure: true\n"), HasSubstr("0 "));
  WriteConfig(0, "");
  StartDaemon(0);
  EXPECT_TRUE(Status(0).insecure());
  EXPECT_THAT(daemons_[0]->log(), HasSubstr("INSECURE: everybody who can reach the daemons' port may command this node"));
}

TEST_F(TrustTest, UnderTlsAnUnauthenticatedCallerGetsNothing) {
  UseTls();
  StartAll();
  const auto plugin = Attach(0);
  const int64_t now = NowS();
  const Identity n2{Identity::Kind::kNode, "n2"};
  const CertificateAndKey foreign = *Issue(*MakeAuthority("strangers", ForDays(now, 10)), n2, ForDays(now, 10));
  const CertificateAndKey expired = *Issue(ca_, n2, {now - 100'000, now - 50'000});
  const CertificateAndKey early = *Issue(ca_, n2, {now + 50'000, now + 100'000});
  struct Case {
    const CertificateAndKey* pair;
    const char* why;
  };
  for (const auto& [pair, why] : {Case{nullptr, "you show no certificate"}, Case{&foreign, "is not of this cluster's authority"},
                                  Case{&expired, "the certificate of node n2 expired on"}, Case{&early, "is not valid before"}}) {
    const auto channel = Channel(0, pair);
    const grpc::Status act = ActAsPeer(channel, "n0");
    EXPECT_EQ(act.error_code(), kUnknown) << act.error_message();
    EXPECT_THAT(act.error_message(), HasSubstr(why));
    std::vector<v1::NodeView> answers;
    EXPECT_EQ(Push(channel, {Forged("n2")}, &answers).error_code(), kUnknown);
    EXPECT_EQ(PutIntoStore(channel, "/r2cc/nodes/n2").error_code(), kUnknown);
    int entries = 0;
    EXPECT_EQ(ReadStore(channel, &entries).error_code(), kUnknown);
    EXPECT_EQ(entries, 0);
    EXPECT_TRUE(answers.empty());
  }
  // The log has the first of each kind, and how many there were.
  EXPECT_THAT(daemons_[0]->log(), HasSubstr("refused: to connect: you show no certificate"));
  EXPECT_THAT(daemons_[0]->log(), HasSubstr("refused: to connect: the certificate of node n2 is not of this cluster's authority"));
  // In the clear nothing comes as far as a call.
  EXPECT_EQ(ActAsPeer(Channel(0, nullptr, /*tls=*/false), "n0").error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(Refused(0, "no-certificate"), 4u);
  EXPECT_GE(Refused(0, "no-tls"), 1u);
  std::string last;
  EXPECT_EQ(Refused(0, "certificate", &last), 12u);
  EXPECT_THAT(last, HasSubstr("node n2 at 127.0.0.1:"));
  EXPECT_EQ(plugin->Weight("n0", "rail0"), 1000);
  EXPECT_EQ(StateOf(0, "n2", "rail0"), v1::HEALTHY);
  // And the audit, which a thousand more do not fill.
  const auto channel = Channel(0, &expired);
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(ActAsPeer(channel, "n0").error_code(), kUnknown);
  ASSERT_TRUE(WaitUntil([&] { return Events(0, "stranger").size() >= 3; }));
  std::string messages;
  for (const v1::Event& event : Events(0, "stranger")) messages += event.message() + "\n";
  EXPECT_THAT(messages, HasSubstr("refused on peers: to connect: you show no certificate, by an unauthenticated caller at 127.0.0.1:"));
  EXPECT_THAT(messages, HasSubstr("by node n2 at 127.0.0.1:"));
  EXPECT_LE(Events(0, "stranger").size(), 3 * Audit::kRefusedBurst);
  EXPECT_THAT(ReadFile(StateDir(0) + "/audit.log"), HasSubstr("\"action\":\"stranger\""));
}

TEST_F(TrustTest, AnotherNodesCertificateSpeaksAndActsForThatNodeAlone) {
  UseTls();
  StartAll();
  const auto plugin = Attach(0);
  const CertificateAndKey n2 = *Issue(ca_, {Identity::Kind::kNode, "n2"}, ForDays(NowS(), 10));
  const auto channel = Channel(0, &n2);
  const grpc::Status act = ActAsPeer(channel, "n0");
  EXPECT_EQ(act.error_code(), kDenied);
  EXPECT_THAT(act.error_message(), HasSubstr("uid 0 (pid 0) on n2 does not have the role DRILL on node n0"));
  EXPECT_EQ(ActAsPeer(channel, "n0", v1::DRAIN).error_code(), kDenied);
  for (const std::string node : {"n1", "n0", "ghost"}) {
    std::vector<v1::NodeView> answers;
    const grpc::Status push = Push(channel, {Forged(node)}, &answers);
    EXPECT_EQ(push.error_code(), kDenied);
    EXPECT_EQ(push.error_message(), "the certificate of node n2 is not that of node '" + node + "'");
    EXPECT_EQ(PutIntoStore(channel, "/r2cc/nodes/" + node).error_code(), kDenied);
  }
  // A first view of its own opens no door either.
  std::vector<v1::NodeView> ghosts = {Forged("n2")};
  for (int i = 0; i < 1030; ++i) ghosts.push_back(Forged("ghost" + std::to_string(i)));
  ghosts[0].mutable_epoch()->set_incarnation(1);
  std::vector<v1::NodeView> answers;
  EXPECT_EQ(Push(channel, ghosts, &answers).error_code(), kDenied);
  EXPECT_EQ(Status(0).nodes_size(), kNodes);
  EXPECT_EQ(StateOf(0, "n1", "rail0"), v1::HEALTHY);
  EXPECT_EQ(plugin->Weight("n1", "rail0"), 1000);
  EXPECT_EQ(plugin->Weight("n0", "rail0"), 1000);
  std::string last;
  EXPECT_EQ(Refused(0, "other-node", &last), 7u);
  EXPECT_THAT(last, HasSubstr("node n2 at 127.0.0.1:"));
  EXPECT_EQ(Refused(0, "role", &last), 2u);
  EXPECT_THAT(daemons_[0]->log(), HasSubstr("node n2 at 127.0.0.1:"));
}

TEST_F(TrustTest, AnotherUserMayAskAndAnOperatorFromAfarMaySteer) {
  UseTls();
  LetUsersIn(0);
  StartAll();
  Put(folder_ + "/alice", "operator", *Issue(ca_, {Identity::Kind::kOperator, "alice"}, ForDays(NowS(), 10)));
  const std::string nobody = geteuid() == 0 ? "setpriv --reuid=65534 --regid=65534 --clear-groups " : "";
  if (!nobody.empty()) {
    EXPECT_THAT(Ctl("--run_dir " + RunDir(0) + " nic list", nobody), HasSubstr("n0/rail0"));
    for (const std::string arguments :
         {"nic drain n0/rail0", "fail-nic n0/rail0", "nic weight n0/rail0 50%", "report-disagreement run1 --step 1 --point h --rank 0"})
      EXPECT_THAT(Ctl("--run_dir " + RunDir(0) + " " + arguments, nobody),
                  testing::AllOf(testing::StartsWith("1 r2ccctl: uid 65534 (pid "), HasSubstr("does not have the role")));
    std::string last;
    EXPECT_EQ(Refused(0, "role", &last), 4u);
    EXPECT_THAT(last, HasSubstr("uid 65534"));
    EXPECT_TRUE(Events(0, "disagreement").empty());
  }
  const std::string alice = "--server 127.0.0.1:" + std::to_string(ports_[0]) + " --certs " + folder_ + "/alice ";
  EXPECT_THAT(Ctl(alice + "status"), HasSubstr("n2"));
  EXPECT_THAT(Ctl(alice + "fail-nic n0/rail0"),
              testing::AllOf(testing::StartsWith("1 "), HasSubstr("operator alice at 127.0.0.1:"), HasSubstr("DRILL")));
  EXPECT_THAT(Ctl(alice + "nic drain n0/rail0"), HasSubstr("DRAINED"));
  ASSERT_FALSE(Events(0, "operator").empty());
  EXPECT_THAT(Events(0, "operator").back().message(), HasSubstr("drain n0/rail0, by operator alice at 127.0.0.1:"));
  EXPECT_THAT(Ctl(alice + "nic drain n0/rail1"),
              testing::AllOf(testing::StartsWith("1 "), HasSubstr("n0/rail1 is the last NIC of n0 that carries traffic")));
  EXPECT_THAT(Ctl(alice + "nic drain n0/rail1 --force"), HasSubstr("DRAINED"));
  EXPECT_THAT(Ctl("--server 127.0.0.1:" + std::to_string(ports_[0]) + " --certs /nonexistent status"),
              HasSubstr("cannot read /nonexistent/node.crt"));
}

TEST_F(TrustTest, NewCertificatesAreInUseWithoutARestart) {
  UseTls();
  StartAll();
  const auto shown = [&](int node) {
    FILE* pipe = popen(("openssl s_client -connect 127.0.0.1:" + std::to_string(ports_[node]) +
                        " </dev/null 2>/dev/null | openssl x509 -noout -serial 2>&1")
                           .c_str(),
                       "r");
    char text[256] = {};
    const bool read = fgets(text, sizeof(text), pipe) != nullptr;
    pclose(pipe);
    return read ? std::string(text) : "";
  };
  const size_t lost = Events(0, "peer-lost").size();
  const std::string before = shown(1);
  ASSERT_THAT(before, testing::StartsWith("serial="));
  for (int node = 0; node < nodes_; ++node) IssueTo(node);
  const Nanos begin = Now();
  EXPECT_TRUE(WaitUntil([&] { return shown(1) != before; }, 60 * kNanosPerSecond));
  std::printf("a new certificate was in use after %.1f s\n", (Now() - begin) / 1e9);
  EXPECT_EQ(Events(0, "peer-lost").size(), lost) << "no stream ended";
  const auto plugin = Attach(2);
  EXPECT_EQ(Act(0, "n0", "rail0", v1::DRAIN), "");
  EXPECT_NE(plugin->AwaitState("n0", "rail0", plan::PlannedState::kDrained), 0);
  // A daemon that starts now meets the others with its new one.
  daemons_[1]->Signal(SIGKILL);
  daemons_[1]->Wait();
  StartDaemon(1);
  EXPECT_TRUE(AwaitPeers(1)) << Status(1).DebugString();
}

TEST_F(TrustTest, ASecondDaemonOfANameIsReportedEverywhereAndStopsNobody) {
  StartAll();
  const int port = FreePort();
  std::string twin = ReadFile(ConfigFile(1));
  const std::string own = "listen: \"127.0.0.1:" + std::to_string(ports_[1]) + "\"";
  twin.replace(twin.find(own), own.size(), "listen: \"127.0.0.1:" + std::to_string(port) + "\"");
  std::ofstream(folder_ + "/twin.conf") << twin;
  Process second({"--config", folder_ + "/twin.conf", "--run_dir", folder_ + "/twin", "--state_dir", folder_ + "/twin-kept"},
                 folder_ + "/twin.log");
  for (int node = 0; node < nodes_; ++node) {
    ASSERT_TRUE(WaitUntil([&] { return !Events(node, "duplicate-node").empty(); })) << "n" << node << "\n" << daemons_[node]->log();
    const std::string message = Events(node, "duplicate-node")[0].message();
    EXPECT_THAT(message, HasSubstr("two daemons call themselves n1"));
    for (const int at : {port, ports_[1]}) EXPECT_THAT(message, HasSubstr("127.0.0.1:" + std::to_string(at)));
  }
  EXPECT_TRUE(second.alive());
  EXPECT_TRUE(daemons_[1]->alive());
  const auto plugin = Attach(0);
  EXPECT_EQ(Act(1, "n1", "rail0", v1::DRAIN), "");
  EXPECT_NE(plugin->AwaitState("n1", "rail0", plan::PlannedState::kDrained), 0) << "the first one has the name";
}

class FourTest : public TrustTest {
 protected:
  FourTest() { nodes_ = 4; }
};

TEST_F(FourTest, AClusterMovesFromInsecureToTlsNodeByNode) {
  StartAll();
  EXPECT_EQ(Act(1, "n1", "rail0", v1::DRAIN), "");
  std::vector<std::unique_ptr<Plugin>> plugins(nodes_);
  int step = 0;
  const auto holds = [&](const std::string& when) {
    // A verdict from before, and one of now, on every page.
    const int speaker = step++ % nodes_;
    const std::string node = Node(speaker);
    const std::string nic = speaker == 1 ? "rail1" : "rail0";
    EXPECT_EQ(Act(speaker, node, nic, v1::SET_WEIGHT, 400 + step), "") << when;
    for (int other = 0; other < nodes_; ++other) {
      if (plugins[other] == nullptr) plugins[other] = Attach(other);
      EXPECT_TRUE(WaitUntil([&] { return plugins[other]->Weight(node, nic) == 400 + step; })) << when << ", n" << other;
      EXPECT_TRUE(WaitUntil([&] { return plugins[other]->Weight("n1", "rail0") == 0; })) << when << ", n" << other;
    }
  };
  const auto restart = [&](int node, const std::string& when) {
    daemons_[node]->Signal(SIGTERM);
    daemons_[node]->Wait();
    plugins[node].reset();
    for (int other = 0; other < nodes_; ++other)
      if (other != node && plugins[other] != nullptr) {
        EXPECT_EQ(plugins[other]->Weight("n1", "rail0"), 0) << when;
      }
    StartDaemon(node);
    for (int other = 0; other < nodes_; ++other) EXPECT_TRUE(AwaitPeers(other)) << when << "\n" << Status(other).DebugString();
    holds(when);
  };
  holds("before");
  for (int node = 0; node < nodes_; ++node) {
    WriteConfig(node, Tls(node));  // and insecure: true
    restart(node, "n" + std::to_string(node) + " speaks both");
  }
  trust_ = "";
  for (int node = 0; node < nodes_; ++node) {
    WriteConfig(node, Tls(node));
    restart(node, "n" + std::to_string(node) + " speaks TLS alone");
    EXPECT_FALSE(Status(node).insecure());
  }
}

size_t Descriptors(pid_t pid) {
  size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/fd")) count += !entry.path().empty();
  return count;
}

int64_t ResidentKb(pid_t pid) {
  std::istringstream lines(ReadFile("/proc/" + std::to_string(pid) + "/status"));
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("VmRSS:")) return std::atoll(line.c_str() + 6);
  return 0;
}

// Connections that send nothing, garbage, or half a handshake.
class NoiseTest : public TrustTest, public testing::WithParamInterface<bool> {
 protected:
  int Connect(int node) {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(ports_[node]));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }
};

INSTANTIATE_TEST_SUITE_P(Listeners, NoiseTest, testing::Bool(), [](const auto& info) { return info.param ? "Tls" : "Clear"; });

TEST_P(NoiseTest, TenThousandConversationsThatAreNoneCostNothing) {
  if (GetParam()) UseTls();
  StartAll();
  constexpr int kAtOnce = 500;
  const std::string tls_half("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11);
  const std::string http_half("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00", 26);
  const std::vector<std::string> texts = {"", "GET / HTTP/1.1\r\n\r\n", std::string(1000, '\xff'), tls_half, http_half, "P", "\x16"};
  const pid_t pid = daemons_[0]->pid();
  const auto round = [&](int begin) {
    std::vector<int> open;
    for (int i = 0; i < kAtOnce; ++i) {
      open.push_back(Connect(0));
      const std::string& text = texts[static_cast<size_t>(begin + i) % texts.size()];
      (void)!send(open.back(), text.data(), text.size(), MSG_NOSIGNAL);
    }
    EXPECT_EQ(Status(0).node(), "n0") << "others are served";
    for (const int fd : open) close(fd);
  };
  round(0);
  const size_t descriptors = Descriptors(daemons_[1]->pid());
  const int64_t resident = ResidentKb(pid);
  for (int begin = kAtOnce; begin < 10'000; begin += kAtOnce) round(begin);
  EXPECT_TRUE(WaitUntil([&] { return Descriptors(pid) <= descriptors + 20; })) << Descriptors(pid) << " and " << descriptors;
  EXPECT_LE(ResidentKb(pid) - resident, 32 * 1024);
  std::printf("10,000 conversations: %lld kB resident before, %lld after\n", static_cast<long long>(resident),
              static_cast<long long>(ResidentKb(pid)));
  EXPECT_GT(Refused(0, "garbage"), 1000u);
  const auto plugin = Attach(2);
  EXPECT_EQ(Act(0, "n0", "rail0", v1::DRAIN), "");
  EXPECT_NE(plugin->AwaitState("n0", "rail0", plan::PlannedState::kDrained), 0);
}

TEST_F(TrustTest, TenThousandConversationsOnTheControlSocketCostNothing) {
  LetUsersIn(0);
  StartDaemon(0);
  constexpr int kAtOnce = 250;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, (RunDir(0) + "/r2ccd.sock").c_str());
  const std::vector<std::string> texts = {"", "GET / HTTP/1.1\r\n\r\n", std::string(1000, '\xff'), "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "P"};
  const pid_t pid = daemons_[0]->pid();
  const auto round = [&](int begin) {
    std::vector<int> open;
    for (int i = 0; i < kAtOnce; ++i) {
      open.push_back(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
      // Another user's: each has its own share. Of this thread alone, unlike seteuid(): gRPC's threads connect meanwhile.
      const uid_t own = geteuid();
      if (own == 0) {
        EXPECT_EQ(syscall(SYS_setresuid, -1, 65534, -1), 0);
      }
      EXPECT_EQ(connect(open.back(), reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0) << begin << " " << i;
      if (own == 0) {
        EXPECT_EQ(syscall(SYS_setresuid, -1, own, -1), 0);
      }
      const std::string& text = texts[static_cast<size_t>(begin + i) % texts.size()];
      (void)!send(open.back(), text.data(), text.size(), MSG_NOSIGNAL);
    }
    EXPECT_EQ(Status(0).node(), "n0") << "others are served";
    for (const int fd : open) close(fd);
  };
  const size_t descriptors = Descriptors(pid);
  round(0);
  const int64_t resident = ResidentKb(pid);
  for (int begin = kAtOnce; begin < 10'000; begin += kAtOnce) round(begin);
  EXPECT_TRUE(WaitUntil([&] { return Descriptors(pid) <= descriptors + 20; })) << Descriptors(pid) << " and " << descriptors;
  EXPECT_LE(ResidentKb(pid) - resident, 32 * 1024);
  std::printf("10,000 conversations: %lld kB resident before, %lld after\n", static_cast<long long>(resident),
              static_cast<long long>(ResidentKb(pid)));
  const auto plugin = Attach(0);
  EXPECT_EQ(Act(0, "n0", "rail0", v1::DRAIN), "");
  EXPECT_NE(plugin->AwaitState("n0", "rail0", plan::PlannedState::kDrained), 0);
}

}  // namespace
}  // namespace r2cc::daemon
