// A rank that is killed while its forked children go on sleeping with copies of its descriptors: the others must get an error at once, with
// one line that names the peer and the cause.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "tests/control/perf_process.h"
#include "tests/plugin/net_table.h"
#include "tests/plugin/own_process.h"
#include "tests/plugin/pair.h"

namespace r2cc::plugin_test {
namespace {

using control::Outcome;
using control::PerfProcess;

constexpr char kPlugin[] = "netplugin/libnccl-net-r2cc.so";
constexpr char kFourRails[] = "127.0.0.1,127.0.0.2,127.0.0.3,127.0.0.4";
constexpr double kErrorWithinS = 2;
constexpr char kLine[] = "R2CC: peer node2 is gone: its address refuses connections";

// The children that a rank says it has forked; ended when the test ends.
class Orphans {
 public:
  ~Orphans() {
    for (const pid_t pid : pids_) kill(pid, SIGKILL);
  }
  void Learn(const std::string& text) {
    const std::string words = "forked child ";
    for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1))
      pids_.push_back(std::atoi(text.c_str() + at + words.size()));
  }
  size_t alive() const {
    size_t count = 0;
    for (const pid_t pid : pids_) count += kill(pid, 0) == 0 ? 1 : 0;
    return count;
  }

 private:
  std::vector<pid_t> pids_;
};

std::vector<std::string> LinesWith(const std::string& text, const std::string& words) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    if (const std::string line = text.substr(begin, end - begin); line.find(words) != std::string::npos) lines.push_back(line);
    begin = end + 1;
  }
  return lines;
}

std::string Tail(const std::string& text) { return text.substr(text.size() - std::min<size_t>(text.size(), 1000)); }

// ---- ranks of r2cc-perf ----

class KilledRankTest : public testing::TestWithParam<const char*> {};

TEST_P(KilledRankTest, TheOtherRanksReportItAtOnce) {
  constexpr int kRanks = 3;
  constexpr int kKilled = 2;
  setenv("R2CC_ATTACH", "none", 1);
  setenv("R2CC_DEADLINE_MS", "60000", 1);
  const std::string root = "127.0.0.1:" + std::to_string(control::FreePort());
  std::vector<std::unique_ptr<PerfProcess>> ranks;
  for (int rank = 0; rank < kRanks; ++rank) {
    setenv("R2CC_NODE", ("node" + std::to_string(rank)).c_str(), 1);
    // Collective upon collective: between two of them a rank has no request outstanding, and nothing to say of its peer.
    std::vector<std::string> flags = {GetParam(), "-b", "4M", "-m", "500", "--seconds", "100", "--progress", "1", "--timeout", "90"};
    for (const std::string& flag : {std::string("--rank"), std::to_string(rank), std::string("--nranks"), std::to_string(kRanks),
                                    std::string("--root"), root, std::string("--fork-children"), std::string(rank == kKilled ? "2" : "0")})
      flags.push_back(flag);
    ranks.push_back(std::make_unique<PerfProcess>(kPlugin, kFourRails, flags));
  }
  ASSERT_TRUE(ranks[kKilled]->WaitForError("forked child")) << Tail(ranks[kKilled]->Finish(0).err);
  ASSERT_TRUE(ranks[0]->WaitForError("iteration"));
  kill(ranks[kKilled]->pid(), SIGKILL);
  const double killed_s = NowS();
  for (int rank = 0; rank < kKilled; ++rank) {
    EXPECT_TRUE(ranks[rank]->WaitForError(kLine, 30)) << "rank " << rank << " says nothing of its peer";
    EXPECT_LE(NowS() - killed_s, kErrorWithinS) << "rank " << rank;
  }
  Orphans orphans;
  orphans.Learn(ranks[kKilled]->Finish(30).err);
  EXPECT_EQ(orphans.alive(), 2u);
  for (int rank = 0; rank < kKilled; ++rank) {
    // r2cc-perf's own connection to the dead rank lives on in the children: if it waits there, it is ended here.
    const Outcome outcome = ranks[rank]->Finish(1);
    EXPECT_EQ(LinesWith(outcome.err, kLine).size(), 1u) << Tail(outcome.err);
  }
}

INSTANTIATE_TEST_SUITE_P(Collectives, KilledRankTest, testing::Values("all_reduce", "alltoall"),
                         [](const auto& info) { return std::string(info.param); });

// ---- two processes, with requests outstanding for certain ----

using HandleBytes = std::array<uint8_t, abi::kNetHandleBytesMax>;

// One flow each way to the process at the other end of the socket.
struct Flows {
  std::unique_ptr<Net> net;
  void* context = nullptr;
  Pair pair;

  explicit Flows(int other) : net(NetOf(OpenLibrary(), kVersionNewest)) {
    R2CC_MUST(net->Init(&context) == abi::Result::kSuccess);
    pair.net = net.get();
    alignas(8) HandleBytes ours, theirs;
    void* listen_comm = nullptr;
    R2CC_MUST(net->Listen(context, 0, ours.data(), &listen_comm) == abi::Result::kSuccess);
    R2CC_MUST(send(other, ours.data(), ours.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(ours.size()));
    R2CC_MUST(recv(other, theirs.data(), theirs.size(), MSG_WAITALL) == static_cast<ssize_t>(theirs.size()));
    R2CC_MUST(Await(kLimitS, [&] {
      if (pair.send_comm == nullptr) R2CC_MUST(net->Connect(context, 0, theirs.data(), &pair.send_comm) == abi::Result::kSuccess);
      if (pair.recv_comm == nullptr) R2CC_MUST(net->Accept(listen_comm, &pair.recv_comm) == abi::Result::kSuccess);
      return pair.send_comm != nullptr && pair.recv_comm != nullptr;
    }));
    R2CC_MUST(net->CloseListen(listen_comm) == abi::Result::kSuccess);
  }
};

int Victim(int other) {
  Flows flows(other);
  for (int i = 0; i < 2; ++i) {
    const pid_t pid = fork();
    if (pid == 0) {
      alarm(100);
      for (;;) pause();
    }
    std::fprintf(stderr, "forked child %d\n", static_cast<int>(pid));
  }
  std::fprintf(stderr, "ready\n");
  for (;;) pause();
}

int Survivor(int other) {
  Flows flows(other);
  static std::vector<uint8_t> from(32 << 20), to(1 << 20);
  void* receive = flows.pair.Receive(to.data(), to.size());
  void* send = flows.pair.Send(from.data(), from.size());
  std::fprintf(stderr, "ready\n");
  for (void* request : {receive, send}) {
    int done = 0;
    abi::Result result = abi::Result::kSuccess;
    R2CC_MUST(Await(kLimitS, [&] {
      result = flows.net->Test(request, &done, nullptr);
      return result != abi::Result::kSuccess || done != 0;
    }));
    R2CC_MUST(done == 0 && result == abi::Result::kRemoteError);
  }
  std::fprintf(stderr, "both requests failed\n");
  flows.pair.Close();
  R2CC_MUST(flows.net->Finalize(flows.context) == abi::Result::kSuccess);
  return 0;
}

TEST(KilledProcess, OutstandingRequestsFailAtOnce) {
  int sockets[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets), 0);
  const auto environment = [](const char* node) { return OwnProcess::Environment{{"R2CC_NODE", node}, {"R2CC_DEADLINE_MS", "60000"}}; };
  OwnProcess victim(environment("node2"), [&sockets] { return Victim(sockets[0]); });
  OwnProcess survivor(environment("node0"), [&sockets] { return Survivor(sockets[1]); });
  ASSERT_TRUE(victim.WaitForText("ready")) << victim.text();
  ASSERT_TRUE(survivor.WaitForText("ready")) << survivor.text();
  Orphans orphans;
  orphans.Learn(victim.text());
  kill(victim.pid(), SIGKILL);
  const double killed_s = NowS();
  EXPECT_TRUE(survivor.WaitForText("both requests failed", 30)) << survivor.text();
  EXPECT_LE(NowS() - killed_s, kErrorWithinS);
  EXPECT_EQ(survivor.Wait(30), 0) << survivor.text();
  EXPECT_EQ(LinesWith(survivor.text(), kLine).size(), 1u) << survivor.text();
  EXPECT_EQ(orphans.alive(), 2u);
}

}  // namespace
}  // namespace r2cc::plugin_test
