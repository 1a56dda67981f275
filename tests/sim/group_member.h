// One member of a group of the plugin's own AllReduce: the production driver over the peers of a simulated process.
#ifndef R2CC_TESTS_SIM_GROUP_MEMBER_H_
#define R2CC_TESTS_SIM_GROUP_MEMBER_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "netplugin/collnet/group_driver.h"
#include "tests/sim/sim_flows.h"

namespace r2cc::sim {

class GroupMember {
 public:
  struct Options {
    uint32_t members = 2;
    uint32_t member = 0;
    size_t count = 1;                           // elements of a vector
    uint64_t rail_bytes_per_s = 1'000'000'000;  // that members assume of each other's rails
  };
  // `process` outlives it.
  GroupMember(Process* process, const Options& options, SimFlows::Opened opened = nullptr);

  // Calls operations up to `wanted`, and looks at the results. To be called from the process's progress.
  void Progress(uint64_t wanted, int rails_up, Nanos now);
  uint64_t done() const { return done_; }
  // Results that are not, to the bit, the sum of the members' contributions in their order.
  uint64_t wrong() const { return wrong_; }
  // Until it leaves.
  const collnet::GroupDriver& driver() const { return *driver_; }
  // Closes its flows, which may still use its memory for a while. No Progress() after it.
  void Leave() { driver_.reset(); }

 private:
  static constexpr uint64_t kWindow = 4;
  struct Vectors {
    std::vector<float> contribution, result;
  };
  void Compare(const std::vector<float>& result, uint64_t operation);

  Process* const process_;
  const Options options_;
  collnet::CallersReducer reducer_;
  collnet::HostStaging staging_;
  SimFlows flows_;
  Vectors vectors_[kWindow];
  uint64_t called_ = 0, done_ = 0, wrong_ = 0;
  std::optional<collnet::GroupDriver> driver_;  // it uses all of these; none: it has left
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_GROUP_MEMBER_H_
