// A tensor's shape and strides as the loops that copy it.
#ifndef R2CC_OBSERVE_GATHER_TAP_WORK_H_
#define R2CC_OBSERVE_GATHER_TAP_WORK_H_

#include <cstdint>
#include <span>
#include <string>

#include "observe/gather/operators.h"
#include "observe/record/layout.h"

namespace r2cc::observe {

// `shape` and `strides` (in bytes; empty: without holes) are of the tensor that somebody hands over for `tap`. False and one line: it is
// another tensor than the layout's, or its strides need more than three loops within a row.
bool MakeTapWork(const Tap& tap, uint64_t data, std::span<const uint64_t> shape, std::span<const int64_t> strides, TapWork* work,
                 std::string* error);

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_GATHER_TAP_WORK_H_
