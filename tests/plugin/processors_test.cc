// Where the plugin's own threads run: on the processors of the job, whatever the thread that starts the plugin is pinned to.
#include <dirent.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "tests/plugin/net_table.h"
#include "tests/plugin/own_process.h"
#include "tests/plugin/pair.h"

namespace r2cc::plugin_test {
namespace {

using abi::Result;

std::vector<int> MayUse() {
  cpu_set_t mask;
  R2CC_MUST(sched_getaffinity(0, sizeof(mask), &mask) == 0);
  std::vector<int> processors;
  for (int i = 0; i < CPU_SETSIZE; ++i)
    if (CPU_ISSET(i, &mask)) processors.push_back(i);
  return processors;
}

// The calling thread.
void Pin(int processor) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(processor, &mask);
  R2CC_MUST(sched_setaffinity(0, sizeof(mask), &mask) == 0);
}

std::string LineOf(const std::string& file, const std::string& key) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);)
    if (line.rfind(key, 0) == 0) return line;
  return "";
}

struct OwnThread {
  std::string name;
  std::string allowed;  // as /proc has it
};

std::vector<OwnThread> OwnThreads() {
  std::vector<OwnThread> threads;
  DIR* const tasks = opendir("/proc/self/task");
  R2CC_MUST(tasks != nullptr);
  while (const dirent* entry = readdir(tasks)) {
    const std::string status = std::string("/proc/self/task/") + entry->d_name + "/status";
    const std::string name = LineOf(status, "Name:");
    if (name.find("r2cc-") != std::string::npos) threads.push_back({name, LineOf(status, "Cpus_allowed_list:")});
  }
  closedir(tasks);
  return threads;
}

// Until its threads are there, and know where they belong.
bool AllRunOn(const std::string& allowed, size_t threads) {
  const auto right = [&] {
    const std::vector<OwnThread> own = OwnThreads();
    return own.size() == threads && std::all_of(own.begin(), own.end(), [&](const OwnThread& one) { return one.allowed == allowed; });
  };
  if (Await(10, right)) return true;
  for (const OwnThread& one : OwnThreads())
    std::fprintf(stderr, "%s: %s, not %s\n", one.name.c_str(), one.allowed.c_str(), allowed.c_str());
  return false;
}

constexpr size_t kBulkThreads = 2;
constexpr size_t kThreads = 1 + kBulkThreads;  // with the I/O thread

TEST(ProcessorsOfTheJob, NoThreadLeavesThem) {
  OwnProcess process({{"R2CC_BULK_THREADS", std::to_string(kBulkThreads)}}, [] {
    Pin(MayUse().back());
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
    void* context = nullptr;
    R2CC_MUST(net->Init(&context) == Result::kSuccess);
    R2CC_MUST(AllRunOn(LineOf("/proc/self/status", "Cpus_allowed_list:"), kThreads));
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
}

// As NCCL does it: its thread keeps to the processors next to the GPU.
TEST(ProcessorsOfTheJob, APinnedCallerKeepsNobodyElse) {
  if (MayUse().size() < 2) GTEST_SKIP() << "needs two processors";
  OwnProcess process({{"R2CC_BULK_THREADS", std::to_string(kBulkThreads)}}, [] {
    std::thread([] {
      Pin(MayUse().front());
      const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
      void* context = nullptr;
      R2CC_MUST(net->Init(&context) == Result::kSuccess);
    }).join();
    R2CC_MUST(AllRunOn(LineOf("/proc/self/status", "Cpus_allowed_list:"), kThreads));
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
}

// Without R2CC_BULK_THREADS there are workers only where the job has processors to spare.
TEST(ProcessorsOfTheJob, AreThoseThatCount) {
  OwnProcess process({}, [] {
    Pin(MayUse().back());
    const std::unique_ptr<Net> net = NetOf(OpenLibrary(), kVersionNewest);
    void* context = nullptr;
    R2CC_MUST(net->Init(&context) == Result::kSuccess);
    Pair::Open(net.get(), context, 0).Transfer(1, 100'000, 100'000);
    R2CC_MUST(AllRunOn(LineOf("/proc/self/status", "Cpus_allowed_list:"), 1));
    return 0;
  });
  EXPECT_EQ(process.Wait(), 0) << process.text();
}

}  // namespace
}  // namespace r2cc::plugin_test
