// The step of observe/gather/step.h as kernels. A block's threads run it together: they copy in shares, load the same words, and the first
// one stores. Statistics and hashes are computed by each thread alike, which is right and slow. Compiled and never run: no test has a GPU.
#include "observe/gather/step.h"

namespace r2cc::observe {
namespace {

// As a kernel's parameter: the graph keeps its own copy. 32,764 bytes from CUDA 12.1 on; these are within 4,096, for older drivers, too.
constexpr uint32_t kTapsOfKernel = 24;

struct Arguments {
  StepParameters step;
  StepTap taps[kTapsOfKernel];
};
static_assert(sizeof(Arguments) <= 4096);

struct CudaOps {
  template <typename T>
  __device__ T Load(uint64_t at) {
    return *reinterpret_cast<const volatile T*>(at);
  }
  template <typename T>
  __device__ void Store(uint64_t at, T value) {
    if (threadIdx.x == 0) *reinterpret_cast<volatile T*>(at) = value;
  }
  __device__ void Copy(uint64_t to, uint64_t from, uint64_t bytes) {
    // By words of 16 bytes where both ends allow it, the rest by bytes.
    const uint64_t words = (to | from) % 16 == 0 ? bytes / 16 : 0;
    for (uint64_t i = threadIdx.x; i < words; i += blockDim.x) reinterpret_cast<uint4*>(to)[i] = reinterpret_cast<const uint4*>(from)[i];
    for (uint64_t i = words * 16 + threadIdx.x; i < bytes; i += blockDim.x)
      reinterpret_cast<uint8_t*>(to)[i] = reinterpret_cast<const uint8_t*>(from)[i];
  }
  __device__ uint64_t LoadSystem(uint64_t at) { return *reinterpret_cast<const volatile uint64_t*>(at); }
  __device__ void FenceDevice() { __threadfence(); }
  __device__ void FenceSystem() { __threadfence_system(); }
  __device__ uint64_t AtomicAdd(uint64_t at, uint64_t value) {
    return atomicAdd(reinterpret_cast<unsigned long long*>(at), static_cast<unsigned long long>(value));
  }
};

__device__ uint64_t Nanoseconds() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}

}  // namespace

// All taps that are copied at the step's end, and the record's publication by the last block.
extern "C" __global__ void r2cc_observe_gather(const __grid_constant__ Arguments arguments) {
  StepParameters p = arguments.step;
  p.taps = arguments.taps;
  p.blocks = gridDim.x;
  CudaOps ops;
  CopyShare(&ops, p, PlanOf(&ops, p), blockIdx.x);
  // Each thread's stores before the first one's fence, which is cumulative.
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0 && Arrive(&ops, p)) Publish(&ops, p, Nanoseconds());
}

// One tap, at its point.
extern "C" __global__ void r2cc_observe_inline(const __grid_constant__ Arguments arguments, uint32_t tap) {
  StepParameters p = arguments.step;
  p.taps = arguments.taps;
  CudaOps ops;
  CopyTap(&ops, p, PlanOf(&ops, p), tap);
}

}  // namespace r2cc::observe
