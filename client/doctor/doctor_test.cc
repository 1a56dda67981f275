#include "client/doctor/doctor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "client/doctor/daemon_checks.h"
#include "client/doctor/fake_machine.h"
#include "client/doctor/gather.h"
#include "client/doctor/job_checks.h"
#include "client/doctor/path_checks.h"

namespace r2cc::client {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kDay = 86'400;
constexpr int64_t kSecondNs = 1'000'000'000;

// Two nodes with two rails, and nothing that is wrong.
class DoctorTest : public testing::Test {
 protected:
  DoctorTest() {
    for (const char* interface : {"eth0", "eth1", "all"}) {
      machine_.files[absl::StrCat("/proc/sys/net/ipv4/conf/", interface, "/rp_filter")] = "0";
      machine_.files[absl::StrCat("/proc/sys/net/ipv4/conf/", interface, "/arp_ignore")] = "0";
    }
    machine_.files["/proc/sys/net/ipv4/ip_local_port_range"] = "32768\t60999";
    machine_.files["/proc/sys/net/core/rmem_default"] = "212992";
    machine_.listeners["/run/r2cc-control/r2ccd.sock"] = 7;
    machine_.files["/proc/sys/net/ipv4/tcp_congestion_control"] = "cubic";
    machine_.interfaces = {{"eth0", true, 9000, {{"10.1.0.1", 24}}}, {"eth1", true, 9000, {{"10.2.0.1", 24}}}};
    machine_.environment = {
        {"NCCL_NET_PLUGIN", "r2cc"}, {"NCCL_NET", "R2CC"}, {"NCCL_NET_PLUGIN_REF_COUNT", "1"}, {"R2CC_RAILS", "eth0,eth1"}};
    machine_.libraries["libnccl-net-r2cc.so"] = {"/usr/lib/libnccl-net-r2cc.so"};
    facts_.now_ns = machine_.NowNs();
    DaemonFacts& daemon = facts_.daemon;
    daemon.status.set_node("n0");
    daemon.status.set_release("1.0");
    for (int node = 0; node < 2; ++node) {
      v1::NodeView* view = daemon.status.add_nodes();
      view->set_node(absl::StrCat("n", node));
      view->set_release("1.0");
      view->set_peer_address(absl::StrCat("10.0.0.", node + 1, ":7460"));
      if (node == 1) view->set_clock_ahead_ns(kSecondNs);
      for (int rail = 0; rail < 2; ++rail) {
        v1::NicView* nic = view->add_nics();
        nic->set_name(absl::StrCat("rail", rail));
        nic->set_address(absl::StrCat("10.", rail + 1, ".0.", node + 1));
        nic->set_state(v1::HEALTHY);
        nic->set_link_up(true);
        nic->set_rate_bits_per_s(100'000'000'000);
      }
    }
    for (int rail = 0; rail < 2; ++rail) {
      v1::PairStatus& pair = daemon.pairs.emplace_back();
      pair.set_nic(absl::StrCat("rail", rail));
      pair.set_peer_node("n1");
      pair.set_peer_nic(pair.nic());
      pair.set_state("up");
    }
    v1::PeerStatus* peer = daemon.status.add_peers();
    peer->set_node("n1");
    peer->set_address("10.0.0.2:7460");
    peer->set_connected(true);
    daemon.plan_entries = 4;
    daemon.certificates = CertificateFacts{{}, facts_.now_ns / kSecondNs + 100 * kDay};
    daemon.realtime_priority = 1;
    daemon.interfaces = {{"rail0", "eth0"}, {"rail1", "eth1"}};
  }

  // Lines that are not ok: "FAIL path mtu: text -> fix".
  std::string Wrong() {
    Facts facts = facts_;
    LookAround(machine_, {"/run/r2cc", 4, true}, &facts);
    std::string lines;
    const v1::DoctorReport report = ToReport(CheckAll(facts));
    for (const v1::DoctorFinding& finding : report.findings())
      if (finding.level() != "ok")
        absl::StrAppend(&lines, finding.level(), " ", finding.check(), ": ", finding.text(), " -> ", finding.fix(), "\n");
    return lines;
  }
  // One more node like n1.
  void AddPeer(const std::string& node, int last_byte) {
    v1::StatusReply& status = facts_.daemon.status;
    v1::NodeView* const view = status.add_nodes();
    *view = status.nodes(1);
    view->set_node(node);
    view->set_peer_address(absl::StrCat("10.0.0.", last_byte, ":7460"));
    for (int rail = 0; rail < 2; ++rail) {
      view->mutable_nics(rail)->set_address(absl::StrCat("10.", rail + 1, ".0.", last_byte));
      v1::PairStatus pair = facts_.daemon.pairs[static_cast<size_t>(rail)];
      pair.set_peer_node(node);
      facts_.daemon.pairs.push_back(pair);
    }
    v1::PeerStatus* const peer = status.add_peers();
    peer->set_node(node);
    peer->set_address(view->peer_address());
    peer->set_connected(true);
  }
  v1::NicView* Nic(int node, int rail) { return facts_.daemon.status.mutable_nodes(node)->mutable_nics(rail); }

  FakeMachine machine_;
  Facts facts_;
};

TEST_F(DoctorTest, NothingIsWrong) {
  EXPECT_EQ(Wrong(), "");
  Facts facts = facts_;
  LookAround(machine_, {"/run/r2cc", 4, true}, &facts);
  const v1::DoctorReport report = ToReport(CheckAll(facts));
  EXPECT_GE(report.findings_size(), 25);
  EXPECT_THAT(FormatDoctor(report, /*all=*/false, {}),
              testing::MatchesRegex("0 FAIL, 0 warn, 0 unchecked, [0-9]+ ok \\(--all shows them\\)\n"));
  EXPECT_THAT(FormatDoctor(report, /*all=*/true, {}),
              AllOf(HasSubstr("ok        path mtu        rail1 to n1 (10.2.0.1 to 10.2.0.2) takes packets of 9000 bytes\n"),
                    HasSubstr("\n0 FAIL, 0 warn, 0 unchecked, ")));
}

TEST_F(DoctorTest, WithoutADaemonTheJobAloneIsChecked) {
  facts_.daemon = DaemonFacts();
  facts_.daemon.connection = absl::UnavailableError("there is none");
  facts_.without_daemon = true;
  machine_.attach = absl::NotFoundError("no such file");
  EXPECT_EQ(Wrong(), "");
  machine_.environment["NCCL_NET_PLUGIN"] = "other";
  EXPECT_THAT(Wrong(), testing::StartsWith("FAIL plugin variable: NCCL_NET_PLUGIN=other is another plugin"));
}

TEST_F(DoctorTest, NoDaemon) {
  facts_.daemon = DaemonFacts();
  facts_.daemon.connection = absl::UnavailableError("r2ccd is not running: there is no /run/r2cc-control/r2ccd.sock");
  machine_.attach = absl::PermissionDeniedError("/run/r2cc/attach.sock: Permission denied");
  EXPECT_THAT(Wrong(), AllOf(HasSubstr("FAIL daemon: r2ccd is not running"),
                             HasSubstr("FAIL attach socket: jobs cannot attach: /run/r2cc/attach.sock: Permission denied -> start r2ccd"),
                             HasSubstr("unchecked paths: this needs an answer of r2ccd")));
}

// The number in the lock file was 1, which is systemd on the machine: its limits were shown as r2ccd's.
TEST_F(DoctorTest, TheLimitsOfADaemonInAContainerAreNotThoseOfAnotherProcess) {
  machine_.listeners.clear();
  EXPECT_THAT(Wrong(), HasSubstr("unchecked limits: which process it is cannot be seen: "));
}

TEST_F(DoctorTest, ConfigurationReleasesClocksAndNames) {
  facts_.daemon.status.mutable_config()->add_refused("f:3: nice is -20 to 19, not 77");
  facts_.daemon.status.mutable_config()->add_needs_restart("listen");
  facts_.daemon.status.set_insecure(true);
  facts_.daemon.status.add_alarms("the audit will be lost at a restart");
  facts_.daemon.status.mutable_nodes(1)->set_release("0.9");
  facts_.daemon.status.mutable_nodes(1)->set_jobs_of_other_releases(2);
  facts_.daemon.status.mutable_nodes(1)->set_clock_ahead_ns(-6 * kSecondNs);
  facts_.daemon.duplicates.emplace_back().set_message("two daemons call themselves n1");
  facts_.daemon.status.mutable_peers(0)->set_connected(false);
  facts_.daemon.status.mutable_peers(0)->set_error("the daemon of n1 (release 0.9) speaks protocol 1, this one 2");
  const std::string wrong = Wrong();
  for (const char* line : {"FAIL configuration: refused, the one before is in force: f:3:", "warn configuration: not in force yet: listen",
                           "warn configuration: insecure: true", "warn alarm: the audit", "warn releases: this node has 1.0, n1 has 0.9",
                           "warn releases: processes of jobs with a plugin of another release than r2ccd: 2 on n1",
                           "warn releases: the daemon of n1 (release 0.9) speaks protocol 1",
                           "warn clocks: the clock of n1 is 6.0 s behind this node's", "warn node names: two daemons call themselves n1"})
    EXPECT_THAT(wrong, HasSubstr(line));
}

TEST_F(DoctorTest, StorePageCertificatesAndLimits) {
  facts_.daemon.status.set_store("lost: etcd at e1:2379: it does not answer");
  v1::Refusal* refusal = facts_.daemon.status.add_refusals();
  refusal->set_listener("store");
  refusal->set_reason("authority");
  facts_.daemon.plan_entries = 60'000;
  facts_.daemon.certificates = CertificateFacts{{"f: tls: /t/node.crt is the certificate of node n9"}, 0};
  machine_.process = {.pid = 7, .open_files_max = 1024, .realtime = false, .nice = 5};
  machine_.files["/proc/sys/net/core/rmem_default"] = "4096";
  std::string wrong = Wrong();
  for (const char* line :
       {"FAIL store: lost: etcd at e1:2379", "warn store: 0 entries were refused (authority)", "warn page: 60000 of 65536",
        "FAIL certificates: f: tls: /t/node.crt is the certificate of node n9", "warn limits: r2ccd may open 1024 files",
        "warn limits: r2ccd has no real-time priority", "warn limits: r2ccd runs at nice 5", "warn receive buffer:"})
    EXPECT_THAT(wrong, HasSubstr(line));
  facts_.daemon.status.set_store("connected to etcd at e1:2379, which does not take this node's entry: etcdserver: permission denied");
  facts_.daemon.certificates = CertificateFacts{{}, facts_.now_ns / kSecondNs + 6 * kDay};
  EXPECT_THAT(Wrong(), HasSubstr("FAIL certificates: valid for 6 more days"));
  facts_.daemon.certificates = CertificateFacts{{}, facts_.now_ns / kSecondNs + 29 * kDay};
  wrong = Wrong();
  EXPECT_THAT(wrong, AllOf(HasSubstr("give the role of this certificate's user readwrite"),
                           HasSubstr("warn certificates: valid for 29 more days")));
}

TEST_F(DoctorTest, NicsSpeedAddressAndOwners) {
  Nic(0, 1)->set_rate_bits_per_s(25'000'000'000);
  EXPECT_THAT(Wrong(), HasSubstr("warn nic speed: n0/rail1 runs at 25 Gbit/s, its twin rail0 at 100 Gbit/s"));
  facts_.daemon.configured_rates["rail1"] = 25'000'000'000;
  EXPECT_EQ(Wrong(), "") << "it was meant";
  Nic(0, 0)->set_state(v1::FAILED);
  Nic(0, 0)->set_reason("link down");
  EXPECT_THAT(Wrong(), HasSubstr("FAIL nic state: n0/rail0 is FAILED: link down -> r2ccctl nic why n0/rail0"));
  Nic(0, 0)->set_state(v1::HEALTHY);
  machine_.owners["10.1.0.1"] = {"02:00:00:00:00:09"};
  EXPECT_THAT(Wrong(), HasSubstr("FAIL address owners: 10.1.0.1 of rail0 has another owner in its network: 02:00:00:00:00:09"));
  machine_.owners.clear();
  Nic(1, 1)->set_address("10.1.0.1");
  EXPECT_THAT(Wrong(), HasSubstr("FAIL address owners: 10.1.0.1 of rail0 is also the address of n1/rail1"));
  Nic(1, 1)->set_address("10.2.0.2");
  machine_.interfaces[1].addresses = {{"fe80::1", 64}};
  EXPECT_THAT(Wrong(), HasSubstr("FAIL nic address: rail1 (eth1) has only a link-local address"));
  machine_.interfaces[1].addresses = {{"169.254.3.1", 16}};
  EXPECT_THAT(Wrong(), HasSubstr("FAIL nic address: rail1 (eth1) has only a link-local address"));
  machine_.interfaces[1].addresses = {{"10.2.0.1", 24}, {"fd00::2", 64, {.duplicate = true, .tentative = true}}};
  EXPECT_THAT(Wrong(),
              HasSubstr("FAIL nic address: fd00::2 of rail1 (eth1) is another node's, too: the kernel does not use it (dadfailed) -> "
                        "ip address del fd00::2/64 dev eth1, here or on the other node"));
  machine_.interfaces[1].addresses.clear();
  EXPECT_THAT(Wrong(), HasSubstr("FAIL nic address: rail1 (eth1) has no address"));
}

TEST_F(DoctorTest, TheNodesOwnInterfacesAreNoOtherOwners) {
  machine_.files["/sys/class/net/eth0/address"] = "02:00:00:00:00:01";
  machine_.files["/sys/class/net/eth1/address"] = "02:00:00:00:00:02";
  machine_.owners["10.1.0.1"] = {"02:00:00:00:00:02"};
  const std::string wrong = Wrong();
  EXPECT_THAT(wrong, Not(HasSubstr("address owners")));
  EXPECT_THAT(wrong, HasSubstr("warn arp: eth1 of this node answers ARP for 10.1.0.1 of eth0 -> sysctl -w net.ipv4.conf.all.arp_ignore=1"));
  machine_.owners["10.1.0.1"] = {"02:00:00:00:00:02", "02:00:00:00:00:09"};
  EXPECT_THAT(Wrong(), HasSubstr("FAIL address owners: 10.1.0.1 of rail0 has another owner in its network: 02:00:00:00:00:09 ->"));
}

TEST_F(DoctorTest, TwoRailsInOneNetwork) {
  machine_.interfaces[1].addresses = {{"10.1.0.9", 24}};
  Nic(0, 1)->set_address("10.1.0.9");
  Nic(1, 1)->set_address("10.1.0.10");
  EXPECT_THAT(Wrong(), HasSubstr("warn arp: eth0 and eth1 are in one network"));
  machine_.files["/proc/sys/net/ipv4/conf/all/arp_ignore"] = "1";
  EXPECT_EQ(Wrong(), "") << "each has a way of its own";
  machine_.routes[{"10.1.0.9", "10.1.0.10"}] = "eth0";
  EXPECT_THAT(Wrong(), AllOf(HasSubstr("warn path route: rail1 to n1 (10.1.0.9 to 10.1.0.10) leaves by eth0"),
                             testing::Not(HasSubstr("rp_filter"))));
  machine_.files["/proc/sys/net/ipv4/conf/eth1/rp_filter"] = "1";
  EXPECT_THAT(Wrong(), HasSubstr("FAIL rp_filter: eth1: strict"));
}

TEST_F(DoctorTest, PathsMtuAndPorts) {
  machine_.largest_packet["10.2.0.2"] = 1500;
  EXPECT_THAT(Wrong(), HasSubstr("FAIL path mtu: rail1 to n1 (10.2.0.1 to 10.2.0.2) loses packets of 9000 bytes"));
  machine_.largest_packet["10.2.0.2"] = 0;
  EXPECT_THAT(Wrong(), HasSubstr("unchecked path mtu: rail1 to n1 (10.2.0.1 to 10.2.0.2): pings are not answered, probes are"));
  facts_.daemon.pairs[1].set_state("silent");
  EXPECT_THAT(Wrong(),
              AllOf(HasSubstr("FAIL path: rail1 to n1 (10.2.0.1 to 10.2.0.2): no answer to a ping, nor to r2ccd's probes -> is the "
                              "NIC of n1 up?"),
                    Not(HasSubstr("probe port"))))
      << "a dead rail is no firewall";
  machine_.largest_packet.clear();
  EXPECT_THAT(Wrong(), HasSubstr("FAIL probe port: rail1 to n1 (10.2.0.1 to 10.2.0.2): r2ccd's probes (UDP) have no answer, pings have"));
  // A firewall on all rails: no pair distinguishes the peer's silence from a daemon that is busy, so none becomes silent.
  facts_.daemon.pairs[1].set_state("up");
  facts_.daemon.pairs[1].set_sent(40);
  facts_.daemon.pairs[1].set_last_answer_ns(facts_.now_ns - 30 * kSecondNs);
  EXPECT_THAT(Wrong(), HasSubstr("FAIL probe port: rail1 to n1 (10.2.0.1 to 10.2.0.2): r2ccd's probes (UDP) have no answer, pings have"));
  // The same since r2ccd started.
  facts_.daemon.pairs[1].set_state("unknown");
  facts_.daemon.pairs[1].set_last_answer_ns(0);
  facts_.daemon.pairs[1].set_since_ns(facts_.now_ns - 30 * kSecondNs);
  EXPECT_THAT(Wrong(), HasSubstr("FAIL probe port: rail1"));
  facts_.daemon.pairs[1].set_state("up");
  facts_.daemon.pairs[1].set_last_answer_ns(facts_.now_ns - kSecondNs);
  machine_.dead_ports = {7460};
  EXPECT_THAT(Wrong(), HasSubstr("warn daemon port: n1 at 10.0.0.2:7460: no answer"));
  machine_.dead_ports = {60'999};
  EXPECT_THAT(Wrong(), HasSubstr("FAIL job ports: rail0 to n1"));
  Nic(1, 1)->set_link_up(false);
  EXPECT_THAT(Wrong(), testing::Not(HasSubstr("rail1"))) << "a port that is down is reported by its own node";
}

TEST_F(DoctorTest, NicsOfOtherNodesThatFailedAreOneWarning) {
  Nic(1, 1)->set_state(v1::FAILED);
  Nic(1, 1)->set_reason("link down");
  Nic(1, 1)->set_link_up(false);
  EXPECT_EQ(Wrong(), "warn other nodes: n1/rail1 (link down) FAILED: this node sends nothing there -> r2ccctl nic list --bad\n");
  for (int node = 2; node < 5; ++node) AddPeer(absl::StrCat("n", node), node + 1);
  Nic(1, 0)->set_state(v1::FAILED);
  EXPECT_THAT(Wrong(), HasSubstr("n3/rail1 (link down) and 1 more FAILED"));
}

TEST_F(DoctorTest, TheArrowFitsTheFault) {
  facts_.daemon.certificates = CertificateFacts{{"f: tls: node.key can be read by all: chown r2ccd: node.key && chmod 400 node.key"}, 0};
  EXPECT_THAT(Wrong(), AllOf(HasSubstr("chmod 400 node.key -> r2ccctl config check"), testing::Not(HasSubstr("replace the files"))));
  facts_.daemon = DaemonFacts();
  facts_.daemon.connection = absl::PermissionDeniedError("not allowed to open r2ccd.sock: run r2ccctl as root");
  EXPECT_THAT(Wrong(), AllOf(HasSubstr("run r2ccctl as root -> ask as root, or as a member of r2cc: usermod -aG r2cc USER"),
                             testing::Not(HasSubstr("systemctl"))));
}

TEST_F(DoctorTest, FaultsOfOtherNodesAreWarnings) {
  AddPeer("n2", 3);
  v1::PeerStatus* const gone = facts_.daemon.status.mutable_peers(0);
  gone->set_connected(false);
  gone->set_error("Connection refused");
  facts_.daemon.status.mutable_nodes(1)->set_clock_ahead_ns(90 * kSecondNs);
  facts_.daemon.duplicates.emplace_back().set_peer_node("n1");
  machine_.largest_packet["10.2.0.2"] = 1500;
  machine_.refused_hosts = {"10.0.0.2"};
  const std::string wrong = Wrong();
  EXPECT_THAT(wrong, testing::Not(HasSubstr("FAIL")));
  for (const char* line : {"warn peers: n1 (10.0.0.2:7460) is not connected", "warn daemon port: n1 at 10.0.0.2:7460", "warn node names: ",
                           "warn path mtu: rail1 to n1 (10.2.0.1 to 10.2.0.2) loses", "warn clocks: the clock of n1 is 1 min"})
    EXPECT_THAT(wrong, HasSubstr(line));
}

TEST_F(DoctorTest, AFaultThatEveryPeerShowsIsThisNodes) {
  AddPeer("n2", 3);
  facts_.daemon.duplicates.emplace_back().set_peer_node("n0");
  machine_.largest_packet = {{"10.2.0.2", 1500}, {"10.2.0.3", 1500}};
  machine_.refused_hosts = {"10.0.0.2", "10.0.0.3"};
  for (int peer = 0; peer < 2; ++peer) {
    facts_.daemon.status.mutable_peers(peer)->set_connected(false);
    facts_.daemon.status.mutable_nodes(peer + 1)->set_clock_ahead_ns(90 * kSecondNs);
  }
  const std::string wrong = Wrong();
  for (const char* line : {"FAIL peers: n2 (10.0.0.3:7460) is not connected", "FAIL daemon port: n1 at 10.0.0.2:7460", "FAIL node names: ",
                           "FAIL path mtu: rail1 to n1", "FAIL path mtu: rail1 to n2", "FAIL clocks: the clock of n2 is 1 min"})
    EXPECT_THAT(wrong, HasSubstr(line));
}

TEST_F(DoctorTest, JobsEnvironment) {
  const auto with = [&](const std::string& name, const std::string& value) {
    const auto before = machine_.environment;
    machine_.environment[name] = value;
    std::string wrong = Wrong();
    machine_.environment = before;
    return wrong;
  };
  EXPECT_THAT(with("NCCL_NET_PLUGIN", ""), HasSubstr("FAIL plugin variable: NCCL_NET_PLUGIN is not set"));
  machine_.libraries["libnccl-net-aws.so"] = {"/aws"};
  EXPECT_THAT(with("NCCL_NET_PLUGIN", "aws"), HasSubstr("FAIL plugin variable: NCCL_NET_PLUGIN=aws is another plugin"));
  EXPECT_THAT(with("NCCL_NET", ""), HasSubstr("warn NCCL_NET: not set"));
  EXPECT_THAT(with("NCCL_NET", "IB"), HasSubstr("FAIL NCCL_NET: NCCL_NET=IB is another network"));
  EXPECT_THAT(with("NCCL_NET_PLUGIN_REF_COUNT", ""), HasSubstr("warn plugin kept: NCCL_NET_PLUGIN_REF_COUNT=1 is not set"));
  EXPECT_THAT(with("NCCL_NET_PLUGIN_REF_COUNT", "0"), HasSubstr("warn plugin kept: "));
  EXPECT_THAT(with("R2CC_RAILS", "eth0,eth7"), HasSubstr("FAIL rails: R2CC_RAILS names eth7"));
  EXPECT_THAT(with("R2CC_RAILS", "^eth7"), HasSubstr("warn rails: R2CC_RAILS excludes eth7, which this machine has not"));
  EXPECT_THAT(with("R2CC_RAILS", "~eth0,eth7"), HasSubstr("warn rails: R2CC_RAILS names eth7, which this machine has not"));
  EXPECT_EQ(with("R2CC_RAILS", "^eth0"), "");
  EXPECT_EQ(with("R2CC_RAILS", "eth*"), "");
  EXPECT_THAT(with("R2CC_RAILS", "eth0,ib*"), HasSubstr("FAIL rails: R2CC_RAILS names ib*, which this machine has not"));
  EXPECT_THAT(with("R2CC_RAILS", ""), HasSubstr("warn rails: neither R2CC_RAILS nor r2ccd's configuration names any"));
  machine_.files["/run/r2cc/rails"] = "r2cc rails 1\nnetns 7\neth1";
  EXPECT_EQ(with("R2CC_RAILS", ""), "") << "the job takes r2ccd's NICs";
  EXPECT_EQ(with("R2CC_RAILS", "eth1"), "");
  EXPECT_THAT(with("R2CC_RAILS", "eth1,eth0"), HasSubstr("warn rails: R2CC_RAILS names eth0, which r2ccd does not watch"));
  machine_.files.erase("/run/r2cc/rails");
  machine_.files["/sys/class/infiniband/mlx5_0/node_guid"] = "0002:c903:0012:3456";
  EXPECT_THAT(with("R2CC_RAILS", "eth0,mlx5_0"), HasSubstr("FAIL rails: R2CC_RAILS names mlx5_0, of RDMA, and R2CC_TRANSPORT is not set"));
  machine_.environment["R2CC_TRANSPORT"] = "auto";
  EXPECT_EQ(with("R2CC_RAILS", "eth0,mlx5_0"), "");
  EXPECT_EQ(with("R2CC_RAILS", "^mlx5_0"), "");
  machine_.files["/sys/class/infiniband/mlx5_0/ports/1/state"] = "4: ACTIVE";
  EXPECT_EQ(with("R2CC_RAILS", "eth0,mlx5_0:1"), "");
  EXPECT_THAT(with("R2CC_RAILS", "eth0,mlx5_0:2"), HasSubstr("FAIL rails: R2CC_RAILS names mlx5_0:2, which this machine has not"));
  machine_.environment.erase("R2CC_TRANSPORT");
  EXPECT_THAT(with("NCCL_SOCKET_IFNAME", "=eth1"),
              HasSubstr("warn rails: NCCL_SOCKET_IFNAME==eth1 puts NCCL's own control traffic on eth1"));
  EXPECT_EQ(with("NCCL_SOCKET_IFNAME", "^eth0,eth1"), "");
  EXPECT_THAT(with("R2CC_TCP_CONGESTION", "bbr"), HasSubstr("warn congestion: R2CC_TCP_CONGESTION=bbr is BBR"));
  machine_.files["/proc/sys/net/ipv4/tcp_congestion_control"] = "bbr";
  EXPECT_THAT(with("R2CC_TCP_CONGESTION", "system"), HasSubstr("warn congestion"));
  EXPECT_EQ(Wrong(), "") << "the plugin does not take the system's BBR by itself";
  EXPECT_THAT(with("R2CC_ATTACH", "none"), HasSubstr("warn attach: R2CC_ATTACH=none"));
  machine_.files["/root/.nccl.conf"] = "# ours\nNCCL_NET=IB\n";
  EXPECT_EQ(with("HOME", "/root"), "") << "the environment wins";
  machine_.environment.erase("NCCL_NET");
  EXPECT_THAT(with("HOME", "/root"), HasSubstr("NCCL_NET=IB is another network"));
}

TEST_F(DoctorTest, JobsPluginAndNccl) {
  machine_.loads = absl::FailedPreconditionError("libhwloc.so.15: cannot open shared object file");
  EXPECT_THAT(Wrong(), HasSubstr("FAIL plugin: does not load: libhwloc.so.15"));
  machine_.loads = absl::OkStatus();
  machine_.libraries["libnccl-net-r2cc.so"] = {"/old/libnccl-net-r2cc.so", "/usr/lib/libnccl-net-r2cc.so"};
  EXPECT_THAT(Wrong(), HasSubstr("warn plugin files: /old/libnccl-net-r2cc.so comes before /usr/lib/libnccl-net-r2cc.so"));
  machine_.libraries.clear();
  EXPECT_THAT(Wrong(), HasSubstr("FAIL plugin: there is no libnccl-net-r2cc.so"));
  machine_.nccl_version = 21'805;
  EXPECT_THAT(Wrong(), HasSubstr("FAIL NCCL: 2.18.5 has no v7 net tables"));
}

TEST(ParseNcclConf, LinesOfIt) {
  const auto conf = ParseNcclConf("# a comment\nNCCL_NET = R2CC # here\n\nnonsense\nR2CC_RAILS=a,b\n");
  EXPECT_EQ(conf.size(), 2u);
  EXPECT_EQ(conf.at("NCCL_NET"), "R2CC");
  EXPECT_EQ(conf.at("R2CC_RAILS"), "a,b");
}

}  // namespace
}  // namespace r2cc::client
