// Test rig: three real daemons on loopback, used through their sockets only.
#ifndef R2CC_DAEMON_PROGRAM_R2CCD_RIG_H_
#define R2CC_DAEMON_PROGRAM_R2CCD_RIG_H_

#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "base/core/clock.h"
#include "base/core/hash.h"
#include "daemon/rpc/free_port.h"
#include "plan/page/attach.h"
#include "plan/page/page.h"
#include "plan/page/ring.h"
#include "plan/page/text.h"
#include "proto/r2cc.grpc.pb.h"

namespace r2cc::daemon {

constexpr char kBinary[] = "daemon/r2ccd";
constexpr int kNodes = 3;
// Generous: each wait ends as soon as what it waits for is there.
constexpr Nanos kPatience = 30 * kNanosPerSecond;
// The longest time of a verdict to the other nodes' pages before the design is in question; it takes about a millisecond.
constexpr Nanos kVerdictMax = 2 * kNanosPerSecond;

inline Nanos Now() { return SteadyClock().Now(); }

inline bool WaitUntil(const std::function<bool()>& there, Nanos patience = kPatience) {
  const Nanos end = Now() + patience;
  while (!there()) {
    if (Now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

inline std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline bool Ip(const std::string& arguments) { return std::system(("ip " + arguments + " 2>/dev/null").c_str()) == 0; }

// Makes a network namespace that `ip -n` and `ip netns exec` can use. Empty if that was done, and one line if this machine cannot have
// one: nothing is left then. In a plain chroot, for example, `ip` can make a namespace and cannot enter it.
inline std::string MakeNamespace(const std::string& name) {
  if (geteuid() != 0 || !Ip("netns add " + name)) return "needs root: makes a network namespace";
  if (Ip("netns exec " + name + " true")) return "";
  EXPECT_TRUE(Ip("netns delete " + name));
  return "needs root: makes a network namespace, and `ip netns exec` cannot enter it here";
}

// One run of the binary. Killed, if it still runs, in the destructor.
class Process {
 public:
  // `netns`: the name of the network namespace that it runs in; empty: the test's.
  Process(const std::vector<std::string>& arguments, const std::string& log, const std::string& netns = "") : log_(log) {
    std::vector<std::string> command = {kBinary};
    if (!netns.empty()) command = {"ip", "netns", "exec", netns, kBinary};
    command.insert(command.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& text : command) argv.push_back(text.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(out, 1);
      dup2(out, 2);
      execvp(argv[0], argv.data());
      _exit(127);
    }
  }
  ~Process() {
    if (pid_ > 0) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void Signal(int signal) { kill(pid_, signal); }
  // The exit status, or 128 + signal.
  int Wait() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  pid_t pid() const { return pid_; }
  bool alive() const {
    siginfo_t info{};
    return pid_ > 0 && waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid == 0;
  }
  std::string log() const { return ReadFile(log_); }

 private:
  const std::string log_;
  pid_t pid_;
};

// The plugin's end of the attach socket.
class Plugin {
 public:
  Plugin(const std::string& path, const std::vector<std::string>& addresses) : fd_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    if (connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) != 0) return;
    plan::AttachRequest request{};
    request.magic = plan::kAttachMagic;
    request.version = plan::kAttachVersion;
    request.pid = getpid();
    request.rail_count = static_cast<uint32_t>(addresses.size());
    plan::SetText("test", request.job);
    for (size_t i = 0; i < addresses.size(); ++i) plan::SetText(addresses[i], request.rails[i].name);
    if (send(fd_, &request, sizeof(request), MSG_NOSIGNAL) != static_cast<ssize_t>(sizeof(request))) return;
    ReadReply();
  }
  ~Plugin() { close(fd_); }

  bool attached() const { return page_ != nullptr; }
  const plan::AttachReply& reply() const { return reply_; }
  plan::EvidenceRingWriter& ring() { return *ring_; }
  void RingEvidence() { EXPECT_EQ(send(fd_, &plan::kDoorbellEvidence, 1, MSG_NOSIGNAL), 1); }

  // Waits for doorbells until the page has `state` for NODE/NIC; returns the time, or 0.
  Nanos AwaitState(const std::string& node, const std::string& nic, plan::PlannedState state, Nanos patience = kPatience) {
    const Nanos end = Now() + patience;
    for (;;) {
      page_->Refresh();
      const plan::PageEntry* entry = page_->copy().Find(Fnv1a64(node), Fnv1a64(nic));
      if (entry != nullptr && entry->state == static_cast<uint8_t>(state)) return Now();
      if (Now() > end) return 0;
      pollfd doorbell{fd_, POLLIN, 0};
      char byte;
      if (poll(&doorbell, 1, 100) == 1 && recv(fd_, &byte, 1, 0) == 0) return 0;
    }
  }
  uint16_t Weight(const std::string& node, const std::string& nic) {
    page_->Refresh();
    const plan::PageEntry* entry = page_->copy().Find(Fnv1a64(node), Fnv1a64(nic));
    return entry == nullptr ? 0xffff : entry->weight_permille;
  }
  bool DrainedFor(const std::string& job, const std::string& node, const std::string& nic) {
    page_->Refresh();
    return page_->copy().DrainedFor(job, node, nic);
  }
  Epoch epoch() {
    page_->Refresh();
    return page_->copy().epoch;
  }
  bool stale() { return page_->Stale(Now()); }

 private:
  void ReadReply() {
    iovec part{&reply_, sizeof(reply_)};
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    if (recvmsg(fd_, &message, MSG_CMSG_CLOEXEC) != static_cast<ssize_t>(sizeof(reply_)) || !plan::Valid(reply_)) return;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header == nullptr || header->cmsg_len != CMSG_LEN(2 * sizeof(int))) return;
    int descriptors[2];
    std::memcpy(descriptors, CMSG_DATA(header), sizeof(descriptors));
    std::string error;
    page_ = plan::PageReader::Open(descriptors[0], &error);
    EXPECT_NE(page_, nullptr) << error;
    ring_ = plan::EvidenceRingWriter::Open(descriptors[1], &error);
    EXPECT_NE(ring_, nullptr) << error;
  }

  int fd_;
  plan::AttachReply reply_{};
  std::unique_ptr<plan::PageReader> page_;
  std::unique_ptr<plan::EvidenceRingWriter> ring_;
};

class R2ccdTest : public testing::Test {
 protected:
  void SetUp() override {
    // In /tmp and not in TEST_TMPDIR: the path of a Unix socket has room for 107 bytes.
    folder_ = "/tmp/r2ccd-test.XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    for (int node = 0; node < nodes_; ++node) ports_.push_back(FreePort());
    for (int node = 0; node < nodes_; ++node) WriteConfig(node, "");
  }
  void TearDown() override {
    if (HasFailure())
      for (const auto& daemon : daemons_)
        if (daemon != nullptr) std::fprintf(stderr, "--- pid %d\n%s", daemon->pid(), daemon->log().c_str());
    daemons_.clear();
    std::filesystem::remove_all(folder_);
  }

  static std::string Node(int node) { return "n" + std::to_string(node); }
  std::string RunDir(int node) const { return folder_ + "/" + Node(node); }
  std::string ControlDir(int node) const { return RunDir(node) + "-control"; }
  // Before its start: every user reaches its control socket, as an operator may choose.
  void LetUsersIn(int node) const {
    std::filesystem::create_directories(ControlDir(node));
    std::filesystem::permissions(ControlDir(node), std::filesystem::perms(0755));
    std::filesystem::permissions(folder_, std::filesystem::perms(0755));
  }
  std::string StateDir(int node) const { return folder_ + "/" + Node(node) + "-kept"; }
  std::string ConfigFile(int node) const { return folder_ + "/" + Node(node) + ".conf"; }
  static std::string Address(int node, int rail) { return "127.7." + std::to_string(node + 1) + "." + std::to_string(rail + 1); }

  void WriteConfig(int node, const std::string& more) {
    std::ofstream file(ConfigFile(node));
    file << "node: \"" << Node(node) << "\"\nlisten: \"127.0.0.1:" << ports_[node] << "\"\n";
    for (int peer = 0; peer < nodes_; ++peer)
      file << "peers { node: \"" << Node(peer) << "\" address: \"127.0.0.1:" << ports_[peer] << "\" }\n";
    for (int rail = 0; rail < 2; ++rail) file << "nics { name: \"rail" << rail << "\" address: \"" << Address(node, rail) << "\" }\n";
    // A port of its own for each: several of them run on this machine.
    file << "store { embedded_node: \"n0\" }\ndrills { allow: true } http { " << http_ << " }\n" << trust_ << more;
  }

  std::vector<std::string> Arguments(int node) const {
    std::vector<std::string> arguments = {"--config", ConfigFile(node), "--run_dir", RunDir(node), "--state_dir", StateDir(node)};
    arguments.insert(arguments.end(), flags_.begin(), flags_.end());
    return arguments;
  }
  void StartDaemon(int node) {
    daemons_.resize(nodes_);
    daemons_[node] = std::make_unique<Process>(Arguments(node), RunDir(node) + ".log", netns_);
    ASSERT_TRUE(WaitUntil([&] { return Status(node).node() == Node(node) || !daemons_[node]->alive(); }) && daemons_[node]->alive())
        << daemons_[node]->log();
  }
  void StartAll() {
    for (int node = 0; node < nodes_; ++node) StartDaemon(node);
    for (int node = 0; node < nodes_; ++node) ASSERT_TRUE(AwaitPeers(node)) << Status(node).DebugString();
  }

  // It knows all nodes, and talks to them directly.
  bool AwaitPeers(int node) {
    return WaitUntil([&] {
      const auto status = Status(node);
      return status.nodes_size() == nodes_ &&
             std::all_of(status.peers().begin(), status.peers().end(), [](const v1::PeerStatus& peer) { return peer.connected(); });
    });
  }

  std::unique_ptr<v1::Control::Stub> Control(int node) {
    return v1::Control::NewStub(grpc::CreateChannel("unix:" + RunDir(node) + "/r2ccd.sock", grpc::InsecureChannelCredentials()));
  }
  v1::StatusReply Status(int node) {
    grpc::ClientContext context;
    v1::StatusReply reply;
    Control(node)->GetStatus(&context, v1::StatusRequest(), &reply);
    return reply;
  }
  // The error's text; "" if it was done.
  std::string Act(int asked, const std::string& node, const std::string& nic, v1::NicAction action, uint32_t weight = 0,
                  v1::NicActionReply* reply = nullptr) {
    grpc::ClientContext context;
    v1::NicActionRequest request;
    request.set_node(node);
    request.set_nic(nic);
    request.set_action(action);
    request.set_weight_permille(weight);
    v1::NicActionReply ignored;
    const grpc::Status status = Control(asked)->ActOnNic(&context, request, reply == nullptr ? &ignored : reply);
    return status.ok() ? "" : status.error_message();
  }
  std::vector<v1::Event> Events(int node, const std::string& kind) {
    grpc::ClientContext context;
    const auto stub = Control(node);
    const auto stream = stub->Events(&context, v1::EventsRequest());
    std::vector<v1::Event> events;
    for (v1::Event event; stream->Read(&event);)
      if (event.kind() == kind) events.push_back(event);
    EXPECT_TRUE(stream->Finish().ok());
    return events;
  }
  std::unique_ptr<Plugin> Attach(int node) {
    auto plugin = std::make_unique<Plugin>(RunDir(node) + "/attach.sock", std::vector<std::string>{Address(node, 0), Address(node, 1)});
    EXPECT_TRUE(plugin->attached()) << plugin->reply().reason;
    return plugin;
  }

  // How many probes of n0/rail0 were answered.
  uint64_t Answered() {
    uint64_t answered = 0;
    for (const char* const peer : {"n1", "n2"}) {
      grpc::ClientContext context;
      v1::ProbePathsRequest request;
      request.set_node("n0");
      request.set_peer(peer);
      v1::ProbePathsReply reply;
      EXPECT_TRUE(Control(0)->ProbePaths(&context, request, &reply).ok());
      for (const v1::PairStatus& pair : reply.pairs())
        if (pair.nic() == "rail0") answered += pair.answered();
    }
    return answered;
  }
  void AwaitAnswers(uint64_t more) {
    const uint64_t before = Answered();
    ASSERT_TRUE(WaitUntil([&] { return Answered() >= before + more; })) << "the rail's probes are not answered any more";
  }
  // n0 never called its rail0 FAILED.
  void ExpectSound() {
    for (const v1::Event& event : Events(0, "nic-state"))
      EXPECT_FALSE(event.node() == "n0" && event.nic() == "rail0" && event.to_state() == v1::FAILED) << event.DebugString();
  }

  // Runs the binary to its end.
  int Run(const std::vector<std::string>& arguments, std::string* output) {
    Process process(arguments, folder_ + "/run.log");
    const int code = process.Wait();
    *output = ReadFile(folder_ + "/run.log");
    return code;
  }

  std::string folder_;
  int nodes_ = kNodes;                      // set before SetUp
  std::string trust_ = "insecure: true\n";  // how the daemons know each other
  std::string http_ = "listen: \"127.0.0.1:0\"";
  std::string netns_;               // of daemons yet to be started
  std::vector<std::string> flags_;  // added to the usual flags
  std::vector<int> ports_;
  std::vector<std::unique_ptr<Process>> daemons_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_PROGRAM_R2CCD_RIG_H_
