// The common part of all calls of the C interface: their code, their line, and that nothing is thrown.
#ifndef R2CC_OBSERVE_CAPI_GUARD_H_
#define R2CC_OBSERVE_CAPI_GUARD_H_

#include <exception>
#include <string>

#include "base/core/clock.h"
#include "observe/capi/observe.h"
#include "observe/record/account.h"

namespace r2cc::observe {

inline const SteadyClock kClock;

// The last error of this thread.
std::string& LastError();
int Failed(int code, const std::string& line);

template <typename Body>
int Guarded(Body body) {
  try {
    return body();
  } catch (const std::exception& error) {
    return Failed(R2CC_OBSERVE_SYSTEM, std::string("out of memory, or worse: ") + error.what());
  }
}

// A struct of a caller that is of this release.
template <typename T>
bool Sized(const T* value) {
  return value != nullptr && value->bytes == sizeof(T);
}

void CopyCounts(const Counts& from, uint64_t cut_off, uint64_t lost, r2cc_observe_counts* to);

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_CAPI_GUARD_H_
