// r2ccd as it is shipped, on soft-RoCE devices: cables that are pulled, a device that is taken away, RDMA that does not come through while
// IP does. In a guest.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/rigs/one_guest/rank_pair.h"

namespace r2cc::rig {
namespace {

using testing::AllOf;
using testing::HasSubstr;

const std::string kFolder = "/tmp/r2ccd-";

// What a soft-RoCE device has counted.
uint64_t Count(const std::string& device, const std::string& what) {
  std::ifstream file("/sys/class/infiniband/" + device + "/ports/1/hw_counters/" + what);
  uint64_t count = 0;
  file >> count;
  return count;
}

// A daemon of one node.
class Daemon {
 public:
  Daemon(const std::string& node, const std::string& config) : folder_(kFolder + node) {
    Shell("mkdir -p " + folder_);
    std::ofstream(Path("conf")) << config << "\n";
    pid_ = fork();
    if (pid_ == 0) {
      const int out = open(Path("log").c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
      dup2(out, STDOUT_FILENO);
      dup2(out, STDERR_FILENO);
      execl("daemon/r2ccd", "r2ccd", "--config", Path("conf").c_str(), "--run_dir", folder_.c_str(), "--state_dir", Path("state").c_str(),
            nullptr);
      _exit(127);
    }
  }
  ~Daemon() {
    kill(pid_, SIGTERM);
    int status = 0;
    waitpid(pid_, &status, 0);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
    if (testing::Test::HasFailure()) std::fprintf(stderr, "r2ccd said:\n%s\n", Log().c_str());
  }
  Daemon(const Daemon&) = delete;
  Daemon& operator=(const Daemon&) = delete;

  std::string Log() const {
    std::ifstream file(Path("log"));
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  // Says so from here on, or has since Mark().
  bool AwaitLine(const std::string& words) const {
    return Await([&] { return Log().find(words, mark_) != std::string::npos; });
  }
  void Mark() { mark_ = Log().size(); }
  std::string Asked(const std::string& command) const {
    std::string output;
    FILE* const out = popen(("client/r2ccctl --socket " + Path("r2ccd.sock") + " " + command + " 2>&1").c_str(), "r");
    std::array<char, 512> part{};
    while (fgets(part.data(), part.size(), out) != nullptr) output += part.data();
    EXPECT_EQ(pclose(out), 0) << output;
    return output;
  }

 private:
  std::string Path(const std::string& file) const { return folder_ + "/" + file; }

  const std::string folder_;
  pid_t pid_ = -1;
  size_t mark_ = 0;
};

TEST(DaemonInGuest, EventsOfDevicesAreEvidence) {
  Daemon a("a", R"(node: "a" listen: "127.0.0.1:7460" nics { name: "r0" interface: "v0a" } nics { name: "r1" interface: "v1a" })");
  for (const char* device : {"rxe0a", "rxe1a"})
    ASSERT_TRUE(a.AwaitLine(std::string("an RDMA device is watched device=") + device)) << device;

  // The interface goes down and the port with it: one verdict, and the port's word is its evidence.
  Shell("ip link set v0a down");
  ASSERT_TRUE(a.AwaitLine("a/r0: HEALTHY -> FAILED: link down"));
  Shell("ip link set v0a up");
  ASSERT_TRUE(a.AwaitLine("a/r0: PROVING -> HEALTHY"));
  EXPECT_THAT(a.Asked("nic why a/r0"),
              AllOf(HasSubstr("the RDMA device reports"), HasSubstr("RDMA port rxe0a/1: port"), HasSubstr("RDMA works again")));
  EXPECT_EQ(a.Log().find("-> DEGRADED"), std::string::npos);

  // The kernel waits until r2ccd has closed it.
  a.Mark();
  Shell("rdma link delete rxe1a");
  ASSERT_TRUE(a.AwaitLine("a/r1: HEALTHY -> DEGRADED: its RDMA device rxe1a is gone"));
  EXPECT_THAT(a.Asked("nic list --bad"), AllOf(HasSubstr("r1"), HasSubstr("DEGRADED"), HasSubstr("its RDMA device rxe1a is gone")));
  Shell("rdma link add rxe1a type rxe netdev v1a");
  ASSERT_TRUE(a.AwaitLine("a/r1: DEGRADED -> HEALTHY"));
}

// IP works and RDMA does not: packets to the port of RoCE are dropped where they come in at node b.
TEST(DaemonInGuest, TheNicsAreDegradedIfOnlyUdpIsAnswered) {
  const auto config = [](const std::string& node, int port, const std::string& peer, int peer_port) {
    return "node: \"" + node + "\" listen: \"127.0.0.1:" + std::to_string(port) + "\" insecure: true peers { node: \"" + peer +
           "\" address: \"127.0.0.1:" + std::to_string(peer_port) + "\" } nics { name: \"r0\" interface: \"v0" + node +
           "\" } nics { name: \"r1\" interface: \"v1" + node + "\" }";
  };
  Daemon a("a", config("a", 7460, "b", 7461));
  Daemon b("b", config("b", 7461, "a", 7460));
  const auto written = [&] { return Count("rxe0b", "rcvd_pkts"); };
  const uint64_t none = written();
  ASSERT_TRUE(Await([&] { return written() >= none + 10; })) << "no writes come in";

  constexpr char kRule[] = "pref 4 iif v0b ipproto udp dport 4791 blackhole";
  Shell(std::string("ip rule add ") + kRule);
  const int64_t begin = MonotonicNs();
  ASSERT_TRUE(a.AwaitLine("a/r0: HEALTHY -> DEGRADED: RDMA writes to b/r0 are not answered, UDP probes are"));
  ASSERT_TRUE(b.AwaitLine("b/r0: HEALTHY -> DEGRADED: RDMA writes to a/r0 are not answered, UDP probes are"));
  EXPECT_LE(MonotonicNs() - begin, 20'000'000'000);
  EXPECT_THAT(a.Asked("nic why a/r0"), HasSubstr("RDMA writes to b/r0 are not answered"));
  EXPECT_EQ(a.Log().find("a/r1: HEALTHY -> "), std::string::npos);

  Shell(std::string("ip rule del ") + kRule);
  const int64_t repaired = MonotonicNs();
  ASSERT_TRUE(a.AwaitLine("a/r0: DEGRADED -> HEALTHY"));
  ASSERT_TRUE(b.AwaitLine("b/r0: DEGRADED -> HEALTHY"));
  EXPECT_LE(MonotonicNs() - repaired, 30'000'000'000);
  std::printf("DEGRADED after %lld ms\n", static_cast<long long>((repaired - begin) / 1'000'000));
}

}  // namespace
}  // namespace r2cc::rig
