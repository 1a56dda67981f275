// r2ccd as a process whose configuration changes while it runs.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/program/r2ccd_rig.h"

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class R2ccdReloadTest : public R2ccdTest {
 protected:
  // The configuration of n0, which other nodes stand in only if `more` names them.
  void Write(const std::string& more) const {
    std::ofstream(ConfigFile(0)) << "node: 'n0'\nlisten: '127.0.0.1:" << ports_[0] << "'\n" << trust_ << more;
  }
  std::string Rails(const std::string& rail1 = "") const {
    return "nics { name: 'rail0' address: '" + Address(0, 0) + "' }\nnics { name: 'rail1' address: '" + Address(0, 1) + "' " + rail1 +
           " }\n";
  }
  std::string Peer(int node) const {
    return "peers { node: '" + Node(node) + "' address: '127.0.0.1:" + std::to_string(ports_[static_cast<size_t>(node)]) + "' }\n";
  }
  // The configuration in force from now on; the error's text if there is none.
  std::vector<std::string> Reload(v1::ReloadReply* whole = nullptr) {
    grpc::ClientContext context;
    v1::ReloadReply reply;
    const grpc::Status status = Control(0)->Reload(&context, v1::ReloadRequest(), &reply);
    if (whole != nullptr) *whole = reply;
    return status.ok() ? std::vector<std::string>(reply.applied().begin(), reply.applied().end())
                       : std::vector<std::string>{status.error_message()};
  }
  std::string InForce() {
    grpc::ClientContext context;
    v1::ConfigReply reply;
    EXPECT_TRUE(Control(0)->GetConfig(&context, v1::ConfigRequest(), &reply).ok());
    return reply.text();
  }
  // The newest event of a reload.
  v1::Event Reloaded(int node) {
    v1::Event newest;
    for (const v1::Event& event : Events(node, "operator"))
      if (event.audit().action() == "reload") newest = event;
    return newest;
  }
  uint64_t Rate(const std::string& nic) {
    const v1::StatusReply status = Status(0);
    for (const v1::NodeView& node : status.nodes())
      for (const v1::NicView& one : node.nics())
        if (node.node() == "n0" && one.name() == nic) return one.rate_bits_per_s();
    return 0;
  }
};

TEST_F(R2ccdReloadTest, PeersComeAndGoAtASignal) {
  Write(Rails());
  std::ofstream(ConfigFile(1)) << "node: 'n1'\nlisten: '127.0.0.1:" << ports_[1] << "'\n"
                               << trust_ << "nics { name: 'rail0' address: '" << Address(1, 0) << "' }\n";
  StartDaemon(0);
  StartDaemon(1);
  EXPECT_THAT(Status(0).peers(), IsEmpty());
  Write(Rails() + Peer(1));
  daemons_[0]->Signal(SIGHUP);
  ASSERT_TRUE(WaitUntil([&] { return Status(0).peers_size() == 1 && Status(0).peers(0).connected(); })) << Status(0).DebugString();
  EXPECT_TRUE(WaitUntil([&] { return Status(1).nodes_size() == 2; })) << "the new peer learns of this node";
  const v1::Event event = Reloaded(0);
  EXPECT_EQ(event.audit().result(), "peers: new n1");
  EXPECT_EQ(event.audit().pid(), getpid()) << "the sender of the signal";
  EXPECT_EQ(event.audit().uid(), geteuid());

  Write(Rails());
  EXPECT_THAT(Reload(), ElementsAre("peers: without n1"));
  EXPECT_TRUE(WaitUntil([&] { return Status(0).peers().empty(); }));
  EXPECT_EQ(Status(0).nodes_size(), 2) << "its last view is kept, as of any node that has left";
  EXPECT_TRUE(daemons_[0]->alive());
}

TEST_F(R2ccdReloadTest, ABadFileLeavesTheOldOneInForceAndStatusNamesTheLine) {
  Write(Rails());
  StartDaemon(0);
  const std::string before = InForce();
  Write(Rails() + "drills { allow: true }\nnice: 77\n");
  const std::string place = ConfigFile(0) + ":7: nice is -20 to 19, not 77";
  EXPECT_THAT(Reload(), ElementsAre(place));
  EXPECT_EQ(InForce(), before) << "not even the half of it that is sound";
  v1::StatusReply status = Status(0);
  EXPECT_THAT(status.config().refused(), ElementsAre(place));
  EXPECT_GT(status.config().refused_ns(), status.config().read_ns());
  EXPECT_THAT(status.alarms(), testing::Contains(HasSubstr("the one before is in force: " + place)));
  EXPECT_TRUE(Reloaded(0).audit().refused());
  // The log has it of the call. The file is to be read before it is written again.
  const auto last = [&] { return daemons_[0]->log().rfind("nice is -20 to 19"); };
  const size_t of_the_call = last();
  daemons_[0]->Signal(SIGHUP);
  EXPECT_TRUE(WaitUntil([&] { return last() != std::string::npos && last() != of_the_call; })) << "in the log, too";

  Write(Rails() + "drills { allow: true }\n");
  EXPECT_THAT(Reload(), ElementsAre("drills: allowed"));
  status = Status(0);
  EXPECT_THAT(status.config().refused(), IsEmpty());
  EXPECT_THAT(status.alarms(), IsEmpty());
  EXPECT_EQ(Act(0, "n0", "rail0", v1::FAIL), "") << "drills are allowed from now on";
}

TEST_F(R2ccdReloadTest, RatesLogLevelLimitsAndWhatNeedsARestart) {
  Write(Rails("rate_bits_per_s: 10000000000"));
  StartDaemon(0);
  EXPECT_EQ(Rate("rail1"), 10'000'000'000u);
  Write(Rails("rate_bits_per_s: 25000000000") + "log_level: 'debug'\nrealtime_priority: 0\nnice: 5\nlimits { nodes: 7 }\n");
  v1::ReloadReply reply;
  EXPECT_THAT(Reload(&reply), ElementsAre("rates of NICs: rail1", "log_level: debug", "limits"));
  EXPECT_THAT(reply.state().needs_restart(), ElementsAre("nice", "realtime_priority"));
  EXPECT_TRUE(WaitUntil([&] { return Rate("rail1") == 25'000'000'000u; }));
  EXPECT_THAT(Status(0).alarms(), testing::Contains(HasSubstr("wait for a restart: nice, realtime_priority")));
  const std::string shown = InForce();
  EXPECT_THAT(shown, HasSubstr("rate_bits_per_s: 25000000000"));
  EXPECT_THAT(shown, HasSubstr("log_level: \"debug\""));
  EXPECT_THAT(shown, HasSubstr("nodes: 7"));
  EXPECT_THAT(shown, HasSubstr("realtime_priority: 1")) << "what waits is not in force";
  EXPECT_THAT(Reload(), IsEmpty()) << "a repetition changes nothing";
}

TEST_F(R2ccdReloadTest, NicsComeAndGoUnderARunningJob) {
  const auto nic = [&](int rail) { return "nics { name: 'rail" + std::to_string(rail) + "' address: '" + Address(0, rail) + "' }\n"; };
  Write(nic(0) + nic(1));
  StartDaemon(0);
  const auto job = Attach(0);
  ASSERT_TRUE(job->attached());
  EXPECT_EQ(Act(0, "n0", "rail1", v1::DRAIN), "");
  Write(nic(0) + nic(2));
  EXPECT_THAT(Reload(), ElementsAre("nics: new rail2, without rail1"));
  EXPECT_NE(job->AwaitState("n0", "rail2", plan::PlannedState::kHealthy), 0) << "it is on the page of the job that is attached";
  EXPECT_EQ(job->Weight("n0", "rail2"), 1000);
  EXPECT_TRUE(WaitUntil([&] { return job->Weight("n0", "rail1") == 0xffff; })) << "and the other is not";
  EXPECT_EQ(job->Weight("n0", "rail0"), 1000);
  Write(nic(0) + nic(1) + nic(2));
  EXPECT_THAT(Reload(), ElementsAre("nics: new rail1"));
  EXPECT_NE(job->AwaitState("n0", "rail1", plan::PlannedState::kDrained), 0) << "the operator's setting holds";
  EXPECT_THAT(Status(0).alarms(), IsEmpty());
}

}  // namespace
}  // namespace r2cc::daemon
