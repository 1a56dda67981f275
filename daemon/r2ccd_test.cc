// The real binary, three of them on loopback, spoken to through their sockets alone.
#include <fcntl.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
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
#include "plan/page/attach.h"
#include "plan/page/page.h"
#include "plan/page/ring.h"
#include "plan/page/text.h"
#include "proto/r2cc.grpc.pb.h"

namespace r2cc::daemon {
namespace {

constexpr char kBinary[] = "daemon/r2ccd";
constexpr int kNodes = 3;
// Generous: each wait ends as soon as what it waits for is there.
constexpr Nanos kPatience = 30 * kNanosPerSecond;
// What a verdict may take to the other nodes' pages before something is wrong with the design; it is about a millisecond.
constexpr Nanos kVerdictMax = 2 * kNanosPerSecond;

Nanos Now() { return SteadyClock().Now(); }

bool WaitUntil(const std::function<bool()>& there, Nanos patience = kPatience) {
  const Nanos end = Now() + patience;
  while (!there()) {
    if (Now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// Free at the time of asking; listening daemons name a port that was taken meanwhile.
int FreePort() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  close(fd);
  return ntohs(address.sin_port);
}

// One run of the binary. Killed, if it still runs, in the destructor.
class Process {
 public:
  Process(const std::vector<std::string>& arguments, const std::string& log) : log_(log) {
    std::vector<char*> argv = {const_cast<char*>(kBinary)};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      const int out = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(out, 1);
      dup2(out, 2);
      execv(kBinary, argv.data());
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
  plan::RingWriter& ring() { return *ring_; }
  void RingEvidence() { EXPECT_EQ(send(fd_, &plan::kDoorbellEvidence, 1, MSG_NOSIGNAL), 1); }

  // Waits for doorbells until the page says `state` of NODE/NIC; when that was, or 0.
  Nanos AwaitState(const std::string& node, const std::string& nic, plan::NicState state, Nanos patience = kPatience) {
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
    ring_ = plan::RingWriter::Open(descriptors[1], &error);
    EXPECT_NE(ring_, nullptr) << error;
  }

  int fd_;
  plan::AttachReply reply_{};
  std::unique_ptr<plan::PageReader> page_;
  std::unique_ptr<plan::RingWriter> ring_;
};

class R2ccdTest : public testing::Test {
 protected:
  void SetUp() override {
    // In /tmp whatever TEST_TMPDIR says: the path of a Unix socket has room for 107 bytes.
    folder_ = "/tmp/r2ccd-test.XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    for (int node = 0; node < kNodes; ++node) ports_.push_back(FreePort());
    for (int node = 0; node < kNodes; ++node) WriteConfig(node, "");
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
  std::string ConfigFile(int node) const { return folder_ + "/" + Node(node) + ".conf"; }
  static std::string Address(int node, int rail) { return "127.7." + std::to_string(node + 1) + "." + std::to_string(rail + 1); }

  void WriteConfig(int node, const std::string& more) {
    std::ofstream file(ConfigFile(node));
    file << "node: \"" << Node(node) << "\"\nlisten: \"127.0.0.1:" << ports_[node] << "\"\n";
    for (int peer = 0; peer < kNodes; ++peer) file << "peers { node: \"" << Node(peer) << "\" address: \"127.0.0.1:" << ports_[peer] << "\" }\n";
    for (int rail = 0; rail < 2; ++rail) file << "nics { name: \"rail" << rail << "\" address: \"" << Address(node, rail) << "\" }\n";
    file << "store { embedded_node: \"n0\" }\n" << more;
  }

  void StartDaemon(int node) {
    daemons_.resize(kNodes);
    daemons_[node] = std::make_unique<Process>(std::vector<std::string>{"--config", ConfigFile(node), "--run_dir", RunDir(node)}, RunDir(node) + ".log");
    ASSERT_TRUE(WaitUntil([&] { return Status(node).node() == Node(node); })) << daemons_[node]->log();
  }
  void StartAll() {
    for (int node = 0; node < kNodes; ++node) StartDaemon(node);
    for (int node = 0; node < kNodes; ++node)
      ASSERT_TRUE(WaitUntil([&] {
        const auto status = Status(node);
        return status.nodes_size() == kNodes && status.peers(0).connected() && status.peers(1).connected();
      })) << Status(node).DebugString();
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
  std::string Act(int asked, const std::string& node, const std::string& nic, v1::NicAction action, uint32_t weight = 0, v1::NicActionReply* reply = nullptr) {
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

  // Runs the binary to its end.
  int Run(const std::vector<std::string>& arguments, std::string* output) {
    Process process(arguments, folder_ + "/run.log");
    const int code = process.Wait();
    *output = ReadFile(folder_ + "/run.log");
    return code;
  }

  std::string folder_;
  std::vector<int> ports_;
  std::vector<std::unique_ptr<Process>> daemons_;
};

TEST_F(R2ccdTest, AWordToOneDaemonIsInAllPages) {
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
      const Nanos seen = plugins[node]->AwaitState("n1", "rail0", plan::NicState::kFailed);
      EXPECT_NE(seen, 0) << "n" << node << " in round " << round;
      EXPECT_LT(seen - begin, kVerdictMax);
      if (node != 1) latencies.push_back(seen - begin);
    }
    asker.join();
    EXPECT_EQ(plugins[2]->Weight("n1", "rail0"), 0);
    EXPECT_EQ(Act(2, "n1", "rail0", v1::RESTORE), "");
    for (int node = 0; node < kNodes; ++node) EXPECT_NE(plugins[node]->AwaitState("n1", "rail0", plan::NicState::kHealthy), 0);
  }
  std::sort(latencies.begin(), latencies.end());
  std::printf("fail-nic on another node, from the request to the other nodes' pages: median %.2f ms, worst %.2f ms of %zu\n",
              latencies[latencies.size() / 2] / 1e6, latencies.back() / 1e6, latencies.size());

  v1::NicActionReply reply;
  EXPECT_EQ(Act(0, "n2", "rail1", v1::SET_WEIGHT, 250, &reply), "");
  EXPECT_EQ(reply.nic().operator_weight_permille(), 250u);
  EXPECT_TRUE(WaitUntil([&] { return plugins[0]->Weight("n2", "rail1") == 250 && plugins[1]->Weight("n2", "rail1") == 250; }));
  EXPECT_EQ(Act(1, "n1", "rail1", v1::DRAIN), "");
  EXPECT_NE(plugins[0]->AwaitState("n1", "rail1", plan::NicState::kDrained), 0);
  EXPECT_EQ(Act(1, "n1", "rail1", v1::UNDRAIN), "");
  EXPECT_NE(plugins[0]->AwaitState("n1", "rail1", plan::NicState::kHealthy), 0);

  EXPECT_EQ(Act(0, "n1", "rail9", v1::FAIL), "node n1 has no NIC 'rail9'; it has rail0 rail1");
  EXPECT_EQ(Act(0, "n9", "rail0", v1::FAIL), "there is no node 'n9'; the nodes are n0 n1 n2");
  EXPECT_EQ(Act(0, "n0", "rail0", v1::SET_WEIGHT, 1001), "weight 1001 is out of range; it is from 0 to 1000 permille");
}

TEST_F(R2ccdTest, AJobsEvidenceBecomesEventsAndSums) {
  StartDaemon(0);
  const auto plugin = Attach(0);
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceKind::kLinkFenced);
  record.cause = static_cast<uint32_t>(plan::EvidenceCause::kLinkDown);
  record.time_ns = Now();
  record.local_rail = 1;
  record.replayed_bytes = 12345;
  record.duration_ns = 678;
  plan::SetText("n1", record.peer_node);
  plan::SetText("rail1", record.peer_nic);
  ASSERT_TRUE(plugin->ring().Put(record));
  record.kind = static_cast<uint32_t>(plan::EvidenceKind::kRailTotals);
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
  EXPECT_EQ(event.message(), "drain n0/rail0");
  context.TryCancel();
  EXPECT_FALSE(stream->Finish().ok());
}

TEST_F(R2ccdTest, ARestartedDaemonKeepsTheOperatorsWordAndIsLater) {
  StartAll();
  for (const int how : {SIGTERM, SIGKILL}) {
    const auto witness = Attach(0);
    auto plugin = Attach(1);
    EXPECT_EQ(Act(1, "n1", "rail1", v1::SET_WEIGHT, how == SIGTERM ? 400 : 600), "");
    EXPECT_EQ(Act(1, "n1", "rail0", v1::DRAIN), "");
    EXPECT_NE(witness->AwaitState("n1", "rail0", plan::NicState::kDrained), 0);
    const Epoch before = plugin->epoch();
    daemons_[1]->Signal(how);
    EXPECT_EQ(daemons_[1]->Wait(), how == SIGTERM ? 0 : 128 + SIGKILL) << daemons_[1]->log();
    struct stat file {};
    EXPECT_EQ(stat((RunDir(1) + "/attach.sock").c_str(), &file) != 0, how == SIGTERM) << "an orderly end takes its sockets along";
    EXPECT_TRUE(WaitUntil([&] { return !Status(0).peers(0).connected(); }));
    EXPECT_EQ(witness->Weight("n1", "rail0"), 0) << "the last view stays";

    StartDaemon(1);
    plugin = Attach(1);
    EXPECT_GT(plugin->epoch(), before);
    EXPECT_NE(plugin->AwaitState("n1", "rail0", plan::NicState::kDrained), 0);
    EXPECT_EQ(plugin->Weight("n1", "rail1"), how == SIGTERM ? 400 : 600);
    EXPECT_TRUE(WaitUntil([&] { return Status(0).peers(0).connected(); })) << Status(0).DebugString();
    EXPECT_EQ(Act(0, "n1", "rail0", v1::UNDRAIN), "");
    EXPECT_NE(witness->AwaitState("n1", "rail0", plan::NicState::kHealthy), 0) << "a restarted daemon's words are later, not older";
  }
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
  EXPECT_NE(plugin->AwaitState("n1", "rail0", plan::NicState::kFailed), 0);
  const std::string error = Act(2, "n0", "rail0", v1::FAIL);
  EXPECT_EQ(error.rfind("node n0 (127.0.0.1:", 0), 0u) << error;
  StartDaemon(0);
  EXPECT_TRUE(WaitUntil([&] { return Status(1).store() == "connected to n0" && Status(2).store() == "connected to n0"; }));
  EXPECT_TRUE(WaitUntil([&] { return Status(0).nodes_size() == kNodes; }));
}

TEST_F(R2ccdTest, TheStoreTellsOfNodesThatAreNoPeers) {
  // n1 and n2 have only n0 as a peer, whose store tells each of the other.
  for (const int node : {1, 2}) {
    std::ofstream(ConfigFile(node)) << "node: \"" << Node(node) << "\"\nlisten: \"127.0.0.1:" << ports_[node] << "\"\npeers { node: \"n0\" address: \"127.0.0.1:"
                                    << ports_[0] << "\" }\nnics { name: \"rail0\" address: \"" << Address(node, 0) << "\" }\nstore { embedded_node: \"n0\" }\n";
  }
  for (int node = 0; node < kNodes; ++node) StartDaemon(node);
  EXPECT_TRUE(WaitUntil([&] { return Status(1).nodes_size() == kNodes && Status(2).nodes_size() == kNodes; }));
  Plugin plugin(RunDir(1) + "/attach.sock", {Address(1, 0)});
  ASSERT_TRUE(plugin.attached());
  EXPECT_EQ(Act(2, "n2", "rail0", v1::FAIL), "");
  EXPECT_NE(plugin.AwaitState("n2", "rail0", plan::NicState::kFailed), 0);
  EXPECT_EQ(Act(1, "n2", "rail0", v1::RESTORE), "node n2 is not a configured peer of this daemon; ask a daemon that has it, or its own");
}

TEST_F(R2ccdTest, ASecondDaemonIsRefusedAndTheFirstGoesOn) {
  StartDaemon(0);
  const auto plugin = Attach(0);
  std::string output;
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--run_dir", RunDir(0)}, &output), 1);
  EXPECT_EQ(output, "r2ccd: " + RunDir(0) + "/r2ccd.sock is held by the r2ccd with pid " + std::to_string(daemons_[0]->pid()) +
                        ": stop that one first, or give this one another --run_dir\n");
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--run_dir", RunDir(1), "--log_level", "error"}, &output), 1);
  EXPECT_EQ(output, "r2ccd: cannot listen for peers on 127.0.0.1:" + std::to_string(ports_[0]) + ": Address already in use; set listen in the configuration\n");
  EXPECT_EQ(Act(0, "n0", "rail0", v1::DRAIN), "");
  EXPECT_NE(plugin->AwaitState("n0", "rail0", plan::NicState::kDrained), 0);
  Attach(0);
}

TEST_F(R2ccdTest, WrongFlagsAndFilesAreToldInOneLine) {
  std::string output;
  EXPECT_EQ(Run({"--frobnicate"}, &output), 2);
  EXPECT_EQ(output, "r2ccd: The following argument was not expected: --frobnicate; see r2ccd --help\n");
  EXPECT_EQ(Run({"--log_level", "loud"}, &output), 2);
  EXPECT_EQ(Run({"--config", "/nonexistent.conf"}, &output), 1);
  EXPECT_EQ(output, "r2ccd: cannot read /nonexistent.conf: No such file or directory\n");
  WriteConfig(0, "nics { name: \"x\" interface: \"nosuch0\" }\n");
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--run_dir", RunDir(0), "--check_config"}, &output), 1);
  EXPECT_EQ(output.rfind("r2ccd: " + ConfigFile(0) + ":9: NIC x: there is no interface 'nosuch0' on this machine; it has ", 0), 0u) << output;
  WriteConfig(0, "tls { certificate_file: \"/nonexistent.pem\" key_file: \"k\" ca_file: \"c\" }\n");
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--check_config"}, &output), 1);
  EXPECT_EQ(output, "r2ccd: " + ConfigFile(0) + ": tls: cannot read /nonexistent.pem: No such file or directory\n");
  WriteConfig(0, "}");
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--check_config"}, &output), 1);
  EXPECT_EQ(output.rfind("r2ccd: " + ConfigFile(0) + ":9: ", 0), 0u) << output;
  WriteConfig(0, "");
  EXPECT_EQ(Run({"--config", ConfigFile(0), "--check_config"}, &output), 0);
  EXPECT_EQ(output, ConfigFile(0) + ": ok: node n0, 2 NICs, 2 peers\n");
  EXPECT_EQ(Run({"--run_dir", "/nonexistent/deeper", "--node", "x"}, &output), 1);
  EXPECT_NE(output.find("r2ccd: cannot make the run directory /nonexistent/deeper (--run_dir): No such file or directory\n"), std::string::npos) << output;
}

TEST_F(R2ccdTest, WithTlsOnlyThoseWithACertificateAreHeard) {
  const auto shell = [&](const std::string& command) { return std::system(("cd " + folder_ + " && (" + command + ") >openssl.log 2>&1").c_str()); };
  ASSERT_EQ(shell("openssl version"), 0) << "needs the openssl program, which ca-certificates brings along";
  ASSERT_EQ(shell("openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=ca -keyout ca.key -out ca.pem"), 0) << ReadFile(folder_ + "/openssl.log");
  for (int node = 0; node < kNodes; ++node) {
    const std::string name = Node(node);
    ASSERT_EQ(shell("openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=" + name + " -keyout " + name + ".key -out " + name + ".csr && printf 'subjectAltName=DNS:" +
                    name + "' > " + name + ".ext && openssl x509 -req -in " + name + ".csr -CA ca.pem -CAkey ca.key -CAcreateserial -days 2 -extfile " + name + ".ext -out " + name + ".pem"),
              0)
        << ReadFile(folder_ + "/openssl.log");
  }
  for (int node = 0; node < kNodes; ++node)
    WriteConfig(node, "tls { certificate_file: \"" + folder_ + "/" + Node(node) + ".pem\" key_file: \"" + folder_ + "/" + Node(node) + ".key\" ca_file: \"" + folder_ + "/ca.pem\" }\n");
  StartAll();
  const auto plugin = Attach(0);
  EXPECT_EQ(Act(2, "n1", "rail0", v1::FAIL), "");
  EXPECT_NE(plugin->AwaitState("n1", "rail0", plan::NicState::kFailed), 0);

  const auto stranger = v1::Peer::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(ports_[0]), grpc::InsecureChannelCredentials()));
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(5));
  v1::NicActionRequest request;
  request.set_node("n0");
  request.set_nic("rail0");
  request.set_action(v1::FAIL);
  v1::NicActionReply reply;
  EXPECT_FALSE(stranger->ActOnNic(&context, request, &reply).ok());
  EXPECT_EQ(plugin->Weight("n0", "rail0"), 1000);
}

}  // namespace
}  // namespace r2cc::daemon
