#include "base/core/check.h"

#include <cstdio>
#include <cstdlib>

namespace r2cc {

void CheckFailed(const char* file, int line, const char* condition) {
  std::fprintf(stderr, "R2CC invariant broken: %s:%d: %s\n", file, line, condition);
  std::abort();
}

}  // namespace r2cc
