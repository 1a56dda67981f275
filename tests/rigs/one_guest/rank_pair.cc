#include "tests/rigs/one_guest/rank_pair.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace r2cc::rig {
namespace {

constexpr int64_t kPatienceNs = 60'000'000'000;
constexpr int kLookMs = 20;
constexpr char kPerf[] = "tools/perf/r2cc-perf";
constexpr char kPlugin[] = "netplugin/libnccl-net-r2cc.so";
constexpr const char* kNodes[2] = {"a", "b"};

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

int TimesIn(const std::string& text, const std::string& words) {
  int times = 0;
  for (size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++times;
  return times;
}

}  // namespace

void Shell(const std::string& command) { EXPECT_EQ(std::system(command.c_str()), 0) << command; }

int64_t MonotonicNs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

bool Await(const std::function<bool()>& holds) {
  for (const int64_t until = MonotonicNs() + kPatienceNs; !holds(); poll(nullptr, 0, kLookMs))
    if (MonotonicNs() > until) return false;
  return true;
}

RankPair::RankPair(const Options& options) : rails_(options.rails) {
  char folder[] = "/tmp/ranks.XXXXXX";
  folder_ = mkdtemp(folder);
  static int port = 7500;
  ++port;
  for (int rank = 0; rank < 2; ++rank) {
    std::vector<std::string> words = {std::filesystem::absolute(kPerf)};
    words.insert(words.end(), options.arguments.begin(), options.arguments.end());
    for (const std::string& word :
         {std::string("--plugin"), std::filesystem::absolute(kPlugin).string(), std::string("--rank"), std::to_string(rank),
          std::string("--nranks"), std::string("2"), std::string("--root"), "127.0.0.1:" + std::to_string(port), std::string("--trace"),
          folder_ + "/trace", std::string("--timeout"), std::string("30"), std::string("--debug")})
      words.push_back(word);
    std::string rails;
    for (int rail = 0; rail < options.rails; ++rail) rails += (rail == 0 ? "v" : ",v") + std::to_string(rail) + kNodes[rank];
    std::map<std::string, std::string> variables = {{"R2CC_NODE", kNodes[rank]},
                                                    {"R2CC_RAILS", rails},
                                                    {"R2CC_OOB_IFNAME", "127.0.0.1"},
                                                    {"R2CC_ATTACH", "none"},
                                                    {"R2CC_LOG", "info"}};
    for (const auto* more : {&options.environment, &options.of_rank[rank]})
      for (const auto& [name, value] : *more) variables[name] = value;
    pids_[rank] = fork();
    EXPECT_GE(pids_[rank], 0);
    if (pids_[rank] != 0) continue;
    const int out = open((folder_ + "/" + kNodes[rank]).c_str(), O_WRONLY | O_CREAT | O_APPEND, 0644);
    dup2(out, STDOUT_FILENO);
    dup2(out, STDERR_FILENO);
    for (const auto& [name, value] : variables) setenv(name.c_str(), value.c_str(), 1);
    unsetenv("R2CC_GUEST_OUT");
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
}

RankPair::~RankPair() {
  for (const pid_t pid : pids_) {
    if (pid <= 0) continue;
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
}

std::vector<Completion> RankPair::Completions() const {
  std::vector<Completion> all;
  for (const char* const rank : {"0", "1"}) {
    std::ifstream trace(folder_ + "/trace." + rank + ".csv");
    for (std::string line; std::getline(trace, line);) {
      if (line.rfind("send,", 0) != 0 && line.rfind("recv,", 0) != 0) continue;
      // kind,time_ns,rank,flow,bytes,wait_ns; the last line may be half written.
      std::vector<std::string> fields;
      std::istringstream words(line);
      for (std::string field; std::getline(words, field, ',');) fields.push_back(field);
      if (fields.size() == 6) all.push_back({std::atoll(fields[1].c_str()), std::atoll(fields[5].c_str())});
    }
  }
  return all;
}

bool RankPair::AwaitMore(size_t completions) const {
  const size_t wanted = Completions().size() + completions;
  return Await([&] { return Completions().size() >= wanted; });
}

int64_t RankPair::LongestWaitNs(int64_t since_ns) const {
  int64_t longest = 0;
  for (const Completion& one : Completions())
    if (one.time_ns >= since_ns) longest = std::max(longest, one.wait_ns);
  return longest;
}

int64_t RankPair::UsualWaitNs(int64_t from_ns, int64_t until_ns) const {
  std::vector<int64_t> waits;
  for (const Completion& one : Completions())
    if (one.time_ns >= from_ns && one.time_ns < until_ns) waits.push_back(one.wait_ns);
  if (waits.empty()) return 0;
  std::sort(waits.begin(), waits.end());
  return waits[waits.size() * 99 / 100];
}

void RankPair::Ask() {
  if (pids_[0] > 0) kill(pids_[0], SIGTERM);
}

bool RankPair::EndedWell() {
  Await([this] {
    for (int rank = 0; rank < 2; ++rank)
      if (pids_[rank] > 0 && waitpid(pids_[rank], &states_[rank], WNOHANG) == pids_[rank]) pids_[rank] = -1;
    return pids_[0] < 0 && pids_[1] < 0;
  });
  bool well = true;
  for (int rank = 0; rank < 2; ++rank) well &= pids_[rank] < 0 && WIFEXITED(states_[rank]) && WEXITSTATUS(states_[rank]) == 0;
  if (!well)
    for (int rank = 0; rank < 2; ++rank)
      std::printf("rank %d %s, state %d:\n%s\n", rank, pids_[rank] < 0 ? "ended" : "runs", states_[rank], Output(rank).c_str());
  return well;
}

bool RankPair::AwaitUp(int rank, const std::string& rail, int times) const {
  return Await([&] { return TimesIn(Output(rank), "rail " + rail + " is up") >= times; });
}

int RankPair::LinksUp(int rank) const { return TimesIn(Output(rank), " is up, incarnation "); }

bool RankPair::AllLinksUp() const {
  for (int rank = 0; rank < 2; ++rank) {
    const std::string output = Output(rank);
    for (int rail = 0; rail < rails_; ++rail) {
      const std::string node = kNodes[rank];
      const size_t at = output.rfind("link " + node + "/v" + std::to_string(rail) + node + " -> ");
      const size_t end = output.find('\n', at);
      if (end == std::string::npos || output.substr(at, end - at).find(" is up, incarnation ") == std::string::npos) return false;
    }
  }
  return true;
}

std::string RankPair::Output(int rank) const { return ReadAll(folder_ + "/" + kNodes[rank]); }

int RankPair::Failovers(const std::string& rail) const {
  for (int rank = 0; rank < 2; ++rank) {
    std::istringstream lines(Output(rank));
    for (std::string line; std::getline(lines, line);) {
      if (line.find("R2CC: rail " + rail + " sent ") == std::string::npos) continue;
      const size_t at = line.find("MB, ");
      if (at != std::string::npos) return std::atoi(line.c_str() + at + 4);
    }
  }
  return -1;
}

}  // namespace r2cc::rig
