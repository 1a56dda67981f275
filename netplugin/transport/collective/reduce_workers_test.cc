#include "netplugin/transport/collective/reduce_workers.h"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include "netplugin/collnet/reduce.h"

namespace r2cc::net {
namespace {

using abi::DataType;
using abi::RedOp;
using Bytes = std::vector<std::byte>;

std::unique_ptr<ReduceWorkers> Make(int threads) {
  std::string error;
  auto workers = ReduceWorkers::Start(threads, Processors::OfMainThread(), &error);
  EXPECT_NE(workers, nullptr) << error;
  return workers;
}

// Sources of random floats, and the sum that one thread makes of them.
struct Work {
  Work(size_t sources_count, size_t count, uint64_t seed) : sources(sources_count, Bytes(4 * count)), out(4 * count), want(4 * count) {
    std::mt19937_64 random(seed);
    std::vector<const std::byte*> from;
    for (Bytes& source : sources) {
      for (std::byte& byte : source) byte = static_cast<std::byte>(random());
      from.push_back(source.data());
    }
    collnet::Reduce(DataType::kFloat32, RedOp::kSum, from, want.data(), count);
    reduction = std::make_shared<Reduction>(DataType::kFloat32, RedOp::kSum, from, out.data(), count);
  }

  std::vector<Bytes> sources;
  Bytes out, want;
  std::shared_ptr<Reduction> reduction;
};

TEST(ReduceWorkersTest, TheSameResultWithAnyNumberOfThreads) {
  for (const int threads : {0, 1, 2, 3, 4}) {
    const auto workers = Make(threads);
    for (const size_t count : {1, 16'384, 16'385, 300'001}) {
      Work work(3, count, count);
      workers->Submit(work.reduction);
      work.reduction->Wait();
      EXPECT_TRUE(work.reduction->done());
      EXPECT_EQ(work.out, work.want) << threads << " threads, " << count << " elements";
    }
  }
}

TEST(ReduceWorkersTest, NothingToReduceIsDoneAtOnce) {
  const auto workers = Make(1);
  Work work(2, 0, 1);
  workers->Submit(work.reduction);
  EXPECT_TRUE(work.reduction->done());
}

TEST(ReduceWorkersTest, ManyAtATimeOfSeveralThreads) {
  const auto workers = Make(3);
  std::vector<std::thread> callers;
  for (int caller = 0; caller < 3; ++caller) {
    callers.emplace_back([&, caller] {
      std::vector<std::unique_ptr<Work>> all;
      for (int i = 0; i < 20; ++i) {
        all.push_back(std::make_unique<Work>(2, 40'000, caller * 100 + i));
        workers->Submit(all.back()->reduction);
      }
      for (const auto& work : all) {
        work->reduction->Wait();
        EXPECT_EQ(work->out, work->want);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
}

std::string FieldOf(const std::string& status, const std::string& key) {
  std::ifstream in(status);
  for (std::string line; std::getline(in, line);)
    if (line.rfind(key, 0) == 0) return line.substr(line.find_first_not_of(" \t", key.size()));
  return "";
}

// "Cpus_allowed_list" and "SigBlk" of the threads of that name.
std::vector<std::pair<std::string, std::string>> Threads(const std::string& name) {
  std::vector<std::pair<std::string, std::string>> threads;
  DIR* const tasks = opendir("/proc/self/task");
  while (const dirent* entry = readdir(tasks)) {
    const std::string status = std::string("/proc/self/task/") + entry->d_name + "/status";
    if (FieldOf(status, "Name:") == name) threads.emplace_back(FieldOf(status, "Cpus_allowed_list:"), FieldOf(status, "SigBlk:"));
  }
  closedir(tasks);
  return threads;
}

// Started by a thread that is pinned to one processor, as NCCL's are, and that takes signals.
TEST(ReduceWorkersTest, TheThreadsAreNamedKeepToTheJobsProcessorsAndTakeNoSignals) {
  const Processors processors = Processors::OfMainThread();
  if (processors.count() < 2) GTEST_SKIP() << "one processor: pinned and free are the same";
  const std::string job = FieldOf("/proc/self/status", "Cpus_allowed_list:");
  std::unique_ptr<ReduceWorkers> workers;
  std::thread pinned([&] {
    cpu_set_t all, one;
    sched_getaffinity(0, sizeof(all), &all);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i)
      if (CPU_ISSET(i, &all)) CPU_SET(i, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    workers = Make(2);
    cpu_set_t after;
    sched_getaffinity(0, sizeof(after), &after);
    EXPECT_EQ(CPU_COUNT(&after), 1) << "the caller stays where it is";
  });
  pinned.join();
  // They name themselves as soon as they run.
  while (Threads("r2cc-reduce").size() < 2) std::this_thread::yield();
  const auto threads = Threads("r2cc-reduce");
  EXPECT_EQ(threads.size(), 2u);
  for (const auto& [cpus, blocked] : threads) {
    EXPECT_EQ(cpus, job);
    EXPECT_EQ(blocked, "fffffffe7ffbfeff");  // all but SIGKILL, SIGSTOP and the two of the C library's own
  }
}

TEST(ReduceWorkersTest, FewProcessorsFewThreads) {
  EXPECT_EQ(ReduceWorkers::ThreadsFor(1), 0);
  EXPECT_EQ(ReduceWorkers::ThreadsFor(4), 0);
  EXPECT_EQ(ReduceWorkers::ThreadsFor(8), 1);
  EXPECT_EQ(ReduceWorkers::ThreadsFor(16), 3);
  EXPECT_EQ(ReduceWorkers::ThreadsFor(256), 4);
}

}  // namespace
}  // namespace r2cc::net
