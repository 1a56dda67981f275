#include "tests/gpu/busy_gpu.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace r2cc::gpu_test {
namespace {

constexpr char kKernel[] = R"(
.version 7.0
.target sm_80
.address_size 64
.visible .entry spin(.param .u64 flag) {
  .reg .u64 %at;
  .reg .u32 %value;
  .reg .pred %is_zero;
  ld.param.u64 %at, [flag];
again:
  ld.volatile.global.u32 %value, [%at];
  setp.eq.u32 %is_zero, %value, 0;
  @%is_zero bra again;
  ret;
}
)";
constexpr unsigned kMappedAndPortable = 3;  // CU_MEMHOSTALLOC_PORTABLE, CU_MEMHOSTALLOC_DEVICEMAP

}  // namespace

template <typename Call>
Call* BusyGpu::Find(const char* name) const {
  void* const found = dlsym(handle_, name);
  if (found == nullptr) Must(1, name);
  return reinterpret_cast<Call*>(found);
}

void BusyGpu::Must(gpu::Result result, const char* what) const {
  if (result == 0) return;
  std::printf("%s: %s\n", what, cuda_->calls().TextOf(result).c_str());
  std::exit(2);
}

BusyGpu::BusyGpu(gpu::Libcuda* cuda, int gpu) : cuda_(cuda), gpu_(gpu), handle_(dlopen("libcuda.so.1", RTLD_NOW)) {
  std::string error;
  const gpu::Libcuda::InContext in(cuda_, gpu_, &error);
  void* flag = nullptr;
  Must(Find<gpu::Result(void**, size_t, unsigned)>("cuMemHostAlloc")(&flag, 4096, kMappedAndPortable), "cuMemHostAlloc");
  flag_ = static_cast<volatile uint32_t*>(flag);
  *flag_ = 0;
  gpu::Module module = nullptr;
  Must(cuda_->calls().module_load(&module, kKernel), "load a kernel");
  Must(cuda_->calls().module_get_function(&spin_, module, "spin"), "find a kernel");
  Must(cuda_->calls().memory_allocate(&spare_, 1 << 20), "allocate");
  // So that nothing is loaded later.
  *flag_ = 1;
  Spin(1, false);
  Synchronize();
  *flag_ = 0;
}

BusyGpu::~BusyGpu() {
  if (meanwhile_.joinable()) meanwhile_.join();
  Synchronize();
}

void BusyGpu::Spin(unsigned blocks, bool first) {
  std::string error;
  const gpu::Libcuda::InContext in(cuda_, gpu_, &error);
  int least = 0, greatest = 0;
  Must(cuda_->calls().context_get_priorities(&least, &greatest), "priorities");
  Must(cuda_->calls().stream_create(&stream_, gpu::kNonBlockingStream, first ? greatest : least), "make a stream");
  volatile uint32_t* flag = flag_;
  void* parameters[] = {&flag};
  Must(cuda_->calls().launch(spin_, blocks, 1, 1, 512, 1, 1, 0, stream_, parameters, nullptr), "launch");
}

void BusyGpu::QueueBehind(int kernels) {
  std::string error;
  const gpu::Libcuda::InContext in(cuda_, gpu_, &error);
  const auto wait = Find<gpu::Result(gpu::Stream, gpu::Event, unsigned)>("cuStreamWaitEvent");
  int least = 0, greatest = 0;
  Must(cuda_->calls().context_get_priorities(&least, &greatest), "priorities");
  gpu::Event event = nullptr;
  Must(cuda_->calls().event_create(&event, gpu::kEventWithoutTiming), "make an event");
  Must(cuda_->calls().event_record(event, stream_), "record");
  volatile uint32_t* flag = flag_;
  void* parameters[] = {&flag};
  for (int i = 0; i < kernels; ++i) {
    gpu::Stream stream = stream_;
    if (i % 2 == 0) {
      Must(cuda_->calls().stream_create(&stream, gpu::kNonBlockingStream, i % 4 == 0 ? greatest : least), "make a stream");
      Must(wait(stream, event, 0), "cuStreamWaitEvent");
    }
    Must(cuda_->calls().launch(spin_, 1, 1, 1, 512, 1, 1, 0, stream, parameters, nullptr), "launch");
  }
}

void BusyGpu::Synchronize() {
  std::string error;
  const gpu::Libcuda::InContext in(cuda_, gpu_, &error);
  Must(Find<gpu::Result()>("cuCtxSynchronize")(), "cuCtxSynchronize");
}

void BusyGpu::FreeMemory() {
  std::string error;
  const gpu::Libcuda::InContext in(cuda_, gpu_, &error);
  Must(cuda_->calls().memory_free(spare_), "free");
}

void BusyGpu::Release() { *flag_ = 1; }

}  // namespace r2cc::gpu_test
