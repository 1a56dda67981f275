// Which call or completion of a process is to fail, and how: the value of R2CC_VERBS_FAULTS.
#ifndef R2CC_TESTS_RIGS_FAULTY_LIBIBVERBS_PLAN_H_
#define R2CC_TESTS_RIGS_FAULTY_LIBIBVERBS_PLAN_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace r2cc::rig {

enum class FaultKind { kCompletion, kPostSend, kPostReceive, kPairState };

struct Fault {
  FaultKind kind = FaultKind::kCompletion;
  uint64_t number = 0;  // the how-manieth of its kind in the process, from 1; of kPairState: of the sends posted
  int value = 0;        // the status of a completion, the errno value of a post, the ibv_qp_state into which the queue pair goes by itself
};

// "completion:3:12,post_send:5:11,post_receive:9:12,pair_state:40:6". False with one line in `*error`: it cannot be read.
bool ParseFaults(std::string_view text, std::vector<Fault>* faults, std::string* error);

}  // namespace r2cc::rig

#endif  // R2CC_TESTS_RIGS_FAULTY_LIBIBVERBS_PLAN_H_
