#include "tests/contract/tcp/lab.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <thread>
#include <utility>

namespace r2cc::contract {
namespace {

// A queue that holds 5 ms keeps what a cut loses small, and a 256 kB bucket lets a CPU that is late for a tick still reach line rate.
std::string Tbf(const std::string& interface, int64_t bytes_per_s) {
  return "qdisc replace dev " + interface + " root tbf rate " + std::to_string(bytes_per_s * 8) + "bit burst 256kb latency 5ms";
}

// The switch's end of a rail's cable.
std::string PortOf(End end, int rail) {
  return rail == kOob ? "m" + std::to_string(end) : "p" + std::to_string(end) + std::to_string(rail);
}

int NewNamespace(std::string* error) {
  int fd = -1;
  int failure = 0;
  std::thread thread([&] {
    if (unshare(CLONE_NEWNET) == 0) fd = open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC);
    failure = errno;
  });
  thread.join();
  if (fd < 0) *error = std::string("needs root: makes network namespaces (") + std::strerror(failure) + ")";
  return fd;
}

}  // namespace

std::string Lab::Interface(int rail) { return rail == kOob ? "mgmt0" : "rail" + std::to_string(rail); }
std::string Lab::Bridge(int rail) const { return rail == kOob ? "mgmt" : full_fabric_ ? "fabric" : "rail" + std::to_string(rail); }

std::unique_ptr<Lab> Lab::Make(bool full_fabric, std::string* error) {
  std::unique_ptr<Lab> lab(new Lab(full_fabric));
  return lab->Build(error) ? std::move(lab) : nullptr;
}

Lab::~Lab() {
  for (const int fd : namespaces_)
    if (fd >= 0) close(fd);
}

int Lab::OpenNamespace(End end) const { return fcntl(namespaces_[end], F_DUPFD_CLOEXEC, 0); }

bool Lab::Run(Namespace where, const std::string& program, const std::vector<std::string>& lines, std::string* error) const {
  std::string text;
  for (const std::string& line : lines) text += line + "\n";
  int in[2], err[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(err, O_CLOEXEC) != 0) return false;
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(in[0], STDIN_FILENO);
    dup2(err[1], STDERR_FILENO);
    if (setns(namespaces_[where], CLONE_NEWNET) == 0)
      execlp(program.c_str(), program.c_str(), program == "nft" ? "-f" : "-batch", "-", nullptr);
    _exit(127);
  }
  close(in[0]);
  close(err[1]);
  const bool written = write(in[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(in[1]);
  std::string complaint;
  char part[512];
  for (ssize_t n; (n = read(err[0], part, sizeof(part))) > 0;) complaint.append(part, static_cast<size_t>(n));
  close(err[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  if (written && WIFEXITED(status) && WEXITSTATUS(status) == 0) return true;
  *error = program + " failed: " + complaint;
  return false;
}

void Lab::Must(Namespace where, const std::string& program, const std::vector<std::string>& lines) const {
  std::string error;
  ASSERT_TRUE(Run(where, program, lines, &error)) << error;
}

void Lab::Write(int name_space, const std::string& file, const std::string& value) {
  std::thread thread([&] {
    if (setns(name_space, CLONE_NEWNET) != 0) return;
    const int fd = open(file.c_str(), O_WRONLY | O_CLOEXEC);
    const auto length = static_cast<ssize_t>(value.size());
    if (fd < 0 || write(fd, value.data(), value.size()) != length) ADD_FAILURE() << file << ": " << std::strerror(errno);
    if (fd >= 0) close(fd);
  });
  thread.join();
}

std::string Lab::SocketStatistics(Namespace where, std::vector<std::string> arguments) const {
  arguments.insert(arguments.begin(), "ss");
  int out[2];
  if (pipe2(out, O_CLOEXEC) != 0) return "";
  const pid_t pid = fork();
  if (pid == 0) {
    dup2(out[1], STDOUT_FILENO);
    // With -K it complains of other families, on which it then does nothing.
    close(STDERR_FILENO);
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    if (setns(namespaces_[where], CLONE_NEWNET) == 0) execvp(argv[0], argv.data());
    _exit(127);
  }
  close(out[1]);
  std::string text;
  char part[512];
  for (ssize_t n; (n = read(out[0], part, sizeof(part))) > 0;) text.append(part, static_cast<size_t>(n));
  close(out[0]);
  int status = 0;
  waitpid(pid, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "ss failed";
  return text;
}

void Lab::LimitBacklog(End end, int connections) { Write(namespaces_[end], "/proc/sys/net/core/somaxconn", std::to_string(connections)); }

void Lab::ResetOob(End end) {
  const std::string closed = SocketStatistics(static_cast<Namespace>(end), {"-HKt", "state", "established", "src", Address(end, kOob)});
  ASSERT_NE(closed, "") << "nothing was reset";
}

int Lab::WaitingOob(End end) const {
  std::istringstream line(SocketStatistics(static_cast<Namespace>(end), {"-Hltn", "src", Address(end, kOob)}));
  std::string state;
  int waiting = -1;
  line >> state >> waiting;
  EXPECT_GE(waiting, 0) << "nobody listens";
  return waiting;
}

// Each renumbering goes on by ten.
std::string Lab::Address(End end, int rail) const {
  if (rail == kOob) return "10.200.0." + std::to_string(end + 1);
  return "10.10." + std::to_string(rail) + "." + std::to_string(end + 1 + 10 * StateOf(end, rail).moves);
}

// Policy routes: a rail's traffic leaves by that rail, whichever rail of the other node it goes to. The kernel drops them with the link.
std::vector<std::string> Lab::Routes(End end, int rail) const {
  if (!full_fabric_ || rail == kOob) return {};
  const std::string table = std::to_string(100 + rail);
  const std::string route = "route replace 10.10.0.0/16 dev " + Interface(rail) + " src " + Address(end, rail);
  return {route + " table " + table, route + " metric " + table};
}

std::vector<std::string> Lab::Cable(End end, int rail) const {
  const std::string node = "/proc/" + std::to_string(getpid()) + "/fd/" + std::to_string(namespaces_[end]);
  return {"link add " + PortOf(end, rail) + " mtu 9000 type veth peer name " + Interface(rail) + " mtu 9000 netns " + node,
          "link set " + PortOf(end, rail) + " master " + Bridge(rail) + " up"};
}

std::vector<std::string> Lab::Configuration(End end, int rail) const {
  const bool policy = full_fabric_ && rail != kOob;
  std::vector<std::string> lines = {
      "link set " + Interface(rail) + " up",
      "addr add " + Address(end, rail) + (policy ? "/16" : "/24") + " dev " + Interface(rail) + (policy ? " noprefixroute" : "")};
  const auto routes = Routes(end, rail);
  lines.insert(lines.end(), routes.begin(), routes.end());
  return lines;
}

bool Lab::Build(std::string* error) {
  for (int& fd : namespaces_)
    if (fd = NewNamespace(error); fd < 0) return false;
  std::vector<std::string> fabric;
  for (int rail = kOob; rail < kRails; ++rail) {
    if (rail > 0 && full_fabric_) break;
    fabric.push_back("link add " + Bridge(rail) + " mtu 9000 type bridge forward_delay 0 mcast_snooping 0");
    fabric.push_back("link set " + Bridge(rail) + " up");
  }
  for (End end = 0; end < 2; ++end)
    for (int rail = kOob; rail < kRails; ++rail) {
      const auto lines = Cable(end, rail);
      fabric.insert(fabric.end(), lines.begin(), lines.end());
    }
  if (!Run(kFabric, "ip", fabric, error)) return *error = "needs root: " + *error, false;
  for (End end = 0; end < 2; ++end) {
    if (full_fabric_) {
      // A node answers for an address on its own interface alone.
      for (const auto& [name, value] : {std::pair("arp_ignore", "1"), {"arp_announce", "2"}, {"rp_filter", "0"}})
        Write(namespaces_[end], std::string("/proc/sys/net/ipv4/conf/all/") + name, value);
    }
    std::vector<std::string> lines = {"link set lo up"};
    for (int rail = kOob; rail < kRails; ++rail) {
      const auto more = Configuration(end, rail);
      lines.insert(lines.end(), more.begin(), more.end());
      if (full_fabric_ && rail != kOob) lines.push_back("rule add from " + Address(end, rail) + " lookup " + std::to_string(100 + rail));
    }
    if (!Run(static_cast<Namespace>(end), "ip", lines, error)) return false;
  }
  return true;
}

void Lab::Cut(End end, int rail) {
  Must(static_cast<Namespace>(end), "ip", {"link set " + Interface(rail) + " down"});
  StateOf(end, rail).cut = true;
}

void Lab::Silence(End end, int rail) {
  Must(kFabric, "ip", {"link set " + PortOf(end, rail) + " nomaster"});
  StateOf(end, rail).silenced = true;
}

int Lab::BusiestPort(End end, int rail) const {
  std::istringstream lines(SocketStatistics(static_cast<Namespace>(end), {"-HtinO", "state", "established", "src", Address(end, rail)}));
  int busiest = 0;
  uint64_t most_bytes = 0;
  for (std::string line; std::getline(lines, line);) {
    // Behind the address stands the device that the socket is tied to.
    const size_t port = line.find(':', line.find(Address(end, rail))), acked = line.find("bytes_acked:");
    if (port == std::string::npos || acked == std::string::npos) continue;
    const uint64_t bytes = std::strtoull(line.c_str() + acked + std::strlen("bytes_acked:"), nullptr, 10);
    if (bytes <= most_bytes) continue;
    most_bytes = bytes;
    busiest = std::atoi(line.c_str() + port + 1);
  }
  return busiest;
}

// Lost where it arrives: what the other end's kernel never sees.
bool Lab::Lose(End end, int rail, Loss loss) {
  if (loss == Loss::kCompletions) return false;  // a kernel does not forget what it acknowledges
  const auto where = static_cast<Namespace>(1 - end);
  const std::string table = "netdev lost_" + std::to_string(rail);
  if (std::exchange(StateOf(end, rail).loses, loss != Loss::kNothing)) Must(where, "nft", {"delete table " + table});
  if (loss == Loss::kNothing) return true;
  const int port = loss == Loss::kOneConnection ? BusiestPort(end, rail) : 0;
  EXPECT_TRUE(loss == Loss::kLargePackets || port > 0) << "no connection";
  const std::string match = loss == Loss::kLargePackets ? "meta length > 1500" : "tcp sport " + std::to_string(port);
  Must(where, "nft",
       {"add table " + table, "add chain " + table + " lost { type filter hook ingress device " + Interface(rail) + " priority 0; }",
        "add rule " + table + " lost " + match + " drop"});
  return true;
}

void Lab::Heal(End end, int rail) {
  RailState& state = StateOf(end, rail);
  if (state.loses) Lose(end, rail, Loss::kNothing);
  if (state.silenced) Must(kFabric, "ip", {"link set " + PortOf(end, rail) + " master " + Bridge(rail)});
  if (state.cut) {
    std::vector<std::string> lines = {"link set " + Interface(rail) + " up"};
    const auto routes = Routes(end, rail);
    lines.insert(lines.end(), routes.begin(), routes.end());
    Must(static_cast<Namespace>(end), "ip", lines);
  }
  state.silenced = state.cut = false;
}

void Lab::Renumber(End end, int rail) {
  ASSERT_FALSE(full_fabric_);
  const std::string before = Address(end, rail);
  ++StateOf(end, rail).moves;
  Must(static_cast<Namespace>(end), "ip",
       {"addr add " + Address(end, rail) + "/24 dev " + Interface(rail), "addr del " + before + "/24 dev " + Interface(rail),
        // The kernel deletes what it takes for an alias of the first address.
        "addr replace " + Address(end, rail) + "/24 dev " + Interface(rail)});
}

void Lab::Remake(End end, int rail) {
  Must(kFabric, "ip", {"link del " + PortOf(end, rail)});
  Must(kFabric, "ip", Cable(end, rail));
  Must(static_cast<Namespace>(end), "ip", Configuration(end, rail));
  if (const int64_t bytes_per_s = StateOf(end, rail).bytes_per_s; bytes_per_s > 0) Shape(end, rail, bytes_per_s);
}

void Lab::Shape(End end, int rail, int64_t bytes_per_s) {
  Must(static_cast<Namespace>(end), "tc", {Tbf(Interface(rail), bytes_per_s)});
  Must(kFabric, "tc", {Tbf(PortOf(end, rail), bytes_per_s)});
  StateOf(end, rail).bytes_per_s = bytes_per_s;
}

void Lab::Reset(int64_t rail_bytes_per_s) {
  std::vector<std::string> lines[kNamespaces];
  for (End end = 0; end < 2; ++end)
    for (int rail = kOob; rail < kRails; ++rail) {
      RailState& state = StateOf(end, rail);
      if (state.cut || state.silenced || state.loses) Heal(end, rail);
      if (rail == kOob || state.bytes_per_s == rail_bytes_per_s) continue;
      lines[end].push_back(Tbf(Interface(rail), rail_bytes_per_s));
      lines[kFabric].push_back(Tbf(PortOf(end, rail), rail_bytes_per_s));
      state.bytes_per_s = rail_bytes_per_s;
    }
  for (int where = 0; where < kNamespaces; ++where)
    if (!lines[where].empty()) Must(static_cast<Namespace>(where), "tc", lines[where]);
}

}  // namespace r2cc::contract
