// r2ccd as a process: what the operator, the jobs and the other daemons see of it.
#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "daemon/program/r2ccd_rig.h"

namespace r2cc::daemon {
namespace {

TEST_F(R2ccdTest, AsJsonEachLineOfTheLogIsAnObjectWithTheFieldsOfAnEvent) {
  flags_ = {"--log_format", "json"};
  StartDaemon(0);
  EXPECT_EQ(Act(0, "n0", "rail0", v1::DRAIN), "");
  ASSERT_TRUE(WaitUntil([&] { return daemons_[0]->log().find("\"to\":\"DRAINED\"") != std::string::npos; })) << daemons_[0]->log();
  std::istringstream lines(daemons_[0]->log());
  bool drained = false;
  for (std::string line; std::getline(lines, line);) {
    google::protobuf::Struct object;
    ASSERT_TRUE(google::protobuf::util::JsonStringToMessage(line, &object).ok()) << line;
    const auto field = [&](const std::string& name) {
      const auto found = object.fields().find(name);
      return found == object.fields().end() ? "" : found->second.string_value();
    };
    EXPECT_NE(field("time"), "");
    EXPECT_NE(field("level"), "");
    if (field("event") != "nic-state" || field("to") != "DRAINED") continue;
    drained = true;
    EXPECT_EQ(field("node") + "/" + field("nic") + " " + field("from"), "n0/rail0 HEALTHY");
    EXPECT_EQ(field("message_id").size(), 32u);
  }
  EXPECT_TRUE(drained);
  // This ends it, too.
  std::ofstream(ConfigFile(1)) << "nice: 77\n";
  std::string output;
  EXPECT_EQ(Run(Arguments(1), &output), 1);
  EXPECT_EQ(output.find("{\"time\":\""), 0U) << output;
  EXPECT_NE(output.find("nice is -20 to 19, not 77"), std::string::npos);
}

TEST_F(R2ccdTest, ASettingAtOneDaemonIsInAllPages) {
  StartAll();
  std::vector<std::unique_ptr<Plugin>> plugins;
  for (int node = 0; node < kNodes; ++node) {
    plugins.push_back(Attach(node));
    EXPECT_EQ(plugins[node]->reply().node, Node(node));
    EXPECT_STREQ(plugins[node]->reply().nics[0], "rail0");
    EXPECT_STREQ(plugins[node]->reply().nics[1], "rail1");
    for (int other = 0; other < kNodes; ++other) EXPECT_EQ(plugins[node]->Weight(Node(other), "rail0"), 1000);
  }

  // Asked on n0 about n1's NIC, seen on all three.
  std::vector<Nanos> latencies;
  for (int round = 0; round < 10; ++round) {
    const Nanos begin = Now();
    std::thread asker([&] { EXPECT_EQ(Act(0, "n1", "rail0", v1::FAIL), ""); });
    for (int node = 0; node < kNodes; ++node) {
      const Nanos seen = plugins[node]->AwaitState("n1", "rail0", plan::PlannedState::kFailed);
      EXPECT_NE(seen, 0) << "n" << node << " in round " << round;
      EXPECT_LT(seen - begin, kVerdictMax);
      if (node != 1) latencies.push_back(seen - begin);
    }
    asker.join();
    EXPECT_EQ(plugins[2]->Weight("n1", "rail0"), 0);
    EXPECT_EQ(Act(2, "n1", "rail0", v1::RESTORE), "");
    for (int node = 0; node < kNodes; ++node) EXPECT_NE(plugins[node]->AwaitState("n1", "rail0", plan::PlannedState::kHealthy), 0);
  }
  std::sort(latencies.begin(), latencies.end());
  std::printf("fail-nic on another node, from the request to the other nodes' pages: median %.2f ms, worst %.2f ms of %zu\n",
              latencies[latencies.size() / 2] / 1e6, latencies.back() / 1e6, latencies.size());

  v1::NicActionReply reply;
  EXPECT_EQ(Act(0, "n2", "rail1", v1::SET_WEIGHT, 250, &reply), "");
  EXPECT_EQ(reply.nic().operator_weight_permille(), 250u);
  EXPECT_TRUE(WaitUntil([&] { return plugins[0]->Weight("n2", "rail1") == 250 && plugins[1]->Weight("n2", "rail1") == 250; }));
  EXPECT_EQ(Act(1, "n1", "rail1", v1::DRAIN), "");
  EXPECT_NE(plugins[0]->AwaitState("n1", "rail1", plan::PlannedState::kDrained), 0);
  EXPECT_EQ(Act(1, "n1", "rail1", v1::UNDRAIN), "");
  EXPECT_NE(plugins[0]->AwaitState("n1", "rail1", plan::PlannedState::kHealthy), 0);

  EXPECT_EQ(Act(0, "n1", "rail9", v1::FAIL), "node n1 has no NIC 'rail9'; it has rail0 rail1");
  EXPECT_EQ(Act(0, "n9", "rail0", v1::FAIL), "there is no node 'n9'; the nodes are n0 n1 n2");
  EXPECT_EQ(Act(0, "n0", "rail0", v1::SET_WEIGHT, 1001), "weight 1001 is out of range; it is from 0 to 1000 permille");
}

TEST_F(R2ccdTest, AJobsEvidenceBecomesEventsAndSums) {
  StartDaemon(0);
  const auto plugin = Attach(0);
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkFenced);
  record.cause = static_cast<uint32_t>(plan::EvidenceCause::kLinkDown);
  record.time_ns = Now();
  record.local_rail = 1;
  record.replayed_bytes = 12345;
  record.duration_ns = 678;
  plan::SetText("n1", record.peer_node);
  plan::SetText("rail1", record.peer_nic);
  ASSERT_TRUE(plugin->ring().Put(record));
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kRailTotals);
  record.bytes = 99;
  ASSERT_TRUE(plugin->ring().Put(record));
  plugin->RingEvidence();
  ASSERT_TRUE(WaitUntil([&] { return !Events(0, "failover").empty(); }));
  const v1::Event event = Events(0, "failover")[0];
  EXPECT_EQ(event.nic(), "rail1");
  EXPECT_EQ(event.cause(), "link-down");
  EXPECT_EQ(event.replayed_bytes(), 12345u);
  EXPECT_EQ(event.duration_ns(), 678);
  EXPECT_EQ(event.pid(), getpid());
  grpc::ClientContext context;
  v1::ListJobsReply jobs;
  ASSERT_TRUE(Control(0)->ListJobs(&context, v1::ListJobsRequest(), &jobs).ok());
  ASSERT_EQ(jobs.jobs_size(), 1);
  EXPECT_EQ(jobs.jobs(0).rails(1).sent_bytes(), 99u);
}

TEST_F(R2ccdTest, EventsAreFollowed) {
  StartDaemon(0);
  grpc::ClientContext context;
  v1::EventsRequest request;
  request.set_follow(true);
  const auto stub = Control(0);
  const auto stream = stub->Events(&context, request);
  v1::Event event;
  ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.kind(), "daemon-started");
  EXPECT_EQ(Act(0, "n0", "rail0", v1::DRAIN), "");
  while (event.kind() != "operator") ASSERT_TRUE(stream->Read(&event));
  EXPECT_EQ(event.message(), "drain n0/rail0, by uid " + std::to_string(geteuid()) + " (pid " + std::to_string(getpid()) + ")");
  context.TryCancel();
  EXPECT_FALSE(stream->Finish().ok());
}

TEST_F(R2ccdTest, ARestartedDaemonKeepsTheSettingAndIsBelieved) {
  StartAll();
  for (const int how : {SIGTERM, SIGKILL}) {
    const auto witness = Attach(0);
    auto plugin = Attach(1);
    EXPECT_EQ(Act(1, "n1", "rail1", v1::SET_WEIGHT, how == SIGTERM ? 400 : 600), "");
    EXPECT_EQ(Act(1, "n1", "rail0", v1::DRAIN), "");
    EXPECT_NE(witness->AwaitState("n1", "rail0", plan::PlannedState::kDrained), 0);
    const Epoch before = plugin->epoch();
    daemons_[1]->Signal(how);
    EXPECT_EQ(daemons_[1]->Wait(), how == SIGTERM ? 0 : 128 + SIGKILL) << daemons_[1]->log();
    struct stat file {};
    EXPECT_EQ(stat((RunDir(1) + "/attach.sock").c_str(), &file) != 0, how == SIGTERM) << "an orderly end takes its sockets along";
    EXPECT_TRUE(WaitUntil([&] { return !Status(0).peers(0).connected(); }));
    EXPECT_EQ(witness->Weight("n1", "rail0"), 0) << "the last view stays";

    StartDaemon(1);
    plugin = Attach(1);
    EXPECT_NE(plugin->epoch().incarnation, before.incarnation);
    EXPECT_NE(plugin->AwaitState("n1", "rail0", plan::PlannedState::kDrained), 0);
    EXPECT_EQ(plugin->Weight("n1", "rail1"), how == SIGTERM ? 400 : 600);
    EXPECT_TRUE(WaitUntil([&] { return Status(0).peers(0).connected(); })) << Status(0).DebugString();
    EXPECT_EQ(Act(0, "n1", "rail0", v1::UNDRAIN), "");
    EXPECT_NE(witness->AwaitState("n1", "rail0", plan::PlannedState::kHealthy), 0) << "a restarted daemon is believed";
  }
}

// As after a reboot, which takes the run directory along; and after a crash in the middle of a write, or a hand in the wrong file.
TEST_F(R2ccdTest, TheStateDirectoryOutlivesTheRunDirectory) {
  StartDaemon(0);
  EXPECT_EQ(Act(0, "n0", "rail0", v1::DRAIN), "");
  daemons_[0]->Signal(SIGKILL);
  daemons_[0]->Wait();
  std::filesystem::remove_all(RunDir(0));
  StartDaemon(0);
  auto plugin = Attach(0);
  EXPECT_NE(plugin->AwaitState("n0", "rail0", plan::PlannedState::kDrained), 0);

  daemons_[0]->Signal(SIGTERM);
  daemons_[0]->Wait();
  std::ofstream(StateDir(0) + "/state") << "version: 1 words { nic: ";
  StartDaemon(0);
  plugin = Attach(0);
  EXPECT_NE(plugin->AwaitState("n0", "rail0", plan::PlannedState::kHealthy), 0);
  const std::string line = StateDir(0) + "/state: garbled; it is kept as " + StateDir(0) +
                           "/state.damaged, and r2ccd starts without operators' settings: set drains, weights and drills again";
  EXPECT_NE(daemons_[0]->log().find(line), std::string::npos) << daemons_[0]->log();
  EXPECT_EQ(Events(0, "state").at(0).message(), line);
  EXPECT_EQ(ReadFile(StateDir(0) + "/state.damaged"), "version: 1 words { nic: ");
  EXPECT_EQ(Act(0, "n0", "rail1", v1::DRAIN), "");

  // A file that cannot be read may hold operators' settings: it stays, and so does the daemon.
  daemons_[0]->Signal(SIGTERM);
  daemons_[0]->Wait();
  std::filesystem::rename(StateDir(0) + "/state", StateDir(0) + "/elsewhere");
  std::filesystem::create_directory(StateDir(0) + "/state");
  std::string output;
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--run_dir", RunDir(0), "--state_dir", StateDir(0), "--log_level", "error"}, &output), 1);
  EXPECT_EQ(output, "r2ccd: cannot read " + StateDir(0) +
                        "/state: Is a directory: r2ccd does not start without the operator's drains and "
                        "weights in it; mend the disk, or move the file away to start without them\n");
  EXPECT_TRUE(std::filesystem::is_directory(StateDir(0) + "/state"));
  std::filesystem::remove(StateDir(0) + "/state");
  std::filesystem::rename(StateDir(0) + "/elsewhere", StateDir(0) + "/state");
  StartDaemon(0);
  plugin = Attach(0);
  EXPECT_NE(plugin->AwaitState("n0", "rail1", plan::PlannedState::kDrained), 0) << "no record was lost";

  // A file where the directory should be: the daemon serves, and reports that it will forget.
  daemons_[0]->Signal(SIGTERM);
  daemons_[0]->Wait();
  std::filesystem::remove_all(StateDir(0));
  std::ofstream(StateDir(0)) << "x";
  StartDaemon(0);
  EXPECT_NE(daemons_[0]->log().find("nothing is kept over a restart: name a directory that r2ccd may write (--state_dir)"),
            std::string::npos)
      << daemons_[0]->log();
  // For each file that is lost.
  EXPECT_TRUE(WaitUntil([&] { return Status(0).alarms_size() >= 2; }));
  const v1::StatusReply status = Status(0);
  for (const std::string& alarm : status.alarms()) EXPECT_NE(alarm.find("will be lost at a restart"), std::string::npos) << alarm;
  EXPECT_EQ(Act(0, "n0", "rail1", v1::DRAIN), "");
}

TEST_F(R2ccdTest, StartsWithoutANicThatIsNotThere) {
  WriteConfig(0, "nics { name: \"rail9\" interface: \"nosuch0\" }\n");
  StartDaemon(0);
  EXPECT_TRUE(WaitUntil([&] { return Status(0).alarms_size() == 1; }));
  EXPECT_NE(Status(0).alarms(0).find("NIC rail9 has no interface 'nosuch0' (" + ConfigFile(0) + ":"), std::string::npos);
  const auto plugin = Attach(0);
  EXPECT_NE(plugin->AwaitState("n0", "rail9", plan::PlannedState::kFailed), 0);
}

TEST_F(R2ccdTest, TheStoreGoesAndComesAndChangesNothing) {
  StartAll();
  EXPECT_EQ(Status(0).store(), "serving");
  EXPECT_TRUE(WaitUntil([&] { return Status(1).store() == "connected to n0"; }));
  daemons_[0]->Signal(SIGKILL);
  daemons_[0]->Wait();
  EXPECT_TRUE(WaitUntil([&] { return Status(1).store().rfind("lost: n0", 0) == 0; }));
  const auto plugin = Attach(2);
  EXPECT_EQ(Act(2, "n1", "rail0", v1::FAIL), "");
  EXPECT_NE(plugin->AwaitState("n1", "rail0", plan::PlannedState::kFailed), 0);
  const std::string error = Act(2, "n0", "rail0", v1::FAIL);
  EXPECT_EQ(error, "node n0 (127.0.0.1:" + std::to_string(ports_[0]) + ") cannot be reached: Connection refused");
  StartDaemon(0);
  EXPECT_TRUE(WaitUntil([&] { return Status(1).store() == "connected to n0" && Status(2).store() == "connected to n0"; }));
  EXPECT_TRUE(WaitUntil([&] { return Status(0).nodes_size() == kNodes; }));
}

TEST_F(R2ccdTest, TheStoreAnnouncesNodesThatAreNoPeers) {
  // n1 and n2 have only n0 as a peer, whose store announces each to the other.
  for (const int node : {1, 2}) {
    std::ofstream(ConfigFile(node)) << "node: \"" << Node(node) << "\"\nlisten: \"127.0.0.1:" << ports_[node]
                                    << "\"\npeers { node: \"n0\" address: \"127.0.0.1:" << ports_[0]
                                    << "\" }\nnics { name: \"rail1\" address: \"" << Address(node, 1)
                                    << "\" }\nnics { name: \"rail0\" address: \"" << Address(node, 0)
                                    << "\" }\nstore { embedded_node: \"n0\" }\ninsecure: true\ndrills { allow: true }\n";
  }
  for (int node = 0; node < kNodes; ++node) StartDaemon(node);
  EXPECT_TRUE(WaitUntil([&] { return Status(1).nodes_size() == kNodes && Status(2).nodes_size() == kNodes; }));
  Plugin plugin(RunDir(1) + "/attach.sock", {Address(1, 0)});
  ASSERT_TRUE(plugin.attached());
  EXPECT_EQ(Act(2, "n2", "rail0", v1::FAIL), "");
  EXPECT_NE(plugin.AwaitState("n2", "rail0", plan::PlannedState::kFailed), 0);
  EXPECT_EQ(Act(1, "n2", "rail0", v1::RESTORE), "") << "asked of one that has no stream to it";
  daemons_[2]->Signal(SIGKILL);
  daemons_[2]->Wait();
  EXPECT_EQ(Act(1, "n2", "rail0", v1::FAIL), "node n2 (127.0.0.1:" + std::to_string(ports_[2]) + ") cannot be reached: Connection refused");
}

TEST_F(R2ccdTest, ASecondDaemonIsRefusedAndTheFirstGoesOn) {
  StartDaemon(0);
  const auto plugin = Attach(0);
  std::string output;
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--run_dir", RunDir(0), "--log_level", "error"}, &output), 1);
  EXPECT_EQ(output, "r2ccd: " + RunDir(0) + "-control/r2ccd.sock is held by the r2ccd with pid " + std::to_string(daemons_[0]->pid()) +
                        ": stop that one first, or give this one another --run_dir\n");
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--run_dir", RunDir(1), "--state_dir", StateDir(0), "--log_level", "error"}, &output), 1);
  EXPECT_EQ(output, "r2ccd: " + StateDir(0) + " is held by the r2ccd with pid " + std::to_string(daemons_[0]->pid()) +
                        ": stop that one first, or give this one another --state_dir\n");
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--run_dir", RunDir(1), "--state_dir", StateDir(1), "--log_level", "error"}, &output), 1);
  EXPECT_EQ(output, "r2ccd: cannot listen for peers on 127.0.0.1:" + std::to_string(ports_[0]) +
                        ": Address already in use; set listen in the configuration, or end what has the port (`ss -ltnp`)\n");
  EXPECT_EQ(Act(0, "n0", "rail0", v1::DRAIN), "");
  EXPECT_NE(plugin->AwaitState("n0", "rail0", plan::PlannedState::kDrained), 0);
  Attach(0);
}

TEST_F(R2ccdTest, WrongFlagsAndFilesAreReportedInOneLine) {
  std::string output;
  EXPECT_EQ(Run({"--frobnicate"}, &output), 2);
  EXPECT_EQ(output, "r2ccd: The following argument was not expected: --frobnicate; see r2ccd --help\n");
  EXPECT_EQ(Run({"--log_level", "loud"}, &output), 2);
  EXPECT_EQ(Run({"--config", "/nonexistent.conf"}, &output), 1);
  EXPECT_EQ(output, "r2ccd: cannot read /nonexistent.conf: No such file or directory\n");
  WriteConfig(0, "nics { name: \"x\" interface: \"nosuch0\" }\n");
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--run_dir", RunDir(0), "--check_config"}, &output), 1);
  EXPECT_EQ(output.rfind("r2ccd: " + ConfigFile(0) + ":11: NIC x: there is no interface 'nosuch0' on this machine; it has ", 0), 0u)
      << output;
  WriteConfig(0, "tls { certificate_file: \"/nonexistent.pem\" key_file: \"k\" ca_file: \"c\" }\n");
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--check_config"}, &output), 1);
  EXPECT_EQ(output,
            "r2ccd: " + ConfigFile(0) +
                ": tls: cannot read /nonexistent.pem: No such file or directory; `r2ccctl certs issue` makes one\nr2ccd: " + ConfigFile(0) +
                ": tls: cannot read k: No such file or directory; `r2ccctl certs issue` makes one\nr2ccd: " + ConfigFile(0) +
                ": tls: cannot read c: No such file or directory; copy the ca.crt of `r2ccctl certs init` there\n");
  WriteConfig(0, "}");
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--check_config"}, &output), 1);
  EXPECT_EQ(output.rfind("r2ccd: " + ConfigFile(0) + ":11: ", 0), 0u) << output;
  WriteConfig(0, "");
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--check_config"}, &output), 0);
  EXPECT_EQ(output, ConfigFile(0) + ": ok: node n0, 2 NICs, 2 peers\n");
  EXPECT_EQ(Run({"--run_dir", "/nonexistent/deeper", "--node", "x"}, &output), 1);
  EXPECT_NE(output.find("r2ccd: cannot make the run directory /nonexistent/deeper (--run_dir): No such file or directory\n"),
            std::string::npos)
      << output;
}

TEST_F(R2ccdTest, WithoutDescriptorsItReportsThatInOneLine) {
  for (const int limit : {48, 100, 200}) {
    const std::string log = folder_ + "/few.log";
    std::string words = "ulimit -n " + std::to_string(limit) + "; exec " + kBinary;
    for (const std::string& argument : Arguments(0)) words += " '" + argument + "'";
    EXPECT_EQ(WEXITSTATUS(std::system(("{ " + words + "; } > " + log + " 2>&1").c_str())), 1) << limit;
    const std::string output = ReadFile(log);
    EXPECT_NE(output.find("r2ccd: r2ccd needs 256 descriptors at its start and can open "), std::string::npos) << output;
    EXPECT_EQ(std::count(output.begin(), output.end(), '\n'), 1) << output;
  }
}

}  // namespace
}  // namespace r2cc::daemon
