// Implements Gpu over the CUDA driver's library, which it opens with the first call. On a machine without the library there are no GPUs.
//
// It works in the primary contexts of the GPUs that the job uses, which it retains and never releases, and copies on one stream of its own
// for each. It does not disturb a stream of the job that is being captured.
#ifndef R2CC_NETPLUGIN_GPU_LIBCUDA_H_
#define R2CC_NETPLUGIN_GPU_LIBCUDA_H_

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/core/cuda/driver.h"
#include "base/core/mutex.h"
#include "netplugin/gpu/gpu.h"

namespace r2cc::gpu {

class Libcuda final : public Gpu {
 public:
  explicit Libcuda(std::string library = "libcuda.so.1") : driver_(std::move(library)) {}
  Libcuda(const Libcuda&) = delete;
  Libcuda& operator=(const Libcuda&) = delete;

  // Why there are no GPUs, in one line; empty: the driver is there. Opens it.
  const std::string& missing() { return driver_.missing(); }

  std::vector<int> InUse() override;
  std::optional<int> Of(const void* address) override;
  std::string PciAddress(int gpu) override;
  std::byte* Allocate(int gpu, uint64_t bytes, std::string* error) override;
  void Free(int gpu, std::byte* memory) override;
  int DmaBuf(int gpu, std::byte* base, uint64_t bytes) override;
  bool Copy(int gpu, void* to, const void* from, uint64_t bytes, std::string* error) override;

 private:
  struct Copies {
    Mutex copying;  // one at a time, so that each waits only for its own
    Stream stream R2CC_GUARDED_BY(copying) = nullptr;
  };

  Driver driver_;
  Mutex mutex_;
  std::map<int, Copies> copies_ R2CC_GUARDED_BY(mutex_);
};

}  // namespace r2cc::gpu

#endif  // R2CC_NETPLUGIN_GPU_LIBCUDA_H_
