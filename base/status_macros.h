// Leaves the calling function on the first error. Short names: only for .cc files, never for headers.
#ifndef R2CC_BASE_STATUS_MACROS_H_
#define R2CC_BASE_STATUS_MACROS_H_

#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

// Returns the status of `expression` from the calling function unless it is OK.
#define RETURN_IF_ERROR(expression)                                                       \
  do {                                                                                    \
    if (::absl::Status r2cc_status = (expression); !r2cc_status.ok()) return r2cc_status; \
  } while (false)

#define R2CC_STATUS_CONCAT_INNER(a, b) a##b
#define R2CC_STATUS_CONCAT(a, b) R2CC_STATUS_CONCAT_INNER(a, b)
#define R2CC_ASSIGN_OR_RETURN(holder, target, ...)     \
  auto holder = (__VA_ARGS__);                         \
  if (!holder.ok()) return std::move(holder).status(); \
  target = *std::move(holder)

// ASSIGN_OR_RETURN(auto x, MakeX()): the value of a StatusOr, or its status returned from the calling function. Several statements:
// not for the body of an `if` without braces.
#define ASSIGN_OR_RETURN(target, ...) R2CC_ASSIGN_OR_RETURN(R2CC_STATUS_CONCAT(r2cc_status_or_, __LINE__), target, __VA_ARGS__)

#endif  // R2CC_BASE_STATUS_MACROS_H_
