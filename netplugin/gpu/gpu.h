// Gives access to the GPUs of the process, as far as the plugin needs it: the owner of memory, how a NIC reaches it, copies. Plain types;
// no types of CUDA. libcuda.h implements it over the driver's library, fake_gpu.h over host memory.
//
// GPUs have the driver's numbers for this process. Nothing throws. A call that fails returns that, and leaves one line in `error` if it has
// one. After an error of the driver the job's GPU usually works no more.
//
// Threads: any, also at the same time. No call waits for work on the job's streams.
#ifndef R2CC_NETPLUGIN_GPU_GPU_H_
#define R2CC_NETPLUGIN_GPU_GPU_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace r2cc::gpu {

class Gpu {
 public:
  virtual ~Gpu() = default;

  // The GPUs that the job uses already. No other GPU is ever touched, because the driver would allocate hundreds of megabytes there for the
  // process. Empty if there is no driver.
  virtual std::vector<int> InUse() = 0;
  // The GPU whose memory has `address`; nothing: it is host memory, or unallocated.
  virtual std::optional<int> Of(const void* address) = 0;
  // Its PCI function: 0000:81:00.0; empty: unknown.
  virtual std::string PciAddress(int gpu) = 0;

  // Memory for the plugin, at least `bytes`, on whole pages; null: there is none. MAY BLOCK.
  virtual std::byte* Allocate(int gpu, uint64_t bytes, std::string* error) = 0;
  // Nothing may read or write it any more. MAY BLOCK.
  virtual void Free(int gpu, std::byte* memory) = 0;
  // A dma-buf of whole pages of the GPU's memory, which the caller closes; -1: the driver gives none.
  virtual int DmaBuf(int gpu, std::byte* base, uint64_t bytes) = 0;

  // Copies between memory of the GPU and host memory, either way, or within it. Done when it returns: some ten microseconds plus the time
  // for the bytes.
  virtual bool Copy(int gpu, void* to, const void* from, uint64_t bytes, std::string* error) = 0;
};

}  // namespace r2cc::gpu

#endif  // R2CC_NETPLUGIN_GPU_GPU_H_
