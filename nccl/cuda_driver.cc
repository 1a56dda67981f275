#include "nccl/cuda_driver.h"

#include <dlfcn.h>
#include <sched.h>

#include <memory>

namespace r2cc::nccl {
namespace {

// The driver's handles are opaque on either side.
gpu::Event Of(Event event) { return reinterpret_cast<gpu::Event>(event); }
gpu::Stream Of(Stream stream) { return reinterpret_cast<gpu::Stream>(stream); }

}  // namespace

CudaDriver* CudaDriver::Open(Nanos late_after, std::string* error) {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    *error = "there is no CUDA driver";
    return nullptr;
  }
  auto driver = std::make_unique<CudaDriver>();
  driver->late_after_ = late_after;
  gpu::LibcudaCalls& calls = driver->calls_;
  std::string lacks = calls.Find(library);
  if (lacks.empty() && (calls.event_synchronize == nullptr || calls.event_destroy == nullptr || calls.stream_wait_event == nullptr ||
                        calls.stream_is_capturing == nullptr || calls.host_allocate == nullptr || calls.host_free == nullptr ||
                        calls.memory_get_info == nullptr))
    lacks = "what a seat needs";
  if (!lacks.empty()) {
    *error = "the CUDA driver lacks " + lacks;
    return nullptr;
  }
  return driver.release();
}

bool CudaDriver::IsCaptured(Stream stream) {
  int status = 0;
  return calls_.stream_is_capturing(Of(stream), &status) != 0 || status != 0;
}

bool CudaDriver::MakeEvent(Event* event) {
  const Relaxed relaxed(calls_);
  return calls_.event_create(reinterpret_cast<gpu::Event*>(event), gpu::kEventWithoutTiming) == 0;
}

bool CudaDriver::Record(Event event, Stream stream) { return calls_.event_record(Of(event), Of(stream)) == 0; }
bool CudaDriver::Wait(Stream stream, Event event) { return calls_.stream_wait_event(Of(stream), Of(event), 0) == 0; }

bool CudaDriver::Finish(Event event, const std::function<void()>& is_late) {
  const Relaxed relaxed(calls_);
  // The driver has no wait with a limit; its own wait is busy, too.
  const SteadyClock clock;
  const Nanos begin = clock.Now();
  for (;;) {
    const gpu::Result result = calls_.event_query(Of(event));
    if (result != gpu::kNotReady) return result == 0;
    if (clock.Now() - begin >= late_after_) break;
    sched_yield();
  }
  is_late();
  return calls_.event_synchronize(Of(event)) == 0;
}

bool CudaDriver::Finish(Stream stream) {
  const Relaxed relaxed(calls_);
  return calls_.stream_synchronize(Of(stream)) == 0;
}

uint32_t* CudaDriver::AllocateWords(size_t words) {
  const Relaxed relaxed(calls_);
  void* memory = nullptr;
  if (calls_.host_allocate(&memory, words * sizeof(uint32_t), gpu::kPortableMappedHost) != 0) return nullptr;
  return static_cast<uint32_t*>(memory);
}

void CudaDriver::Free(Event event) { calls_.event_destroy(Of(event)); }
void CudaDriver::FreeWords(uint32_t* words) { calls_.host_free(words); }

uint64_t CudaDriver::FreeBytes() {
  size_t free = 0;
  size_t total = 0;
  return calls_.memory_get_info(&free, &total) == 0 ? free : 0;
}

}  // namespace r2cc::nccl
