// Processes that are attached to an r2ccd as a job's are, each with the plugin's end of the attach socket, and when each saw a NIC lost.
//
//   attached SOCKET ADDRESS COUNT NODES
//
// Forks COUNT processes of the rail ADDRESS; they watch NIC rail0 of each of n0 to n(NODES-1). Prints "ready" when all are attached. For
// each line `NODE SINCE_NS` of its input it prints when (CLOCK_MONOTONIC, ns) the last process saw the weight of n(NODE)/rail0 become 0
// after SINCE_NS, or -1 if that took more than a minute. Ends with its input, and its processes with it.
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/attach/attach_client.h"
#include "netplugin/attach/attach_packets.h"

namespace r2cc {
namespace {

Nanos Now() { return SteadyClock().Now(); }

constexpr Nanos kPatience = 60 * kNanosPerSecond;
// The daemon's doorbell wakes a process; it looks a little later anyway, as the plugin does.
constexpr int kLookMs = 1000;

// Of one process, in memory that all share; followed by a time for each node.
struct Seen {
  std::atomic<bool> attached;
  std::atomic<Nanos> lost[];
};

[[noreturn]] void Attach(const std::string& socket, const std::string& address, size_t nodes, Seen* seen) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  net::Rail rail;
  rail.name = address;
  net::AttachClient client(socket, net::MakeAttachRequest("load", getpid(), static_cast<uint64_t>(getpid()), {rail}, "bench"),
                           [](net::LogLevel, const std::string& line) { std::fprintf(stderr, "%s\n", line.c_str()); });
  std::vector<int> weights(nodes, -1);
  for (;;) {
    const Nanos now = Now();
    client.Poll(now);
    if (client.attached()) seen->attached = true;
    const plan::PageCopy* const page = client.page(now);
    for (size_t node = 0; page != nullptr && node < nodes; ++node) {
      const plan::PageEntry* const entry = page->Find("n" + std::to_string(node), "rail0");
      const int weight = entry == nullptr ? -1 : entry->weight_permille;
      if (std::exchange(weights[node], weight) != weight && weight == 0) seen->lost[node] = Now();
    }
    pollfd doorbell{client.fd(), POLLIN, 0};
    poll(&doorbell, 1, kLookMs);
  }
}

int Main(const std::string& socket, const std::string& address, size_t count, size_t nodes) {
  const size_t each = sizeof(Seen) + nodes * sizeof(std::atomic<Nanos>);
  void* const memory = mmap(nullptr, count * each, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 1;
  const auto of = [&](size_t process) { return reinterpret_cast<Seen*>(static_cast<char*>(memory) + process * each); };
  for (size_t process = 0; process < count; ++process) {
    const pid_t pid = fork();
    if (pid < 0) {
      std::perror("fork");
      return 1;
    }
    if (pid == 0) Attach(socket, address, nodes, of(process));
  }
  const auto wait_for = [&](const auto& condition) {
    const Nanos begin = Now();
    for (size_t process = 0; process < count;) {
      if (condition(*of(process)))
        ++process;
      else if (Now() - begin > kPatience)
        return false;
      else
        usleep(1000);
    }
    return true;
  };
  if (!wait_for([](const Seen& seen) { return seen.attached.load(); })) return 1;
  std::cout << "ready" << std::endl;
  Nanos since = 0;
  for (size_t node = 0; std::cin >> node >> since;) {
    if (node >= nodes) return 2;
    Nanos last = -1;
    if (wait_for([&](const Seen& seen) { return seen.lost[node].load() > since; }))
      for (size_t process = 0; process < count; ++process) last = std::max(last, of(process)->lost[node].load());
    std::cout << last << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace r2cc

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  return r2cc::Main(argv[1], argv[2], std::strtoul(argv[3], nullptr, 10), std::strtoul(argv[4], nullptr, 10));
}
