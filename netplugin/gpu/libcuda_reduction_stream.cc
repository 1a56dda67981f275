#include "netplugin/gpu/libcuda_reduction_stream.h"

#include <algorithm>

namespace r2cc::gpu {
namespace {

constexpr unsigned kThreads = 512;
// NCCL's own kernels have as few: the GPU is the job's. An H100 reads 740 GB/s of f32 with them and 450 of bf16, more than eight 400 Gbit/s
// rails bring (tests/gpu:reduction_check).
constexpr unsigned kBlocksMax = 32;
static_assert(kReduceSourcesMax == ReductionStream::kSourcesMax);

bool IsAligned(const std::byte* address) { return reinterpret_cast<uintptr_t>(address) % kReduceVectorBytes == 0; }

}  // namespace

std::unique_ptr<LibcudaReductionStream> LibcudaReductionStream::Open(Libcuda* cuda, int gpu, std::span<const unsigned char> image,
                                                                     std::string* error) {
  if (image.empty()) {
    *error = "R2CC: this build cannot add up memory of GPUs: it was made without nvcc";
    return nullptr;
  }
  std::unique_ptr<LibcudaReductionStream> opened(new LibcudaReductionStream(cuda, gpu));
  return opened->Load(image.data(), error) ? std::move(opened) : nullptr;
}

bool LibcudaReductionStream::Load(const void* image, std::string* error) {
  const Libcuda::InContext in(cuda_, gpu_, error);
  if (!in.ok()) return false;
  const LibcudaCalls& calls = cuda_->calls();
  const auto fine = [&](Result result, const char* what) { return cuda_->Fine(result, what, gpu_, error); };
  Module module = nullptr;
  if (!fine(calls.module_load(&module, image), "load the reduction onto")) return false;
  if ((stream_ = cuda_->NewStream(gpu_, error)) == nullptr) return false;
  for (Mark& mark : marks_)
    if (!fine(calls.event_create(&mark.event, kEventWithoutTiming), "make an event on")) return false;
  for (int type = 0; type < kTypes; ++type)
    for (int op = 0; op < kOps; ++op) {
      const std::string name = "r2cc_reduce_" + std::to_string(type) + "_" + std::to_string(op);
      ReduceParameters nothing{};
      if (!fine(calls.module_get_function(&kernels_[type][op], module, name.c_str()), "find the reduction on") ||
          !fine(Launch(kernels_[type][op], 1, &nothing), "run the reduction on"))
        return false;
    }
  return fine(calls.stream_synchronize(stream_), "run the reduction on");
}

Result LibcudaReductionStream::Launch(Function kernel, unsigned blocks, ReduceParameters* parameters) const {
  void* all[] = {parameters};
  return cuda_->calls().launch(kernel, blocks, 1, 1, kThreads, 1, 1, 0, stream_, all, nullptr);
}

Result LibcudaReductionStream::MarkWhatBegan() {
  if (marked_ == begun_ || recorded_ == kEvents) return 0;
  Mark& mark = marks_[(oldest_ + recorded_) % kEvents];
  mark.covers = marked_ = begun_;
  ++recorded_;
  return cuda_->calls().event_record(mark.event, stream_);
}

Result LibcudaReductionStream::LookAtMarks() {
  for (; recorded_ > 0; --recorded_, oldest_ = (oldest_ + 1) % kEvents) {
    const Result result = cuda_->calls().event_query(marks_[oldest_].event);
    if (result == kNotReady) break;
    if (result != 0) return result;
    done_ = marks_[oldest_].covers;
  }
  return MarkWhatBegan();
}

ReductionStream::Number LibcudaReductionStream::Begin(const Work& work, std::string* error) {
  ReduceParameters parameters;
  parameters.out = work.out;
  parameters.count = work.count;
  parameters.sources = static_cast<uint32_t>(work.sources.size());
  std::copy(work.sources.begin(), work.sources.end(), parameters.source);
  parameters.aligned = IsAligned(work.out) && std::all_of(work.sources.begin(), work.sources.end(), IsAligned) ? 1 : 0;
  // Each thread has a vector of four bytes' elements at least.
  const uint64_t blocks = work.count / (kThreads * kReduceVectorBytes / 4) + 1;

  const Libcuda::InContext in(cuda_, gpu_, error);
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) *error = failure_;
  if (!in.ok() || !failure_.empty()) return 0;
  Result result = Launch(kernels_[static_cast<int>(work.type)][static_cast<int>(work.op)],
                         static_cast<unsigned>(std::min<uint64_t>(blocks, kBlocksMax)), &parameters);
  if (result == 0) {
    ++begun_;
    result = MarkWhatBegan();
  }
  if (cuda_->Fine(result, "add up memory of", gpu_, &failure_)) return begun_;
  *error = failure_;
  return 0;
}

ReductionStream::State LibcudaReductionStream::Look(Number number, std::string* error) {
  {
    const std::lock_guard lock(mutex_);
    if (number <= done_) return State::kDone;
  }
  const Libcuda::InContext in(cuda_, gpu_, error);
  if (!in.ok()) return State::kFailed;
  const std::lock_guard lock(mutex_);
  const Result result = LookAtMarks();
  if (number <= done_) return State::kDone;
  return cuda_->Fine(result, "add up memory of", gpu_, error) ? State::kRunning : State::kFailed;
}

}  // namespace r2cc::gpu
