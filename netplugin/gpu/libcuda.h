// Gpu over the CUDA driver's library, which is opened with the first call: where the machine has none, there are no GPUs, and that is all.
//
// It works in the primary contexts of the GPUs that the job uses, which it retains and never releases, and copies on a stream of its own
// for each. A stream of the job's that is being captured is not disturbed.
#ifndef R2CC_NETPLUGIN_GPU_LIBCUDA_H_
#define R2CC_NETPLUGIN_GPU_LIBCUDA_H_

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "netplugin/gpu/gpu.h"
#include "netplugin/gpu/libcuda_calls.h"

namespace r2cc::gpu {

class Libcuda final : public Gpu {
 public:
  explicit Libcuda(std::string library = "libcuda.so.1") : library_(std::move(library)) {}
  Libcuda(const Libcuda&) = delete;
  Libcuda& operator=(const Libcuda&) = delete;

  // One line on why there are no GPUs, whatever the machine has; empty: the driver is there. Opens it.
  const std::string& missing();

  std::vector<int> InUse() override;
  std::optional<int> Of(const void* address) override;
  std::string PciAddress(int gpu) override;
  std::byte* Allocate(int gpu, uint64_t bytes, std::string* error) override;
  void Free(int gpu, std::byte* memory) override;
  int DmaBuf(int gpu, std::byte* base, uint64_t bytes) override;
  bool Copy(int gpu, void* to, const void* from, uint64_t bytes, std::string* error) override;

  // ---- for this folder ----

  // After missing() was empty.
  const LibcudaCalls& calls() const { return calls_; }
  // The calling thread works in the GPU's context while this lives, and may call what a capture forbids.
  class InContext {
   public:
    InContext(Libcuda* of, int gpu, std::string* error);
    ~InContext();
    InContext(const InContext&) = delete;
    InContext& operator=(const InContext&) = delete;
    bool ok() const { return pushed_; }

   private:
    const LibcudaCalls& calls_;
    bool pushed_ = false;
    int capture_mode_ = kCaptureRelaxed;
  };
  // A stream of the caller's own, before all others of the GPU; null and one line in `*error`. Within InContext.
  Stream NewStream(int gpu, std::string* error);
  // True if `result` is success; else one line in `*error`.
  bool Fine(Result result, const char* what, int gpu, std::string* error) const;

 private:
  struct Opened {
    Context context = nullptr;
    Stream copies = nullptr;
    std::mutex copying;  // one at a time, so that each waits for its own
  };
  // Null and one line in `*error`.
  Opened* Open(int gpu, std::string* error);

  const std::string library_;
  std::once_flag once_;
  std::string missing_;
  LibcudaCalls calls_{};
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Opened>> opened_;
};

}  // namespace r2cc::gpu

#endif  // R2CC_NETPLUGIN_GPU_LIBCUDA_H_
