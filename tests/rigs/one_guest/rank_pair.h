// Two ranks of r2cc-perf in the guest, one a node, over the plugin as it is shipped: what the rig's tests of rails drive. A call that fails
// fails the test that is running.
#ifndef R2CC_TESTS_RIGS_ONE_GUEST_RANK_PAIR_H_
#define R2CC_TESTS_RIGS_ONE_GUEST_RANK_PAIR_H_

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

namespace r2cc::rig {

// One completion of either rank, as its trace has it.
struct Completion {
  int64_t time_ns = 0;  // CLOCK_MONOTONIC
  int64_t wait_ns = 0;  // in which the flow had a request outstanding and nothing completed
};

// Runs it as root; a failure fails the test.
void Shell(const std::string& command);
// CLOCK_MONOTONIC.
int64_t MonotonicNs();
// Until `holds`, for 60 s at most: an emulated machine on a busy one is slow. False: it never did.
bool Await(const std::function<bool()>& holds);

class RankPair {
 public:
  struct Options {
    std::vector<std::string> arguments;              // of both ranks: collective, sizes
    std::map<std::string, std::string> environment;  // of both
    std::map<std::string, std::string> of_rank[2];   // of one
    int rails = 2;                                   // v0a, v1a, ...
  };
  explicit RankPair(const Options& options);
  // Kills what still runs.
  ~RankPair();
  RankPair(const RankPair&) = delete;
  RankPair& operator=(const RankPair&) = delete;

  // What has completed until now at both ends.
  std::vector<Completion> Completions() const;
  // So many more completions have come.
  bool AwaitMore(size_t completions) const;
  // The longest wait that ended since then.
  int64_t LongestWaitNs(int64_t since_ns) const;
  // What all but one in a hundred waited at most, of those that ended between the two times.
  int64_t UsualWaitNs(int64_t from_ns, int64_t until_ns) const;

  // Asks the job to end after the iteration that it is in.
  void Ask();
  // Both have ended well: every byte was right. Else prints what they said.
  bool EndedWell();
  // Rank 0 or 1 has said so often that the rail is up again. False: not within Await()'s time.
  bool AwaitUp(int rank, const std::string& rail, int times) const;
  // How often rank 0 or 1 has said that a link of its sends is up; with R2CC_LOG=debug alone.
  int LinksUp(int rank) const;
  // The links of both ranks' sends on all of the rails are up by the last line about each; likewise.
  bool AllLinksUp() const;
  // What rank 0 or 1 printed.
  std::string Output(int rank) const;
  // Of the last lines of both: how often a rail of that node and name failed over; -1: no line has it.
  int Failovers(const std::string& rail) const;

 private:
  std::string folder_;
  int rails_ = 2;
  pid_t pids_[2] = {-1, -1};
  int states_[2] = {0, 0};
};

}  // namespace r2cc::rig

#endif  // R2CC_TESTS_RIGS_ONE_GUEST_RANK_PAIR_H_
