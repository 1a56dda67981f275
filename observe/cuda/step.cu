// The step of observe/gather/step.h as kernels. The threads of a block are its lanes.
#include "observe/cuda/arguments.h"
#include "observe/gather/flat_taps.h"
#include "observe/gather/step.h"

namespace r2cc::observe {
namespace {

// The operations of one thread, and of all threads of a block together.
class CudaOps {
 public:
  static __device__ uint64_t Lane() { return threadIdx.x; }
  static __device__ uint64_t Lanes() { return blockDim.x; }

  template <typename T>
  __device__ T Load(uint64_t at) {
    return *reinterpret_cast<const volatile T*>(at);
  }
  template <typename T>
  __device__ T Read(uint64_t at) {
    return *reinterpret_cast<const T*>(at);
  }
  template <typename T>
  __device__ void Store(uint64_t at, T value) {
    if (threadIdx.x == 0) *reinterpret_cast<volatile T*>(at) = value;
  }
  __device__ void StoreAlone(uint64_t at, uint64_t value) { *reinterpret_cast<volatile uint64_t*>(at) = value; }
  __device__ uint64_t LoadSystem(uint64_t at) { return *reinterpret_cast<const volatile uint64_t*>(at); }
  __device__ void FenceDevice() { __threadfence(); }
  __device__ void FenceSystem() { __threadfence_system(); }
  __device__ uint64_t AtomicAdd(uint64_t at, uint64_t value) {
    return atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
  }

  // In the largest units that both ends and the length allow, the remaining bytes one by one.
  __device__ void Copy(uint64_t to, uint64_t from, uint64_t bytes) { CopyBy(to, from, bytes, threadIdx.x, blockDim.x); }
  __device__ void CopyAlone(uint64_t to, uint64_t from, uint64_t bytes) { CopyBy(to, from, bytes, 0, 1); }

  // Units of 16 bytes, both ends aligned. The lines are not needed again soon: other data stays in the cache.
  __device__ void CopyUnits(uint64_t to, uint64_t from, uint64_t units) {
    uint4* const __restrict__ target = reinterpret_cast<uint4*>(to);
    const uint4* const __restrict__ source = reinterpret_cast<const uint4*>(from);
    uint32_t i = threadIdx.x;
    const auto end = static_cast<uint32_t>(units);
    for (; i + 3 * kThreads < end; i += 4 * kThreads) {
      const uint4 a = __ldcs(&source[i]), b = __ldcs(&source[i + kThreads]);
      const uint4 c = __ldcs(&source[i + 2 * kThreads]), d = __ldcs(&source[i + 3 * kThreads]);
      __stcs(&target[i], a);
      __stcs(&target[i + kThreads], b);
      __stcs(&target[i + 2 * kThreads], c);
      __stcs(&target[i + 3 * kThreads], d);
    }
    for (; i < end; i += kThreads) __stcs(&target[i], __ldcs(&source[i]));
  }

  // REQUIRES: all threads of the block are here.
  template <typename T>
  __device__ T Reduce(const T& value) {
    __shared__ alignas(16) unsigned char memory[kThreads * sizeof(T)];
    T* const values = reinterpret_cast<T*>(memory);
    __syncthreads();
    memcpy(&values[threadIdx.x], &value, sizeof(T));
    for (uint32_t half = kThreads / 2; half > 0; half /= 2) {
      __syncthreads();
      if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
    }
    __syncthreads();
    return values[0];
  }

 private:
  __device__ void CopyBy(uint64_t to, uint64_t from, uint64_t bytes, uint64_t lane, uint64_t lanes) {
    const uint64_t ends = to | from;
    if (ends % 16 == 0)
      CopyAs<uint4>(to, from, bytes, lane, lanes);
    else if (ends % 8 == 0)
      CopyAs<uint64_t>(to, from, bytes, lane, lanes);
    else if (ends % 4 == 0)
      CopyAs<uint32_t>(to, from, bytes, lane, lanes);
    else if (ends % 2 == 0)
      CopyAs<uint16_t>(to, from, bytes, lane, lanes);
    else
      CopyAs<uint8_t>(to, from, bytes, lane, lanes);
  }
  template <typename T>
  __device__ void CopyAs(uint64_t to, uint64_t from, uint64_t bytes, uint64_t lane, uint64_t lanes) {
    const uint64_t units = bytes / sizeof(T);
    T* const __restrict__ target = reinterpret_cast<T*>(to);
    const T* const __restrict__ source = reinterpret_cast<const T*>(from);
    uint64_t i = lane;
    // Four loads under way a thread.
    for (; i + 3 * lanes < units; i += 4 * lanes) {
      const T a = source[i], b = source[i + lanes], c = source[i + 2 * lanes], d = source[i + 3 * lanes];
      target[i] = a;
      target[i + lanes] = b;
      target[i + 2 * lanes] = c;
      target[i + 3 * lanes] = d;
    }
    for (; i < units; i += lanes) target[i] = source[i];
    for (uint64_t j = units * sizeof(T) + lane; j < bytes; j += lanes)
      reinterpret_cast<uint8_t*>(to)[j] = reinterpret_cast<const uint8_t*>(from)[j];
  }
};

__device__ uint64_t Nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
  return now;
}

// One thread, independent of the others.
class CudaOpsOfOne : public CudaOps {
 public:
  static __device__ uint64_t Lane() { return 0; }
  static __device__ uint64_t Lanes() { return 1; }
  template <typename T>
  __device__ T Reduce(const T& value) {
    return value;
  }
};

// In shared memory: a thread's registers are for what it copies. A block reads the state by one request, as all blocks read the same line
// at the same time: by requests of each warp that took 17 us on an H100.
__device__ const StepPlan& PlanOfBlock(CudaOps* ops, const StepParameters& p) {
  __shared__ alignas(StepPlan) unsigned char memory[sizeof(StepPlan)];
  __shared__ uint64_t words[sizeof(StepState) / 8];
  static_assert(sizeof(StepState) % 8 == 0 && sizeof(StepState) / 8 <= kThreads, "each word has a thread that reads it");
  StepPlan* const plan = reinterpret_cast<StepPlan*>(memory);
  if (threadIdx.x < sizeof(StepState) / 8)
    words[threadIdx.x] = ops->Load<uint64_t>(p.state + offsetof(DeviceState, state) + threadIdx.x * 8);
  __syncthreads();
  StepState state;
  memcpy(&state, words, sizeof(state));
  const StepPlan own = PlanWith(ops, p, state);
  if (threadIdx.x == 0) *plan = own;
  __syncthreads();
  return *plan;
}

// Behind a block's share of the taps that are copied at the step's end: its arrival, and the record's publication by the last one.
__device__ void Arrive(CudaOps* ops, const StepParameters& p, const StepPlan& plan) {
  __shared__ bool last;
  // Each thread's stores before the first one's arrival, which is cumulative.
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) last = observe::Arrive(ops, p);
  __syncthreads();
  if (!last) return;
  __threadfence();
  FinishHashes(ops, p, plan);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) Publish(ops, p, plan, Nanoseconds());
}

__device__ void Gather(StepParameters p, const StepTap* taps) {
  p.taps = taps;
  CudaOps ops;
  const StepPlan& plan = PlanOfBlock(&ops, p);
  CopyShare(&ops, p, plan, blockIdx.x, gridDim.x);
  Arrive(&ops, p, plan);
}

__device__ void GatherFlat(const StepParameters& p, const FlatTap* taps) {
  CudaOps ops;
  const StepPlan& plan = PlanOfBlock(&ops, p);
  CopyFlatShare(&ops, p, taps, plan, blockIdx.x, gridDim.x);
  Arrive(&ops, p, plan);
}

}  // namespace

extern "C" __global__ void __launch_bounds__(kThreads) r2cc_observe_gather_small(const __grid_constant__ SmallArguments arguments) {
  Gather(arguments.step, arguments.taps);
}
extern "C" __global__ void __launch_bounds__(kThreads) r2cc_observe_gather_large(const __grid_constant__ LargeArguments arguments) {
  Gather(arguments.step, arguments.taps);
}

extern "C" __global__ void __launch_bounds__(kThreads, kFlatBlocksOfProcessor) r2cc_observe_flat_small(
    const __grid_constant__ SmallFlatArguments arguments) {
  GatherFlat(arguments.step, arguments.taps);
}
extern "C" __global__ void __launch_bounds__(kThreads, kFlatBlocksOfProcessor) r2cc_observe_flat_large(
    const __grid_constant__ LargeFlatArguments arguments) {
  GatherFlat(arguments.step, arguments.taps);
}

// Taps at their point.
extern "C" __global__ void __launch_bounds__(kThreads) r2cc_observe_inline(const __grid_constant__ SmallArguments arguments) {
  StepParameters p = arguments.step;
  p.taps = arguments.taps;
  CudaOps ops;
  CopyShare(&ops, p, PlanOfBlock(&ops, p), blockIdx.x, gridDim.x);
}

// The rows as they are when a step begins.
extern "C" __global__ void __launch_bounds__(kThreads) r2cc_observe_rows(const __grid_constant__ SmallArguments arguments) {
  CudaOps ops;
  KeepRows(&ops, arguments.step);
}

// For room, when a step begins.
extern "C" __global__ void __launch_bounds__(kThreads) r2cc_observe_wait(const __grid_constant__ SmallArguments arguments) {
  if (threadIdx.x != 0) return;
  CudaOpsOfOne ops;
  const uint64_t begin = Nanoseconds();
  while (!LookForRoom(&ops, arguments.step) && Nanoseconds() - begin < arguments.step.block_ns) __nanosleep(1000);
}

// The hash of one tensor, for the self-check.
extern "C" __global__ void __launch_bounds__(kThreads) r2cc_observe_hash(const __grid_constant__ SmallArguments arguments) {
  const StepParameters& p = arguments.step;
  const TapWork& work = arguments.taps[0].work;
  CudaOps ops;
  RowList list;
  list.count = work.rows;
  const uint64_t elements = list.count * work.RowBytes() / BytesOf(work.dtype);
  const uint64_t share = (elements + gridDim.x - 1) / gridDim.x, begin = blockIdx.x * share;
  const uint64_t end = begin + share < elements ? begin + share : elements;
  const uint64_t sum = ops.Reduce(HashOfElements(&ops, work, list, begin, end));
  if (threadIdx.x == 0) ops.AtomicAdd(p.hashes, sum);
}

}  // namespace r2cc::observe
