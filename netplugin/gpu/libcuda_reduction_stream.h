// ReductionStream by kernels of our own (reduce_kernels.cu), on a CUDA stream that goes before the job's.
//
// Completion is told by events. Each kernel has one as long as there are any; those that find none are covered by the next that is
// recorded.
#ifndef R2CC_NETPLUGIN_GPU_LIBCUDA_REDUCTION_STREAM_H_
#define R2CC_NETPLUGIN_GPU_LIBCUDA_REDUCTION_STREAM_H_

#include <array>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "netplugin/gpu/libcuda.h"
#include "netplugin/gpu/reduce_image.h"
#include "netplugin/gpu/reduce_parameters.h"
#include "netplugin/gpu/reduction_stream.h"

namespace r2cc::gpu {

class LibcudaReductionStream final : public ReductionStream {
 public:
  // Loads `image` and has each kernel run once, so that the driver has nothing left to load or to allocate. Null and one line in `*error`.
  // `cuda` outlives what it returns; what the driver has of it stays until the process ends. MAY BLOCK.
  static std::unique_ptr<LibcudaReductionStream> Open(Libcuda* cuda, int gpu, std::span<const unsigned char> image, std::string* error);

  Number Begin(const Work& work, std::string* error) override;
  State Look(Number number, std::string* error) override;

 private:
  static constexpr int kTypes = 10, kOps = 4;  // NCCL's, up to bf16 and without the average
  // More than are under way at a time: two pieces of each of eight operations (plugin/coll_calls.cc).
  static constexpr size_t kEvents = 16;
  struct Mark {
    Event event = nullptr;
    Number covers = 0;  // all up to this one
  };

  LibcudaReductionStream(Libcuda* cuda, int gpu) : cuda_(cuda), gpu_(gpu) {}
  bool Load(const void* image, std::string* error);
  Result Launch(Function kernel, unsigned blocks, ReduceParameters* parameters) const;
  // Within the GPU's context and with the mutex. Success, or what has gone wrong.
  Result LookAtMarks();
  Result MarkWhatBegan();

  Libcuda* const cuda_;
  const int gpu_;
  Stream stream_ = nullptr;
  Function kernels_[kTypes][kOps] = {};
  std::mutex mutex_;  // of what follows
  std::array<Mark, kEvents> marks_;
  size_t oldest_ = 0, recorded_ = 0;  // of the marks, a ring
  Number begun_ = 0, marked_ = 0, done_ = 0;
  std::string failure_;
};

}  // namespace r2cc::gpu

#endif  // R2CC_NETPLUGIN_GPU_LIBCUDA_REDUCTION_STREAM_H_
