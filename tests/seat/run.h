// One seed: a world, the same random program on all ranks, and what must hold in the end.
#ifndef R2CC_TESTS_SEAT_RUN_H_
#define R2CC_TESTS_SEAT_RUN_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace r2cc::nccl {

struct RunResult {
  std::string failure;     // empty: all is right
  size_t by_children = 0;  // operations that a child did
  size_t by_collnet = 0;   // and CollNet
  size_t switches = 0;     // lines that said so
  size_t refusals = 0;
  size_t differing = 0;  // lines of another interval
  size_t unreached = 0;  // and of a rank that learns no verdict
  size_t aborts = 0;
  bool seated_at_end = false;
};
RunResult RunSeed(uint64_t seed);

}  // namespace r2cc::nccl

#endif  // R2CC_TESTS_SEAT_RUN_H_
