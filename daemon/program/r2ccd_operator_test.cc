// r2ccd as a process, and operators' requests to it: drills that end, a record of who did what, nodes that have left.
#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "daemon/program/r2ccd_rig.h"

namespace r2cc::daemon {
namespace {

constexpr Nanos kSecond = kNanosPerSecond;

class R2ccdOperatorTest : public R2ccdTest {
 protected:
  // The error's text; "" if it was done.
  std::string Drill(const std::string& nic, Nanos length) {
    grpc::ClientContext context;
    v1::NicActionRequest request;
    request.set_node("n0");
    request.set_nic(nic);
    request.set_action(v1::FAIL);
    request.set_drill_ns(length);
    v1::NicActionReply reply;
    const grpc::Status status = Control(0)->ActOnNic(&context, request, &reply);
    return status.ok() ? "" : status.error_message();
  }
  std::string Forget(int asked, const std::string& node, v1::ForgetNodeReply* reply = nullptr) {
    grpc::ClientContext context;
    v1::ForgetNodeRequest request;
    request.set_node(node);
    v1::ForgetNodeReply ignored;
    const grpc::Status status = Control(asked)->ForgetNode(&context, request, reply == nullptr ? &ignored : reply);
    return status.ok() ? "" : status.error_message();
  }
  v1::NicView Nic(const std::string& name) {
    const v1::StatusReply status = Status(0);
    for (const v1::NodeView& node : status.nodes())
      for (const v1::NicView& nic : node.nics())
        if (node.node() == "n0" && nic.name() == name) return nic;
    return {};
  }
  void Stop(int node, int how) {
    daemons_[static_cast<size_t>(node)]->Signal(how);
    daemons_[static_cast<size_t>(node)]->Wait();
  }
  // How long the drill on rail0 goes on from now, seen from outside.
  Nanos UntilOver() {
    const Nanos begin = Now();
    EXPECT_TRUE(WaitUntil([&] { return !Nic("rail0").drill_failed() && Nic("rail0").state() == v1::HEALTHY; }));
    return Now() - begin;
  }
  std::vector<std::string> OperatorMessages(int node) {
    std::vector<std::string> messages;
    for (const v1::Event& event : Events(node, "operator")) messages.push_back(event.message());
    return messages;
  }
  const std::string me_ = "uid " + std::to_string(geteuid()) + " (pid " + std::to_string(getpid()) + ")";
};

TEST_F(R2ccdOperatorTest, ADrillEndsByItselfAlsoOverARestart) {
  StartDaemon(0);
  EXPECT_EQ(Drill("rail0", kSecond - 1), "a drill lasts 1s to 24h, not 999.999999ms");
  EXPECT_EQ(Drill("rail0", 86'401 * kSecond), "a drill lasts 1s to 24h, not 24h1s");
  EXPECT_EQ(Nic("rail0").state(), v1::HEALTHY);

  Nanos begin = Now();
  EXPECT_EQ(Drill("rail0", 2 * kSecond), "");
  EXPECT_EQ(Nic("rail0").state(), v1::FAILED);
  EXPECT_GT(Nic("rail0").drill_ends_ns(), 0);
  UntilOver();
  EXPECT_GE(Now() - begin, 2 * kSecond);
  EXPECT_EQ(Events(0, "drill").at(0).message(), "the drill on n0/rail0 is over: its time has passed");

  // Its end is kept, and the time without a daemon counts.
  begin = Now();
  EXPECT_EQ(Drill("rail0", 8 * kSecond), "");
  Stop(0, SIGKILL);
  StartDaemon(0);
  EXPECT_EQ(Nic("rail0").state(), v1::FAILED);
  UntilOver();
  EXPECT_GE(Now() - begin, 8 * kSecond);
  EXPECT_LT(Now() - begin, 12 * kSecond);

  begin = Now();
  EXPECT_EQ(Drill("rail0", 2 * kSecond), "");
  Stop(0, SIGTERM);
  EXPECT_TRUE(WaitUntil([&] { return Now() - begin > 2100 * kNanosPerMs; }));
  StartDaemon(0);
  EXPECT_EQ(Nic("rail0").state(), v1::HEALTHY);
  EXPECT_EQ(Events(0, "drill").back().message(), "the drill on n0/rail0 is over: its time passed while r2ccd did not run");

  EXPECT_EQ(Drill("rail0", 3600 * kSecond), "");
  EXPECT_EQ(Act(0, "n0", "rail0", v1::RESTORE), "");
  EXPECT_LT(UntilOver(), 5 * kSecond);
}

// Another boot: nobody knows how long the machine was off.
TEST_F(R2ccdOperatorTest, ADrillDoesNotOutliveItsLengthOverAReboot) {
  StartDaemon(0);
  const Nanos begin = Now();
  EXPECT_EQ(Drill("rail0", 14 * kSecond), "");
  Stop(0, SIGKILL);
  std::string state = ReadFile(StateDir(0) + "/state");
  const size_t id = state.find("boot_id: \"") + 10;
  ASSERT_LT(id, state.size()) << state;
  state.replace(id, 4, "ffff");
  std::ofstream(StateDir(0) + "/state") << state;
  std::filesystem::remove_all(RunDir(0));
  StartDaemon(0);
  EXPECT_EQ(Nic("rail0").state(), v1::FAILED);
  UntilOver();
  EXPECT_LE(Now() - begin, 14 * kSecond);
}

TEST_F(R2ccdOperatorTest, ActionsAreKeptWithTheirCaller) {
  nodes_ = 2;
  StartDaemon(0);
  StartDaemon(1);
  ASSERT_TRUE(WaitUntil([&] { return Status(0).nodes_size() == 2 && Status(0).peers(0).connected(); }));
  EXPECT_EQ(Act(0, "n0", "rail0", v1::DRAIN), "");
  EXPECT_NE(Act(0, "n0", "rail9", v1::DRAIN), "");
  EXPECT_EQ(Act(0, "n1", "rail1", v1::SET_WEIGHT, 250), "");
  const std::vector<std::string> here = {
      "drain n0/rail0, by " + me_,
      "refused: drain n0/rail9, by " + me_ + ": node n0 has no NIC 'rail9'; it has rail0 rail1",
      "weight n1/rail1 25%, by " + me_ + ", forwarded",
  };
  EXPECT_TRUE(WaitUntil([&] { return OperatorMessages(0) == here; })) << testing::PrintToString(OperatorMessages(0));
  EXPECT_EQ(OperatorMessages(1), std::vector<std::string>{"weight n1/rail1 25%, by " + me_ + " on n0"});
  const v1::AuditRecord audit = Events(1, "operator").at(0).audit();
  EXPECT_EQ(audit.via(), "n0");
  EXPECT_EQ(audit.uid(), geteuid());
  EXPECT_EQ(audit.result(), "done");

  Stop(0, SIGKILL);
  std::filesystem::remove_all(RunDir(0));
  StartDaemon(0);
  EXPECT_EQ(OperatorMessages(0), here) << "another run";
  const std::string file = ReadFile(StateDir(0) + "/audit.log");
  EXPECT_EQ(std::count(file.begin(), file.end(), '\n'), 3) << file;
}

// As after a crash of the machine, or a disk with errors.
TEST_F(R2ccdOperatorTest, DamagedFilesOfHistoryStopNothing) {
  StartDaemon(0);
  EXPECT_EQ(Act(0, "n0", "rail0", v1::DRAIN), "");
  Stop(0, SIGTERM);
  std::string garbage(64 << 10, '\0');
  for (size_t i = 0; i < garbage.size(); ++i) garbage[i] = static_cast<char>(i * i >> 3);
  for (const char* name : {"/events.log", "/audit.log"}) {
    const std::string file = ReadFile(StateDir(0) + name);
    ASSERT_FALSE(file.empty()) << name;
    std::ofstream(StateDir(0) + name) << file << garbage << file.substr(0, file.size() / 2);
  }
  std::ofstream(StateDir(0) + "/jobs") << garbage;
  StartDaemon(0);
  EXPECT_EQ(OperatorMessages(0), std::vector<std::string>{"drain n0/rail0, by " + me_}) << "what is whole is kept";
  EXPECT_EQ(Act(0, "n0", "rail0", v1::UNDRAIN), "");
  for (const char* words : {"garbled lines of the history", "garbled lines of the audit", "/jobs: "})
    EXPECT_NE(daemons_[0]->log().find(words), std::string::npos) << words << daemons_[0]->log();
  EXPECT_TRUE(std::filesystem::exists(StateDir(0) + "/jobs.damaged"));
  Stop(0, SIGTERM);
  StartDaemon(0);
  EXPECT_EQ(OperatorMessages(0), (std::vector<std::string>{"drain n0/rail0, by " + me_, "undrain n0/rail0, by " + me_}))
      << "it goes on behind it";
}

TEST_F(R2ccdOperatorTest, ANodeThatHasLeftIsForgotten) {
  StartAll();
  const auto witness = Attach(0);
  Stop(2, SIGKILL);
  EXPECT_EQ(Forget(0, "n2").rfind("node n2 is alive: it sent something ", 0), 0u) << Forget(0, "n2");
  EXPECT_EQ(Forget(0, "n9"), "there is no node 'n9'; the nodes are n0 n1 n2");
  v1::ForgetNodeReply reply;
  EXPECT_TRUE(WaitUntil([&] { return Forget(0, "n2", &reply).empty(); }));
  EXPECT_TRUE(reply.configured());
  EXPECT_EQ(Status(0).nodes_size(), 2);
  EXPECT_TRUE(WaitUntil([&] { return witness->Weight("n2", "rail0") == 0xffff; })) << "the page has it no more";
  EXPECT_EQ(reply.others() + reply.refused(), 1u) << reply.DebugString();
  // n1 may have received it later, and keeps it until it is asked again.
  const auto asked_until_gone = [&] {
    if (Status(1).nodes_size() == 2) return true;
    Forget(0, "n2");
    return false;
  };
  EXPECT_TRUE(WaitUntil(asked_until_gone)) << "n1 is asked, too";
  EXPECT_EQ(OperatorMessages(1).back(), "forget n2, by " + me_ + " on n0");
  EXPECT_EQ(Forget(0, "n2"), "there is no node 'n2'; the nodes are n0 n1 n2") << "nobody has it any more";
  EXPECT_EQ(Events(0, "node-forgotten").at(0).peer_node(), "n2");
  StartDaemon(2);
  EXPECT_TRUE(AwaitPeers(0)) << "it is back";
}

TEST_F(R2ccdOperatorTest, ADrainForOneJobIsOnEveryPageAndOverARestart) {
  StartAll();
  const auto here = Attach(0), there = Attach(2);
  const auto act = [&](int asked, v1::NicAction action, const std::string& nic, const std::string& job, v1::NicActionReply* reply) {
    grpc::ClientContext context;
    v1::NicActionRequest request;
    request.set_node("n0");
    request.set_nic(nic);
    request.set_action(action);
    request.set_job(job);
    const grpc::Status status = Control(asked)->ActOnNic(&context, request, reply);
    return status.ok() ? "" : status.error_message();
  };
  v1::NicActionReply reply;
  EXPECT_EQ(act(1, v1::DRAIN, "rail0", "test", &reply), "") << "asked elsewhere";
  EXPECT_TRUE(reply.changed());
  ASSERT_EQ(reply.jobs_size(), 1) << "the process that is attached there";
  EXPECT_EQ(reply.nic().state(), v1::HEALTHY);
  for (const auto& plugin : {here.get(), there.get()}) {
    EXPECT_TRUE(WaitUntil([&] { return plugin->DrainedFor("test", "n0", "rail0"); }));
    EXPECT_FALSE(plugin->DrainedFor("other", "n0", "rail0"));
    EXPECT_EQ(plugin->Weight("n0", "rail0"), 1000) << "others go on";
  }
  EXPECT_EQ(act(0, v1::DRAIN, "rail0", "other", &reply), "");
  EXPECT_EQ(reply.jobs_size(), 0);
  EXPECT_THAT(act(0, v1::DRAIN, "rail1", "test", &reply), testing::HasSubstr("n0/rail1 is the last NIC of n0 for job test that carries"));
  EXPECT_THAT(act(0, v1::DRAIN, "rail1", "", &reply), testing::HasSubstr("n0/rail1 is the last NIC of n0 for job test that carries"))
      << "in the other order too";
  EXPECT_THAT(act(0, v1::FAIL, "rail1", "", &reply), testing::HasSubstr("n0/rail1 is the last NIC of n0 for job test that carries"));
  EXPECT_THAT(act(0, v1::DRAIN, "rail1", "a b", &reply), testing::HasSubstr("'a b' is no job's name"));
  EXPECT_THAT(act(0, v1::FAIL, "rail1", "test", &reply), testing::HasSubstr("only drain and undrain are for one job"));
  EXPECT_EQ(OperatorMessages(0).front(), "drain n0/rail0 for job test, by " + me_ + " on n1");
  Stop(0, SIGKILL);
  StartDaemon(0);
  const auto again = Attach(0);
  EXPECT_TRUE(WaitUntil([&] { return again->DrainedFor("test", "n0", "rail0"); })) << "it is kept";
  EXPECT_EQ(act(0, v1::UNDRAIN, "rail0", "test", &reply), "");
  for (const auto& plugin : {again.get(), there.get()}) EXPECT_TRUE(WaitUntil([&] { return !plugin->DrainedFor("test", "n0", "rail0"); }));
  EXPECT_TRUE(again->DrainedFor("other", "n0", "rail0"));
}

TEST_F(R2ccdOperatorTest, EventsAreSifted) {
  StartDaemon(0);
  for (const uint32_t weight : {100, 200, 300}) EXPECT_EQ(Act(0, "n0", "rail1", v1::SET_WEIGHT, weight), "");
  EXPECT_EQ(Act(0, "n0", "rail0", v1::DRAIN), "");
  grpc::ClientContext context;
  v1::EventsRequest request;
  request.add_kinds("operator");
  request.set_node("n0");
  request.set_nic("rail1");
  request.set_last(2);
  const auto stub = Control(0);
  const auto stream = stub->Events(&context, request);
  std::vector<std::string> messages;
  for (v1::Event event; stream->Read(&event);) messages.push_back(event.message());
  EXPECT_TRUE(stream->Finish().ok());
  EXPECT_EQ(messages, (std::vector<std::string>{"weight n0/rail1 20%, by " + me_, "weight n0/rail1 30%, by " + me_}));
}

}  // namespace
}  // namespace r2cc::daemon
