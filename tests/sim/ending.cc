#include "tests/sim/ending.h"

#include <utility>

namespace r2cc::sim {

bool Ending::Begin(Io* io) {
  begun_ = true;
  const Nanos late_most = io->closing.late_most;
  due_ = io->now() + (late_most == 0 ? 0 : io->random().Between(0, late_most));
  if (late_most == 0 && !io->closing.fails) return true;
  io->network->timeline()->At(due_, io->wake);
  return false;
}

Ending::Answer Ending::Take(const Io& io) {
  if (!begun_ || io.now() < due_) return Answer::kNone;
  if (!io.closing.fails) return Answer::kEnded;
  return std::exchange(answered_failed_, true) ? Answer::kNone : Answer::kFailed;
}

}  // namespace r2cc::sim
