// Which congestion control the connections of a job have, as the kernel tells it.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "tests/plugin/net_table.h"
#include "tests/plugin/own_process.h"
#include "tests/plugin/pair.h"

namespace r2cc::plugin_test {
namespace {

using abi::Result;

constexpr int kDescriptorsMax = 1024;

std::string SystemCongestionControl() {
  std::string name;
  std::ifstream("/proc/sys/net/ipv4/tcp_congestion_control") >> name;
  return name;
}

// The names that this process may ask for.
std::vector<std::string> Allowed() {
  std::ifstream names("/proc/sys/net/ipv4/tcp_allowed_congestion_control");
  return {std::istream_iterator<std::string>(names), {}};
}

// Of each connection of this process over a rail but the first, whose address the job's set-up uses too.
std::vector<std::string> OfRails() {
  std::vector<std::string> found;
  for (int fd = 0; fd < kDescriptorsMax; ++fd) {
    sockaddr_in peer;
    socklen_t length = sizeof(peer);
    if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &length) != 0 || peer.sin_family != AF_INET) continue;
    if (ntohl(peer.sin_addr.s_addr) <= INADDR_LOOPBACK) continue;
    char name[17] = "";
    length = sizeof(name) - 1;
    if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &length) == 0) found.emplace_back(name);
  }
  return found;
}

// In a job whose environment has R2CC_TCP_CONGESTION=`wanted` ("": nothing), no rail has another than one of `expected`.
void ExpectRailsToHave(const std::string& wanted, const std::vector<std::string>& expected) {
  OwnProcess::Environment environment;
  if (!wanted.empty()) environment["R2CC_TCP_CONGESTION"] = wanted;
  OwnProcess process(environment, [&] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
    void* context = nullptr;
    R2CC_MUST(net->Init(&context) == Result::kSuccess);
    Pair pair = Pair::Open(net.get(), context, 0);
    pair.Transfer(0, 1 << 20, 1 << 20);
    const std::vector<std::string> found = OfRails();
    R2CC_MUST(!found.empty());
    for (const std::string& name : found) {
      if (std::find(expected.begin(), expected.end(), name) != expected.end()) continue;
      std::fprintf(stderr, "a rail has '%s'\n", name.c_str());
      return 1;
    }
    pair.Close();
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
}

TEST(CongestionControl, AJobHasWhatItsEnvironmentAsksFor) {
  const std::string system = SystemCongestionControl();
  int tried = 0;
  for (const std::string& name : Allowed()) {
    if (name == system) continue;
    ExpectRailsToHave(name, {name});
    ++tried;
  }
  if (tried == 0) GTEST_SKIP() << "needs a second name in net.ipv4.tcp_allowed_congestion_control";
}

TEST(CongestionControl, AJobMayAskForTheSystems) { ExpectRailsToHave("system", {SystemCongestionControl()}); }

TEST(CongestionControl, AJobThatDoesNotAskHasTheSystemsButNeverBbr) {
  const std::string system = SystemCongestionControl();
  ExpectRailsToHave("", system.starts_with("bbr") ? std::vector<std::string>{"cubic", "reno"} : std::vector<std::string>{system});
}

TEST(CongestionControl, AnAlgorithmThatTheKernelRefusesIsAnErrorWithAdvice) {
  OwnProcess process({{"R2CC_TCP_CONGESTION", "nobody"}}, [] {
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
    void* context = nullptr;
    return net->Init(&context) == Result::kSuccess ? 1 : 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
  EXPECT_NE(process.text().find("R2CC_TCP_CONGESTION=nobody: not available to this process on this kernel; want system or one of"),
            std::string::npos)
      << process.text();
}

}  // namespace
}  // namespace r2cc::plugin_test
