// The GPUs of the process, as far as the plugin touches them: what memory is whose, how a NIC gets at it, copies. Plain types; nothing of
// CUDA. libcuda.h implements it over the driver's library, fake_gpu.h over host memory.
//
// GPUs are numbered as the driver numbers them for this process. Nothing is thrown. What fails says so and leaves one line, where it has
// an `error`; after an error of the driver nothing of the job's GPU works any more, most often.
//
// Threads: any at once. The job's streams are left alone: nothing waits for what runs on them.
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

  // Those that the job has begun to use. A GPU that it has not is never touched: what the driver keeps there for a process is hundreds of
  // megabytes. None where there is no driver.
  virtual std::vector<int> InUse() = 0;
  // The GPU in whose memory `address` lies; nothing: it is host memory, or nobody's.
  virtual std::optional<int> Of(const void* address) = 0;
  // Its PCI function: 0000:81:00.0; empty: unknown.
  virtual std::string PciAddress(int gpu) = 0;

  // Memory of the plugin's own, at least so much, on whole pages; null: there is none. MAY BLOCK.
  virtual std::byte* Allocate(int gpu, uint64_t bytes, std::string* error) = 0;
  // Nothing reads or writes it any more. MAY BLOCK.
  virtual void Free(int gpu, std::byte* memory) = 0;
  // A dma-buf of whole pages of the GPU's memory, which is the caller's to close; -1: it has none to give.
  virtual int DmaBuf(int gpu, std::byte* base, uint64_t bytes) = 0;

  // Between memory of the GPU and host memory, either way, or within it. Done when it returns: some ten microseconds and what the bytes
  // take.
  virtual bool Copy(int gpu, void* to, const void* from, uint64_t bytes, std::string* error) = 0;
};

}  // namespace r2cc::gpu

#endif  // R2CC_NETPLUGIN_GPU_GPU_H_
