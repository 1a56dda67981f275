#include "tests/contract/processes/process_world.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <utility>

namespace r2cc::contract {
namespace {

// Relative to a test's runfiles.
constexpr char kProgram[] = "tests/contract/processes/end";
constexpr size_t kAlignment = 64;
// An end that does not answer for so long is a bug of its own: nothing in an engine may block.
constexpr int kAnswerPatienceMs = 20'000;

bool Translate(const plan::EvidenceRecord& record, RailReport* report) {
  switch (static_cast<plan::EvidenceRecordKind>(record.kind)) {
    case plan::EvidenceRecordKind::kLinkUp: report->what = RailReport::What::kLinkUp; break;
    case plan::EvidenceRecordKind::kLinkFenced: report->what = RailReport::What::kLinkFenced; break;
    case plan::EvidenceRecordKind::kRailSlow: report->what = RailReport::What::kRailSlow; break;
    case plan::EvidenceRecordKind::kRailSteady: report->what = RailReport::What::kRailSteady; break;
    default: return false;
  }
  report->rail = static_cast<int>(record.local_rail);
  report->cause = plan::CauseName(static_cast<plan::EvidenceCause>(record.cause));
  report->replayed_bytes = record.replayed_bytes;
  return true;
}

}  // namespace

ProcessWorld::ProcessWorld(const Options& options, Nodes* nodes) : options_(options), nodes_(nodes) {
  nodes_->Reset(options.rail_bytes_per_s);
  for (const auto& [end, rail] : options.cut_at_start) nodes_->Cut(end, rail);
  for (End end = 0; end < 2; ++end) Start(end);
}

ProcessWorld::~ProcessWorld() {
  for (const pid_t pid : holders_) kill(pid, SIGKILL);
  for (End end = 0; end < 2; ++end) {
    Kill(end);
    munmap(processes_[end].memory, kMemoryBytes);
  }
  nodes_->Reset(options_.rail_bytes_per_s);
}

void ProcessWorld::Start(End end) {
  Process& process = processes_[end];
  int pair[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
  const int memory = memfd_create("contract", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(memory, static_cast<off_t>(kMemoryBytes)), 0);
  process.memory = static_cast<std::byte*>(mmap(nullptr, kMemoryBytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0));
  ASSERT_NE(process.memory, MAP_FAILED);
  const int where = nodes_->OpenNamespace(end);
  process.pid = fork();
  if (process.pid == 0) {
    // Out of the way first: the targets may be numbers of the sources.
    const int from[] = {fcntl(pair[1], F_DUPFD, 16), fcntl(memory, F_DUPFD, 16), fcntl(where, F_DUPFD, 16)};
    dup2(from[0], kCommandsFd);
    dup2(from[1], kMemoryFd);
    dup2(from[2], kNamespaceFd);
    for (const int fd : from) close(fd);
    const auto set = [](const char* name, const std::string& value) { setenv(name, value.c_str(), 1); };
    set("R2CC_RAILS", RailsOf(end));
    set(kPeerRails, RailsOf(1 - end));
    set("R2CC_OOB_IFNAME", nodes_->InterfaceOf(end, kOob));
    set("R2CC_ATTACH", "none");
    set("R2CC_NODE", "n" + std::to_string(end));
    set("R2CC_DEADLINE_MS", std::to_string(options_.deadline / kNanosPerMs));
    set("R2CC_SILENCE_MS", std::to_string(options_.silence / kNanosPerMs));
    if (options_.chunk_bytes.has_value()) set("R2CC_CHUNK_BYTES", std::to_string(*options_.chunk_bytes));
    for (const auto& [name, value] : nodes_->Environment()) set(name.c_str(), value);
    execl(kProgram, kProgram, nullptr);
    _exit(127);
  }
  close(pair[1]);
  close(memory);
  close(where);
  process.commands = pair[0];
  Poll(end);
}

std::string ProcessWorld::RailsOf(End end) const {
  std::string names;
  for (int rail = 0; rail < kRails; ++rail) names += (rail == 0 ? "" : ",") + nodes_->InterfaceOf(end, rail);
  return names;
}

void ProcessWorld::SendCommand(End end, const Command& command) {
  if (processes_[end].pid <= 0) return;
  EXPECT_EQ(send(processes_[end].commands, &command, sizeof(command), MSG_NOSIGNAL), static_cast<ssize_t>(sizeof(command)))
      << "process " << end << " is gone";
}

template <typename T>
bool ProcessWorld::Ask(End end, const Command& command, T* answer) {
  if (!Talks(end)) return false;
  SendCommand(end, command);
  pollfd waiting = {processes_[end].commands, POLLIN, 0};
  if (poll(&waiting, 1, kAnswerPatienceMs) == 1 && recv(processes_[end].commands, answer, sizeof(*answer), 0) == sizeof(*answer))
    return true;
  // The answers that follow would be taken for others.
  int status = 0;
  const bool dead = waitpid(processes_[end].pid, &status, WNOHANG) == processes_[end].pid;
  if (dead) {
    ADD_FAILURE() << "process " << end << " died by itself: " << (WIFSIGNALED(status) ? strsignal(WTERMSIG(status)) : "exit");
    close(processes_[end].commands);
    processes_[end].pid = -1;
  } else {
    ADD_FAILURE() << "process " << end << " does not answer";
    Kill(end);
  }
  return false;
}

void ProcessWorld::Poll(End end) {
  Process& process = processes_[end];
  if (!Ask(end, {.kind = Command::Kind::kPoll}, &process.status)) return;
  for (uint32_t i = 0; i < process.status.record_count; ++i)
    if (RailReport report; Translate(process.status.records[i], &report)) process.reports.push_back(report);
  for (int flow = 0; flow < static_cast<int>(flows_.size()); ++flow) {
    Flow& mine = flows_[static_cast<size_t>(flow)];
    if (EndOf(flow, false) == end && !mine.receive_closed) mine.received = process.status.receive[flow].done_through;
  }
}

void ProcessWorld::Pass() {
  // A sender is looked at before its receiver: what was acknowledged by then has been placed.
  Poll(0);
  std::vector<uint64_t> sent(flows_.size());
  for (size_t flow = 0; flow < flows_.size(); ++flow) sent[flow] = SendStatus(static_cast<int>(flow)).done_through;
  const auto publish = [&](End from) {
    for (size_t flow = 0; flow < flows_.size(); ++flow)
      if (flows_[flow].from == from && !flows_[flow].send_closed) flows_[flow].sent = sent[flow];
  };
  Poll(1);
  publish(0);
  bool backwards = false;
  for (size_t flow = 0; flow < flows_.size(); ++flow) {
    if (flows_[flow].from != 1) continue;
    sent[flow] = SendStatus(static_cast<int>(flow)).done_through;
    backwards = true;
  }
  if (backwards) Poll(0);
  publish(1);
  poll(nullptr, 0, 1);
}

std::byte* ProcessWorld::Allocate(End end, size_t bytes) {
  Process& process = processes_[end];
  std::byte* const data = process.memory + process.allocated;
  process.allocated += (bytes + kAlignment - 1) / kAlignment * kAlignment;
  EXPECT_LE(process.allocated, kMemoryBytes);
  SendCommand(end, {.kind = Command::Kind::kRegister, .offset = static_cast<uint64_t>(data - process.memory), .bytes = bytes});
  return data;
}

int ProcessWorld::Open(End from, int rail) {
  const int flow = static_cast<int>(flows_.size());
  EXPECT_LT(flow, kFlowsMax);
  flows_.push_back({.from = from});
  Answer answer{};
  if (!Ask(1 - from, {.kind = Command::Kind::kListen, .flow = flow}, &answer)) return flow;
  Command connect{.kind = Command::Kind::kConnect, .flow = flow, .rail = rail};
  std::memcpy(connect.handle, answer.handle, sizeof(connect.handle));
  if (Ask(from, connect, &answer)) {
    EXPECT_TRUE(answer.ok) << answer.error;
  }
  return flow;
}

FlowState ProcessWorld::StateOf(int flow, bool sender) const {
  const Flow& mine = flows_[static_cast<size_t>(flow)];
  if (sender ? mine.send_closed : mine.receive_closed) return FlowState::kClosed;
  return (sender ? SendStatus(flow) : ReceiveStatus(flow)).state;
}

void ProcessWorld::Send(int flow, const std::byte* data, size_t bytes) {
  const End end = EndOf(flow, true);
  SendCommand(end,
              {.kind = Command::Kind::kSend, .flow = flow, .offset = static_cast<uint64_t>(data - processes_[end].memory), .bytes = bytes});
}

void ProcessWorld::Receive(int flow, std::byte* data, size_t capacity) {
  const End end = EndOf(flow, false);
  SendCommand(
      end,
      {.kind = Command::Kind::kReceive, .flow = flow, .offset = static_cast<uint64_t>(data - processes_[end].memory), .bytes = capacity});
}

void ProcessWorld::Close(int flow, bool sender) {
  const End end = EndOf(flow, sender);
  Answer answer{};
  Ask(end, {.kind = sender ? Command::Kind::kCloseSend : Command::Kind::kCloseReceive, .flow = flow}, &answer);
  (sender ? flows_[static_cast<size_t>(flow)].send_closed : flows_[static_cast<size_t>(flow)].receive_closed) = true;
}

void ProcessWorld::EndProcess(End end) {
  Answer answer{};
  if (Ask(end, {.kind = Command::Kind::kEnd}, &answer)) Kill(end);
}

void ProcessWorld::Kill(End end) {
  Process& process = processes_[end];
  if (process.pid <= 0) return;
  kill(process.pid, SIGKILL);
  waitpid(process.pid, nullptr, 0);
  close(process.commands);
  process.pid = -1;
}

// Returns when it has stopped: every thread of it.
void ProcessWorld::StopProcess(End end) {
  kill(processes_[end].pid, SIGSTOP);
  int status = 0;
  ASSERT_EQ(waitpid(processes_[end].pid, &status, WUNTRACED), processes_[end].pid);
  ASSERT_TRUE(WIFSTOPPED(status));
  processes_[end].stopped = true;
}

void ProcessWorld::ContinueProcess(End end) {
  kill(processes_[end].pid, SIGCONT);
  processes_[end].stopped = false;
}

void ProcessWorld::KillProcess(End end, bool child_holds_sockets) {
  if (child_holds_sockets) {
    Answer answer{};
    ASSERT_TRUE(Ask(end, {.kind = Command::Kind::kForkHolder}, &answer) && answer.ok);
    holders_.push_back(answer.pid);
  }
  Kill(end);
}

void ProcessWorld::Publish(End end, const std::vector<Verdict>& verdicts) {
  Command command{.kind = Command::Kind::kPublish, .verdict_count = static_cast<int32_t>(verdicts.size())};
  ASSERT_LE(verdicts.size(), std::size(command.verdicts));
  std::copy(verdicts.begin(), verdicts.end(), command.verdicts);
  SendCommand(end, command);
}

void ProcessWorld::LoseDaemon(End end) { SendCommand(end, {.kind = Command::Kind::kLoseDaemon}); }

}  // namespace r2cc::contract
