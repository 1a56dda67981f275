// Invariants that stay on in production: a broken one ends the process with one line, because going on could lose data.
#ifndef R2CC_BASE_CORE_CHECK_H_
#define R2CC_BASE_CORE_CHECK_H_

namespace r2cc {

// Prints "R2CC invariant broken: FILE:LINE: CONDITION" to standard error and aborts.
[[noreturn]] void CheckFailed(const char* file, int line, const char* condition);

}  // namespace r2cc

#define R2CC_CHECK(condition) \
  (__builtin_expect(static_cast<bool>(condition), 1) ? (void)0 : ::r2cc::CheckFailed(__FILE__, __LINE__, #condition))

#endif  // R2CC_BASE_CORE_CHECK_H_
