// The least that a transport can do: writes with immediate on one rail, from node a to node b, a few in flight, nothing else. In a guest.
//   write_loop yield|wait COUNT
// yield: who has nothing to do lets the other go on, and asks again; wait: sleeps until something completes. Prints MB/s (1e6 B/s).
#include <sched.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "base/core/verbs/libibverbs.h"
#include "tests/rigs/one_guest/verbs_end.h"

namespace r2cc::rig {
namespace {

using verbs::Completion;

constexpr uint32_t kMessageBytes = 524288;
constexpr int kInFlight = 8;
constexpr uint32_t kMtuBytes = 4096;
constexpr int kWaitMs = 100;

// Calls `step`, which says whether it had something to do, until `count` have completed.
template <typename Step>
void Run(bool wait, VerbsEnd* end, const int& done, int count, const Step& step) {
  while (done < count) {
    if (step()) continue;
    if (!wait) {
      sched_yield();
      continue;
    }
    end->Arm();
    if (!step()) end->WaitForCompletion(kWaitMs);
  }
}

bool Good(const std::vector<Completion>& completions) {
  for (const Completion& completion : completions) {
    if (completion.status == verbs::Status::kSuccess) continue;
    std::fprintf(stderr, "write_loop: a completion with status %d\n", static_cast<int>(completion.status));
    std::exit(1);
  }
  return !completions.empty();
}

double Measure(bool wait, int count) {
  verbs::Libibverbs verbs;
  VerbsEnd a(&verbs, "rxe0a", kMessageBytes);
  VerbsEnd b(&verbs, "rxe0b", kMessageBytes);
  VerbsEnd::Connect(&a, &b, {.timeout = 18, .mtu_bytes = kMtuBytes});
  for (int i = 0; i < 2 * kInFlight; ++i) b.PostReceive();
  const auto began = std::chrono::steady_clock::now();
  std::thread receiver([&] {
    int received = 0;
    Run(wait, &b, received, count, [&] {
      const std::vector<Completion> completions = b.PollReceives();
      for (size_t i = 0; i < completions.size(); ++i) b.PostReceive();
      received += static_cast<int>(completions.size());
      return Good(completions);
    });
  });
  int posted = 0;
  int done = 0;
  Run(wait, &a, done, count, [&] {
    const bool room = posted < count && posted - done < kInFlight;
    for (; posted < count && posted - done < kInFlight; ++posted)
      if (a.Write(kMessageBytes, true) != 0) std::exit(1);
    const std::vector<Completion> completions = a.PollSends();
    done += static_cast<int>(completions.size());
    return Good(completions) || room;
  });
  receiver.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - began;
  return kMessageBytes * 1e-6 * count / took.count();
}

}  // namespace
}  // namespace r2cc::rig

int main(int argc, char** argv) {
  const int count = argc == 3 ? std::atoi(argv[2]) : 0;
  const std::string how = argc == 3 ? argv[1] : "";
  if (count < 1 || (how != "yield" && how != "wait")) {
    std::fprintf(stderr, "usage: write_loop yield|wait COUNT\n");
    return 2;
  }
  std::printf("%.2f\n", r2cc::rig::Measure(how == "wait", count));
  return 0;
}
