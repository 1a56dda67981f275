#include "tests/plugin/foreign_caller.h"

#include <dirent.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include "tests/plugin/own_process.h"

namespace r2cc::plugin_test {
namespace {

constexpr double kAnswerLimitS = 30;

std::set<std::string> SocketInodesOf(pid_t pid) {
  std::set<std::string> inodes;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fd";
  DIR* entries = opendir(folder.c_str());
  if (entries == nullptr) return inodes;
  while (const dirent* entry = readdir(entries)) {
    char target[64] = {};
    if (readlink((folder + "/" + entry->d_name).c_str(), target, sizeof(target) - 1) <= 0) continue;
    const std::string text = target;
    if (text.rfind("socket:[", 0) == 0) inodes.insert(text.substr(8, text.size() - 9));
  }
  closedir(entries);
  return inodes;
}

}  // namespace

std::vector<sockaddr_in> ListenersOf(pid_t pid) {
  const std::set<std::string> inodes = SocketInodesOf(pid);
  std::vector<sockaddr_in> listeners;
  std::ifstream table("/proc/" + std::to_string(pid) + "/net/tcp");
  std::string line;
  std::getline(table, line);
  while (std::getline(table, line)) {
    std::istringstream words(line);
    std::string slot, local, remote, state, queues, timer, retransmits, user, timeout, inode;
    words >> slot >> local >> remote >> state >> queues >> timer >> retransmits >> user >> timeout >> inode;
    if (state != "0A" || !inodes.contains(inode)) continue;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = static_cast<in_addr_t>(std::stoul(local.substr(0, 8), nullptr, 16));
    address.sin_port = htons(static_cast<uint16_t>(std::stoul(local.substr(9), nullptr, 16)));
    listeners.push_back(address);
  }
  return listeners;
}

size_t ResidentPeakBytes(pid_t pid) {
  std::ifstream status("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(status, line);)
    if (line.rfind("VmHWM:", 0) == 0) return std::strtoull(line.c_str() + 6, nullptr, 10) * 1024;
  return 0;
}

ForeignCaller::ForeignCaller(const sockaddr_in& to) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
  if (connect(fd_, reinterpret_cast<const sockaddr*>(&to), sizeof(to)) != 0) Close();
}

void ForeignCaller::Close() {
  if (fd_ >= 0) close(fd_);
  fd_ = -1;
}

bool ForeignCaller::Send(std::span<const uint8_t> bytes) {
  while (!bytes.empty()) {
    const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (n <= 0) return false;
    bytes = bytes.subspan(static_cast<size_t>(n));
  }
  return true;
}

bool ForeignCaller::Greet(const net::Hello& hello, net::HelloReply* reply) {
  if (!Send(net::Encode(hello))) return false;
  net::Bytes packet;
  for (const double until = NowS() + kAnswerLimitS; NowS() < until;) {
    const size_t length = net::PacketLength(packet);
    if (length > net::kPacketBytesMax) return false;
    if (length > 0 && packet.size() >= length) return net::Decode(packet, reply);
    pollfd ready{fd_, POLLIN, 0};
    if (poll(&ready, 1, 100) <= 0) continue;
    // No byte more than the answer: what follows belongs to whoever goes on.
    const size_t want = packet.size() < net::kPacketHeaderBytes ? net::kPacketHeaderBytes - packet.size() : length - packet.size();
    const size_t had = packet.size();
    packet.resize(had + want);
    const ssize_t n = recv(fd_, packet.data() + had, want, 0);
    if (n <= 0) return false;
    packet.resize(had + static_cast<size_t>(n));
  }
  return false;
}

bool ForeignCaller::AwaitHangUp(double limit_s) {
  for (const double until = NowS() + limit_s; NowS() < until;) {
    pollfd ready{fd_, POLLIN, 0};
    if (poll(&ready, 1, 100) <= 0) continue;
    char buffer[4096];
    const ssize_t n = recv(fd_, buffer, sizeof(buffer), 0);
    if (n == 0 || (n < 0 && errno != EINTR)) return true;
  }
  return false;
}

}  // namespace r2cc::plugin_test
