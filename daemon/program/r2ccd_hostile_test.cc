// r2ccd as a process, and around it those who mean it no good: words in other nodes' names, ghosts, garbage on the rails. Each is shown to
// change nothing for the jobs.
#include <arpa/inet.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "daemon/program/r2ccd_rig.h"

namespace r2cc::daemon {
namespace {

class R2ccdHostileTest : public R2ccdTest {
 protected:
  std::unique_ptr<v1::Peer::Stub> Peer(int node) {
    return v1::Peer::NewStub(
        grpc::CreateChannel("127.0.0.1:" + std::to_string(ports_[static_cast<size_t>(node)]), grpc::InsecureChannelCredentials()));
  }
  // The answer of the daemon of `node` to any caller.
  v1::NodeView ViewOf(int node) {
    grpc::ClientContext context;
    const auto stub = Peer(node);
    const auto stream = stub->Exchange(&context);
    v1::PushReply reply;
    EXPECT_TRUE(stream->Read(&reply));
    context.TryCancel();
    EXPECT_FALSE(stream->Finish().ok());
    return reply.view();
  }
  // Pushes views to `node` in one stream that stays as long as this object. False: the stream is over.
  class Pusher {
   public:
    explicit Pusher(std::unique_ptr<v1::Peer::Stub> stub) : stub_(std::move(stub)), stream_(stub_->Exchange(&context_)) {}
    ~Pusher() {
      context_.TryCancel();
      (void)stream_->Finish();
    }
    bool Push(const v1::NodeView& view) {
      v1::PushRequest request;
      *request.mutable_view() = view;
      return stream_->Write(request);
    }

   private:
    std::unique_ptr<v1::Peer::Stub> stub_;
    grpc::ClientContext context_;
    std::unique_ptr<grpc::ClientReaderWriter<v1::PushRequest, v1::PushReply>> stream_;
  };
};

// Two nodes, or senders with their names, report silence of a NIC that answers every probe.
TEST_F(R2ccdHostileTest, ForgedReportsOfTwoNodesFailNoSoundNic) {
  StartAll();
  AwaitAnswers(5);
  std::vector<v1::NodeView> forged = {ViewOf(1), ViewOf(2)};
  Pusher liar(Peer(0));
  for (int round = 0; round < 12; ++round) {
    for (size_t i = 0; i < forged.size(); ++i) {
      v1::NodeView& view = forged[i];
      view.mutable_epoch()->set_counter(view.epoch().counter() + 1'000'000);
      view.clear_pairs();
      v1::RailPair* pair = view.add_pairs();
      pair->set_nic("rail0");
      pair->set_peer_node("n0");
      pair->set_peer_nic("rail0");
      pair->set_silent(true);
      pair = view.add_pairs();
      pair->set_nic("rail0");
      pair->set_peer_node(i == 0 ? "n2" : "n1");
      pair->set_peer_nic("rail0");
      if (!liar.Push(view)) break;
    }
    AwaitAnswers(3);
  }
  ExpectSound();
}

// A node that exists nowhere reports that its NIC gets no answer of n0/rail0. n0 probes no such pair: it looks, and finds nothing wrong.
TEST_F(R2ccdHostileTest, ASilentPairThatThisNodeDoesNotProbeMakesNoNicSuspect) {
  StartAll();
  AwaitAnswers(5);
  v1::NodeView ghost = ViewOf(1);
  ghost.set_node("ghost");
  while (ghost.nics_size() > 1) ghost.mutable_nics()->RemoveLast();
  ghost.mutable_nics(0)->set_name("ghost");
  ghost.clear_pairs();
  for (const char* const nic : {"rail0", "rail1"}) {
    v1::RailPair* const pair = ghost.add_pairs();
    pair->set_nic("ghost");
    pair->set_peer_node("n0");
    pair->set_peer_nic(nic);
    pair->set_silent(true);
  }
  Pusher pusher(Peer(0));
  const Nanos begin = Now();
  do {
    ghost.mutable_epoch()->set_counter(ghost.epoch().counter() + 1);
    ASSERT_TRUE(pusher.Push(ghost));
    AwaitAnswers(5);
  } while (Now() - begin < 4 * kNanosPerSecond);
  EXPECT_EQ(Status(0).nodes_size(), kNodes + 1) << "its view is received";
  for (const v1::Event& event : Events(0, "nic-state"))
    EXPECT_FALSE(event.node() == "n0" && event.to_state() == v1::SUSPECT) << event.DebugString();
}

// 1,030 nodes of 64 NICs are more than a page holds. They take no verdict from the jobs.
TEST_F(R2ccdHostileTest, GhostNodesFreezeNoPlan) {
  StartAll();
  const auto plugin = Attach(0);
  v1::NodeView ghost = ViewOf(1);
  const v1::NicView nic = ghost.nics(0);
  ghost.clear_nics();
  ghost.clear_pairs();
  for (int i = 0; i < 64; ++i) {
    *ghost.add_nics() = nic;
    ghost.mutable_nics(i)->set_name("g" + std::to_string(i));
  }
  Pusher pusher(Peer(0));
  for (int i = 0; i < 1030; ++i) {
    ghost.set_node("ghost" + std::to_string(i));
    if (!pusher.Push(ghost)) break;
  }
  EXPECT_EQ(Act(0, "n0", "rail0", v1::DRAIN), "");
  EXPECT_NE(plugin->AwaitState("n0", "rail0", plan::PlannedState::kDrained), 0);
  EXPECT_EQ(Act(1, "n1", "rail1", v1::FAIL), "");
  EXPECT_NE(plugin->AwaitState("n1", "rail1", plan::PlannedState::kFailed), 0);
  for (const std::string& alarm : Status(0).alarms()) EXPECT_EQ(alarm.find("was refused"), std::string::npos) << alarm;
}

// A job reports 4,096 nodes as its peers, again and again. The peers of another job are watched as before.
TEST_F(R2ccdHostileTest, AJobThatNamesThousandsOfPeersTakesNothingFromOthers) {
  StartAll();
  const auto greedy = Attach(0);
  const auto plugin = Attach(0);
  plan::EvidenceRecord opened{};
  opened.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kFlowOpened);
  const auto deliver = [&](Plugin* from, const std::string& node) {
    opened.time_ns = Now();
    plan::SetText(node, opened.peer_node);
    plan::SetText("rail0", opened.peer_nic);
    return from->ring().Put(opened);
  };
  ASSERT_TRUE(deliver(plugin.get(), "n1"));
  plugin->RingEvidence();
  AwaitAnswers(5);
  int named = 0;
  for (int round = 0; round < 3; ++round)
    for (int i = 0; i < 4096; ++i) {
      // A ring that is full is taken in at the daemon's pace.
      ASSERT_TRUE(WaitUntil([&] {
        if (deliver(greedy.get(), "ghost" + std::to_string(i))) return true;
        greedy->RingEvidence();
        return false;
      }));
      ++named;
    }
  greedy->RingEvidence();
  EXPECT_EQ(named, 3 * 4096);
  AwaitAnswers(5);
  EXPECT_EQ(Status(0).nodes_size(), kNodes) << "nobody believes in nodes that a job names";
  EXPECT_EQ(Act(1, "n1", "rail1", v1::FAIL), "");
  const Nanos failed = Now(), seen = plugin->AwaitState("n1", "rail1", plan::PlannedState::kFailed);
  EXPECT_NE(seen, 0);
  EXPECT_LT(seen - failed, kVerdictMax);
  ExpectSound();
}

// Garbage on a rail's probe port, as fast as one thread can send it.
TEST_F(R2ccdHostileTest, AFloodOfGarbageFailsNoNic) {
  StartAll();
  AwaitAnswers(5);
  const v1::NodeView own = ViewOf(0);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(static_cast<uint16_t>(own.nics(0).probe_port()));
  ASSERT_EQ(inet_pton(AF_INET, Address(0, 0).c_str(), &to.sin_addr), 1);
  std::atomic<bool> over = false;
  std::atomic<uint64_t> sent = 0;
  std::thread flood([&] {
    const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const std::string garbage(300, 'x');
    while (!over) sent += sendto(fd, garbage.data(), garbage.size(), 0, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) > 0;
    close(fd);
  });
  const Nanos begin = Now();
  const bool served = WaitUntil([&] { return sent > 200'000 && Now() - begin > 3 * kNanosPerSecond && Status(0).node() == "n0"; });
  over = true;
  flood.join();
  EXPECT_TRUE(served) << sent;
  AwaitAnswers(5);
  ExpectSound();
}

// Standard error is a pipe, and its reader is stopped. The core goes on; the reader gets the pending lines when it reads again.
TEST_F(R2ccdHostileTest, ALogThatNobodyReadsStopsNothing) {
  flags_ = {"--log_level", "debug"};
  const std::string log = RunDir(0) + ".log";
  ASSERT_EQ(mkfifo(log.c_str(), 0600), 0);
  const int reader = open(log.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ASSERT_GE(reader, 0);
  std::string output;
  const auto read_all = [&] {
    char some[4096];
    for (ssize_t got; (got = read(reader, some, sizeof(some))) > 0;) output.append(some, static_cast<size_t>(got));
  };
  StartDaemon(0);
  unlink(log.c_str());  // nobody else may wait for its end
  const auto plugin = Attach(0);
  Nanos longest = 0;
  for (uint32_t weight = 1; weight <= 700; ++weight) {
    const Nanos begin = Now();
    ASSERT_EQ(Act(0, "n0", "rail0", v1::SET_WEIGHT, weight % 900 + 1), "") << "the core stands";
    longest = std::max(longest, Now() - begin);
  }
  EXPECT_LT(longest, kNanosPerSecond);
  EXPECT_FALSE(plugin->stale());
  // The pending text is longer than the pipe, and is written as the reader takes it.
  EXPECT_EQ(Act(0, "n0", "rail0", v1::DRAIN), "");
  EXPECT_TRUE(WaitUntil([&] {
    read_all();
    return output.find("0: drain n0/rail0") != std::string::npos;
  })) << output.size();
  EXPECT_GT(output.size(), 80'000u);
  close(reader);
}

}  // namespace
}  // namespace r2cc::daemon
