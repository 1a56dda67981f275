// Cuda over the driver's library, which the process has open where it uses NCCL.
#ifndef R2CC_NCCL_CUDA_DRIVER_H_
#define R2CC_NCCL_CUDA_DRIVER_H_

#include <functional>
#include <string>

#include "base/core/clock.h"
#include "base/core/cuda/libcuda_calls.h"
#include "nccl/seams.h"

namespace r2cc::nccl {

class CudaDriver final : public Cuda {
 public:
  // Null and one line: the driver is not there or too old. `late_after`: see Finish().
  static CudaDriver* Open(Nanos late_after, std::string* error);

  bool IsCaptured(Stream stream) override;
  bool MakeEvent(Event* event) override;
  bool Record(Event event, Stream stream) override;
  bool Wait(Stream stream, Event event) override;
  bool Finish(Event event, const std::function<void()>& is_late) override;
  bool Finish(Stream stream) override;
  uint32_t* AllocateWords(size_t words) override;
  void Free(Event event) override;
  void FreeWords(uint32_t* words) override;
  uint64_t FreeBytes() override;

 private:
  // While it exists the calling thread may make calls that a capture of another thread forbids.
  class Relaxed {
   public:
    explicit Relaxed(const gpu::LibcudaCalls& calls) : calls_(calls) { calls_.exchange_capture_mode(&mode_); }
    ~Relaxed() { calls_.exchange_capture_mode(&mode_); }
    Relaxed(const Relaxed&) = delete;
    Relaxed& operator=(const Relaxed&) = delete;

   private:
    const gpu::LibcudaCalls& calls_;
    int mode_ = gpu::kCaptureRelaxed;
  };

  gpu::LibcudaCalls calls_{};
  Nanos late_after_ = 0;
};

}  // namespace r2cc::nccl

#endif  // R2CC_NCCL_CUDA_DRIVER_H_
