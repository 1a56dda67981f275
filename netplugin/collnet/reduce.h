// Reduces host memory element by element, for a collective that the plugin runs itself.
//
// The result depends only on the sources' bits and their order, not on the processor: all instruction sets give the same bits.
// - Integers wrap around.
// - f32 and f64 are added, or multiplied, in the order of the sources, rounded to nearest even each time.
// - f16 and bf16 are accumulated in f32, in the order of the sources, and rounded once, at the end, to nearest even.
// - Minimum and maximum are exact; -0 is below +0, and a NaN counts only if there is nothing else.
// - Denormal numbers are numbers, even if the calling thread flushes them to zero.
// - A result that is no number is the positive quiet NaN without a payload. Processors differ in which of two NaNs they keep.
// - One source gives itself, except for the rule about NaN.
#ifndef R2CC_NETPLUGIN_COLLNET_REDUCE_H_
#define R2CC_NETPLUGIN_COLLNET_REDUCE_H_

#include <cstddef>
#include <span>

#include "netplugin/abi/nccl_types.h"

namespace r2cc::collnet {

// Sum, product, minimum and maximum of the integers, f16, bf16, f32 and f64. An average reaches a plugin as a sum.
bool CanReduce(abi::DataType type, abi::RedOp op);

// 0: CanReduce() is false for the type.
size_t ElementBytes(abi::DataType type);

enum class InstructionSet { kPortable, kAvx2, kAvx512 };
// Whether this processor and this build have it.
bool Supports(InstructionSet set);
InstructionSet BestInstructionSet();
const char* InstructionSetName(InstructionSet set);

// out[i] = sources[0][i] op sources[1][i] op ..., `count` elements, at least one source. Other threads may read the sources at the same
// time. `out` may be one of them; otherwise it overlaps none. Nothing has to be aligned. Any thread; allocates nothing. Ends the process if
// CanReduce() is false or if the instruction set is not supported.
void Reduce(abi::DataType type, abi::RedOp op, std::span<const std::byte* const> sources, std::byte* out, size_t count);
void ReduceWith(InstructionSet set, abi::DataType type, abi::RedOp op, std::span<const std::byte* const> sources, std::byte* out,
                size_t count);

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_REDUCE_H_
