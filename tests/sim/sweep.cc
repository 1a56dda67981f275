#include "tests/sim/sweep.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string_view>
#include <thread>

#include "tests/sim/shrink.h"

namespace r2cc::sim {
namespace {

// So many failures are shrunk and described: each is some dozen runs.
constexpr size_t kDescribed = 5;

std::string aborted_target;
thread_local uint64_t running_seed = 0;
void Aborted(int) {
  char line[200];
  const int length = std::snprintf(line, sizeof(line),
                                   "the process ended itself; replay: ./bazelw test %s --test_arg=--seed=%llu "
                                   "--test_arg=--verbose --test_output=all\n",
                                   aborted_target.c_str(), static_cast<unsigned long long>(running_seed));
  if (write(STDERR_FILENO, line, static_cast<size_t>(length)) < 0) _exit(3);
  signal(SIGABRT, SIG_DFL);
  raise(SIGABRT);
}

std::string CheckerOf(const Result& result) {
  return result.violations.empty() ? "" : result.violations.front().substr(0, result.violations.front().find(']') + 1);
}

}  // namespace

void Sweep::AnnounceAborts() {
  aborted_target = world_.target;
  signal(SIGABRT, Aborted);
}

bool Sweep::TakeFlag(const std::string& flag) {
  const auto number = [&](const char* name, uint64_t* value) {
    if (!flag.starts_with(name)) return false;
    *value = std::strtoull(flag.c_str() + std::char_traits<char>::length(name), nullptr, 10);
    return true;
  };
  if (number("--seeds=", &seeds_) || number("--seed=", &seed_) || number("--first=", &first_)) return true;
  constexpr std::string_view kFaults = "--faults=";
  if (flag.starts_with(kFaults)) return ParseList(flag.substr(kFaults.size()), &faults_.emplace());
  if (flag == "--verbose") return verbose_ = true;
  if (flag == "--fresh") return fresh_ = true;
  return false;
}

Result Sweep::Run(uint64_t seed, bool verbose) const {
  running_seed = seed;
  const Scenario scenario = world_.make(seed);
  return world_.run(faults_.has_value() ? WithFaults(scenario, *faults_) : scenario, seed, verbose);
}

std::string Sweep::Replay(uint64_t seed) const {
  return "./bazelw test " + world_.target + " --test_arg=--seed=" + std::to_string(seed) + " --test_arg=--verbose --test_output=all";
}

std::string Sweep::Describe(const Result& result) const {
  const Scenario scenario = world_.make(result.seed);
  const auto fails = [&](const Scenario& less) {
    running_seed = result.seed;
    return CheckerOf(world_.run(less, result.seed, false)) == CheckerOf(result);
  };
  const std::vector<size_t> needed = faults_.has_value() ? *faults_ : Shrink(scenario, fails);
  std::string text = "seed " + std::to_string(result.seed) + ", " + std::to_string(needed.size()) + " of " +
                     std::to_string(scenario.faults.size()) + " faults are needed: " + WithFaults(scenario, needed).Text();
  for (const std::string& violation : result.violations) text += "  " + violation + "\n";
  return text + "  replay: " + Replay(result.seed) + " --test_arg=--faults=" + ListText(needed) + "\n";
}

void Sweep::RunOne() {
  const Result result = Run(seed_, verbose_);
  std::printf("seed %llu: %llu events, %.3f s of virtual time\n", static_cast<unsigned long long>(result.seed),
              static_cast<unsigned long long>(result.events), static_cast<double>(result.virtual_time) * 1e-9);
  EXPECT_TRUE(result.violations.empty()) << Describe(result);
}

Coverage Sweep::RunAll() {
  Coverage coverage;
  if (is_one()) {
    RunOne();
    return coverage;
  }
  // Runs that begin in different seconds have no seed in common, and none with the seeds from 1 on.
  if (fresh_) first_ = static_cast<uint64_t>(time(nullptr)) * seeds_;
  if (fresh_)
    std::printf("fresh seeds; again: ./bazelw test %s --test_arg=--first=%llu --test_arg=--seeds=%llu\n", world_.target.c_str(),
                static_cast<unsigned long long>(first_), static_cast<unsigned long long>(seeds_));
  std::atomic<uint64_t> next{first_};
  const uint64_t end = first_ + seeds_;
  std::mutex mutex;
  std::vector<Result> failures;
  std::map<std::string, std::vector<uint64_t>> failed_by_checker;
  uint64_t failed = 0, events = 0;
  double virtual_s = 0;
  const auto begun = std::chrono::steady_clock::now();
  const auto work = [&] {
    for (uint64_t seed; (seed = next.fetch_add(1)) < end;) {
      const Result result = Run(seed);
      const std::lock_guard lock(mutex);
      coverage.Add(result.coverage);
      events += result.events;
      virtual_s += static_cast<double>(result.virtual_time) * 1e-9;
      if (result.violations.empty()) continue;
      ++failed;
      failed_by_checker[CheckerOf(result) + " " + world_.make(seed).Summary()].push_back(seed);
      if (failures.size() < kDescribed) failures.push_back(result);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < std::max(1u, std::thread::hardware_concurrency()); ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();

  const double took_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  std::printf("%llu seeds, %.0f an hour, %llu events, %.0f s of virtual time\n%s", static_cast<unsigned long long>(seeds_),
              static_cast<double>(seeds_) / took_s * 3600, static_cast<unsigned long long>(events), virtual_s, coverage.Text().c_str());
  for (const auto& [checker, seeds] : failed_by_checker) {
    std::printf("  %s: %zu seeds:", checker.c_str(), seeds.size());
    for (size_t i = 0; i < seeds.size() && i < 12; ++i) std::printf(" %llu", static_cast<unsigned long long>(seeds[i]));
    std::printf("\n");
  }
  EXPECT_EQ(failed, 0u) << "of " << seeds_ << " seeds";
  for (const Result& failure : failures) ADD_FAILURE() << Describe(failure);
  return coverage;
}

}  // namespace r2cc::sim
