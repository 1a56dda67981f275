// The end of an incarnation: as late as the devices of its process are.
#ifndef R2CC_TESTS_SIM_ENDING_H_
#define R2CC_TESTS_SIM_ENDING_H_

#include "tests/sim/io.h"

namespace r2cc::sim {

// When a close has ended: what both ends have in common.
class Ending {
 public:
  // True: it has ended already.
  bool Begin(Io* io);
  bool begun() const { return begun_; }
  // Once for each answer: nothing yet, it failed for now, or it has ended.
  enum class Answer { kNone, kFailed, kEnded };
  Answer Take(const Io& io);

 private:
  bool begun_ = false;
  bool answered_failed_ = false;
  Nanos due_ = 0;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_ENDING_H_
