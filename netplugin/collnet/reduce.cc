#include "netplugin/collnet/reduce.h"

#include <cstdint>
#if defined(__x86_64__)
#include <cpuid.h>
#include <xmmintrin.h>
#endif

#include "base/core/check.h"
#include "netplugin/collnet/reduce_table.h"

namespace r2cc::collnet {
namespace {

constexpr size_t kBytesOfType[kReduceTypes] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2};

const ReduceTable* TableOf(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPortable: return &kPortableReduceTable;
    case InstructionSet::kAvx2: return kAvx2ReduceTable;
    case InstructionSet::kAvx512: return kAvx512ReduceTable;
  }
  return nullptr;
}

// A thread of the job may have been told to flush denormal numbers to zero or to round otherwise; the result must not depend on it.
class DefaultFloats {
 public:
#if defined(__x86_64__)
  DefaultFloats() : before_(_mm_getcsr()) { _mm_setcsr(kDefault); }
  ~DefaultFloats() { _mm_setcsr(before_); }

 private:
  static constexpr unsigned kDefault = 0x1f80;  // as a process starts: to nearest, denormal numbers kept, no exceptions
  unsigned before_;
#elif defined(__aarch64__)
  DefaultFloats() {
    asm volatile("mrs %0, fpcr" : "=r"(before_));
    asm volatile("msr fpcr, %0" ::"r"(uint64_t{0}));
  }
  ~DefaultFloats() { asm volatile("msr fpcr, %0" ::"r"(before_)); }

 private:
  uint64_t before_;
#endif
};

#if defined(__x86_64__)
// Clang's __builtin_cpu_supports() does not know it. The system keeps its registers if it keeps AVX's.
bool HasF16c() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  return __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
}
#endif

}  // namespace

bool CanReduce(abi::DataType type, abi::RedOp op) {
  return ElementBytes(type) > 0 && static_cast<int>(op) >= 0 && static_cast<int>(op) < kReduceOps;
}

size_t ElementBytes(abi::DataType type) {
  const int number = static_cast<int>(type);
  return number >= 0 && number < kReduceTypes ? kBytesOfType[number] : 0;
}

bool Supports(InstructionSet set) {
  if (TableOf(set) == nullptr) return false;
#if defined(__x86_64__)
  if (set == InstructionSet::kAvx2) return __builtin_cpu_supports("avx2") && HasF16c();
  if (set == InstructionSet::kAvx512)
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
           __builtin_cpu_supports("avx512vl");
#endif
  return true;
}

InstructionSet BestInstructionSet() {
  static const InstructionSet best = Supports(InstructionSet::kAvx512) ? InstructionSet::kAvx512
                                     : Supports(InstructionSet::kAvx2) ? InstructionSet::kAvx2
                                                                       : InstructionSet::kPortable;
  return best;
}

const char* InstructionSetName(InstructionSet set) {
  switch (set) {
    case InstructionSet::kPortable: return "portable";
    case InstructionSet::kAvx2: return "AVX2";
    case InstructionSet::kAvx512: return "AVX-512";
  }
  return "?";
}

void Reduce(abi::DataType type, abi::RedOp op, std::span<const std::byte* const> sources, std::byte* out, size_t count) {
  ReduceWith(BestInstructionSet(), type, op, sources, out, count);
}

void ReduceWith(InstructionSet set, abi::DataType type, abi::RedOp op, std::span<const std::byte* const> sources, std::byte* out,
                size_t count) {
  R2CC_CHECK(CanReduce(type, op) && !sources.empty() && Supports(set));
  const DefaultFloats default_floats;
  TableOf(set)->kernels[static_cast<int>(type)][static_cast<int>(op)](sources.data(), sources.size(), out, count);
}

}  // namespace r2cc::collnet
