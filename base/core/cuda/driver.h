// Opens the CUDA driver's library with the first call. A machine without it has no GPUs, and `missing` has the line with the reason.
//
// It works in the primary contexts of GPUs, which it retains and never releases. Threads: any at once. Nothing is thrown.
#ifndef R2CC_BASE_CORE_CUDA_DRIVER_H_
#define R2CC_BASE_CORE_CUDA_DRIVER_H_

#include <map>
#include <mutex>
#include <string>

#include "base/core/cuda/libcuda_calls.h"
#include "base/core/mutex.h"

namespace r2cc::gpu {

class Driver {
 public:
  explicit Driver(std::string library = "libcuda.so.1") : library_(std::move(library)) {}
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  // One line on why there are no GPUs, if the machine has some; empty: the driver is there. Opens it.
  const std::string& missing();
  // After missing() was empty.
  const LibcudaCalls& calls() const { return calls_; }

  // The calling thread works in the GPU's context while this exists, and may call what a capture forbids.
  class InContext {
   public:
    InContext(Driver* of, int gpu, std::string* error);
    ~InContext();
    InContext(const InContext&) = delete;
    InContext& operator=(const InContext&) = delete;
    bool ok() const { return pushed_; }

   private:
    const LibcudaCalls& calls_;
    bool pushed_ = false;
    int capture_mode_ = kCaptureRelaxed;
  };

  enum class Priority { kFirst, kLast };
  // A stream of the caller's own, before or after all others of the GPU; null and one line in `*error`. Within InContext.
  Stream NewStream(int gpu, Priority priority, std::string* error);
  // True if `result` is success; else one line in `*error`: "R2CC: cannot WHAT GPU N: ...".
  bool Fine(Result result, const char* what, int gpu, std::string* error) const;

 private:
  // Null and one line in `*error`.
  Context ContextOf(int gpu, std::string* error);

  const std::string library_;
  std::once_flag once_;
  std::string missing_;
  LibcudaCalls calls_{};
  Mutex mutex_;
  std::map<int, Context> contexts_ R2CC_GUARDED_BY(mutex_);
};

}  // namespace r2cc::gpu

#endif  // R2CC_BASE_CORE_CUDA_DRIVER_H_
