// A GPU whose job waits for a reduction, as NCCL's kernels do, and everything behind them.
#ifndef R2CC_TESTS_GPU_BUSY_GPU_H_
#define R2CC_TESTS_GPU_BUSY_GPU_H_

#include <cstdint>
#include <thread>

#include "netplugin/gpu/libcuda.h"

namespace r2cc::gpu_test {

// Ends the process, with a line, where CUDA does not do as it is told: it is no subject here.
class BusyGpu {
 public:
  BusyGpu(gpu::Libcuda* cuda, int gpu);
  // Release() was called.
  ~BusyGpu();
  BusyGpu(const BusyGpu&) = delete;
  BusyGpu& operator=(const BusyGpu&) = delete;

  // A kernel of so many blocks of 512 threads runs until Release(), on a stream of the greatest or the least priority.
  void Spin(unsigned blocks, bool first);
  // More kernels that may not begin before it has ended: half of them on its own stream, and each other one on a stream that waits for it.
  void QueueBehind(int kernels);
  // A thread of their own calls what does not return before Release().
  void SynchronizeMeanwhile() {
    meanwhile_ = std::thread([this] { Synchronize(); });
  }
  void FreeMemoryMeanwhile() {
    meanwhile_ = std::thread([this] { FreeMemory(); });
  }
  void Release();

 private:
  void Synchronize();
  void FreeMemory();
  template <typename Call>
  Call* Find(const char* name) const;
  void Must(gpu::Result result, const char* what) const;

  gpu::Libcuda* const cuda_;
  const int gpu_;
  void* handle_ = nullptr;
  volatile uint32_t* flag_ = nullptr;  // in host memory that the GPU reads
  gpu::Function spin_ = nullptr;
  gpu::Stream stream_ = nullptr;
  gpu::Pointer spare_ = 0;
  std::thread meanwhile_;
};

}  // namespace r2cc::gpu_test

#endif  // R2CC_TESTS_GPU_BUSY_GPU_H_
