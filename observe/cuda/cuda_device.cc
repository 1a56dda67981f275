#include "observe/cuda/cuda_device.h"

#include <cstring>
#include <map>

#include "base/core/mutex.h"
#include "observe/cuda/arguments.h"
#include "observe/cuda/kernels.h"

namespace r2cc::observe {
namespace {

// CUDA 12.1: kernels take 32,764 bytes of parameters.
constexpr int kLargeParametersSince = 12010;
constexpr int kIsCaptured = 1;  // CU_STREAM_CAPTURE_STATUS_ACTIVE

gpu::Pointer At(const void* address) { return static_cast<gpu::Pointer>(reinterpret_cast<uintptr_t>(address)); }

// Modules stay loaded: a captured graph may hold their kernels.
struct Loaded {
  Mutex mutex;
  std::map<int, std::array<gpu::Function, CudaDevice::kKernels>> kernels R2CC_GUARDED_BY(mutex);
};

Loaded& TheLoaded() {
  static Loaded* const loaded = new Loaded();
  return *loaded;
}

gpu::Driver* TheDriver() {
  static gpu::Driver* const driver = new gpu::Driver();
  return driver;
}

}  // namespace

std::unique_ptr<CudaDevice> CudaDevice::Open(int gpu, std::string* error) {
  gpu::Driver* const driver = TheDriver();
  *error = driver->missing();
  if (!error->empty()) return nullptr;
  const gpu::LibcudaCalls& calls = driver->calls();
  int count = 0, version = 0;
  if (calls.host_allocate == nullptr || calls.host_free == nullptr || calls.host_register == nullptr || calls.host_unregister == nullptr ||
      calls.stream_is_capturing == nullptr || calls.context_synchronize == nullptr || calls.driver_get_version == nullptr) {
    *error = "the CUDA driver is too old for tensor taps";
    return nullptr;
  }
  if (!driver->Fine(calls.device_get_count(&count), "count, looking for", gpu, error)) return nullptr;
  if (gpu < 0 || gpu >= count) {
    *error = "there is no GPU " + std::to_string(gpu) + ": this process sees " + std::to_string(count);
    return nullptr;
  }
  std::unique_ptr<CudaDevice> device(new CudaDevice(driver, gpu));
  device->takes_large_ = calls.driver_get_version(&version) == 0 && version >= kLargeParametersSince;
  return device->Load(error) ? std::move(device) : nullptr;
}

bool CudaDevice::Load(std::string* error) {
  const std::span<const unsigned char> image = gpu::ObserveStepImage();
  if (image.empty()) {
    *error = "libr2cc-observe.so was built without nvcc: it taps host memory alone, device=\"host\"";
    return false;
  }
  const gpu::Driver::InContext in(driver_, gpu_, error);
  if (!in.ok()) return false;
  own_ = driver_->NewStream(gpu_, gpu::Driver::Priority::kLast, error);
  if (own_ == nullptr) return false;
  Loaded& loaded = TheLoaded();
  const MutexLock lock(loaded.mutex);
  auto& kernels = loaded.kernels[gpu_];
  if (kernels[0] == nullptr) {
    gpu::Module module = nullptr;
    if (!driver_->Fine(calls().module_load(&module, image.data()), "load the kernels of tensor taps on", gpu_, error)) return false;
    const char* const names[kKernels] = {kGatherSmall, kGatherLarge, kFlatSmall, kFlatLarge, kInline, kRows, kHash, kWait};
    for (size_t i = kernels.size(); i-- > 0;)  // the first one last: it shows that all are there
      if (!driver_->Fine(calls().module_get_function(&kernels[i], module, names[i]), "find the kernels of tensor taps on", gpu_, error))
        return false;
  }
  kernels_ = kernels;
  return true;
}

bool CudaDevice::Launch(Kernel kernel, uint32_t blocks, void* arguments, gpu::Stream stream, std::string* error) {
  const gpu::Driver::InContext in(driver_, gpu_, error);
  void* parameters[] = {arguments};
  return in.ok() &&
         driver_->Fine(calls().launch(kernels_[static_cast<size_t>(kernel)], blocks, 1, 1, kThreads, 1, 1, 0, stream, parameters, nullptr),
                       "launch a kernel of tensor taps on", gpu_, error);
}

uint64_t CudaDevice::Allocate(uint64_t bytes, std::string* error) {
  const gpu::Driver::InContext in(driver_, gpu_, error);
  gpu::Pointer memory = 0;
  if (!in.ok() || !driver_->Fine(calls().memory_allocate(&memory, bytes), "find memory on", gpu_, error)) return 0;
  return memory;
}

void CudaDevice::Free(uint64_t memory) {
  std::string error;
  const gpu::Driver::InContext in(driver_, gpu_, &error);
  if (in.ok() && memory != 0) calls().memory_free(memory);
}

void* CudaDevice::AllocateMapped(uint64_t bytes, std::string* error) {
  const gpu::Driver::InContext in(driver_, gpu_, error);
  void* memory = nullptr;
  if (!in.ok() || !driver_->Fine(calls().host_allocate(&memory, bytes, gpu::kPortableMappedHost), "map host memory for", gpu_, error))
    return nullptr;
  std::memset(memory, 0, bytes);
  return memory;
}

void CudaDevice::FreeMapped(void* memory) {
  std::string error;
  const gpu::Driver::InContext in(driver_, gpu_, &error);
  if (in.ok() && memory != nullptr) calls().host_free(memory);
}

bool CudaDevice::Register(void* memory, uint64_t bytes, std::string* error) {
  const gpu::Driver::InContext in(driver_, gpu_, error);
  return in.ok() && driver_->Fine(calls().host_register(memory, bytes, gpu::kPortableRegistered), "lock host memory for", gpu_, error);
}

void CudaDevice::Unregister(void* memory) {
  std::string error;
  const gpu::Driver::InContext in(driver_, gpu_, &error);
  if (in.ok()) calls().host_unregister(memory);
}

bool CudaDevice::CopyIn(uint64_t to, const void* from, uint64_t bytes, std::string* error) {
  return CopyInOrder(to, At(from), bytes, own_, error) && Wait(own_, error);
}

bool CudaDevice::CopyInOrder(uint64_t to, uint64_t from, uint64_t bytes, gpu::Stream stream, std::string* error) {
  const gpu::Driver::InContext in(driver_, gpu_, error);
  return in.ok() && driver_->Fine(calls().memory_copy(to, from, bytes, stream), "copy memory of", gpu_, error);
}

bool CudaDevice::Wait(gpu::Stream stream, std::string* error) {
  const gpu::Driver::InContext in(driver_, gpu_, error);
  return in.ok() && driver_->Fine(calls().stream_synchronize(stream), "wait for", gpu_, error);
}

bool CudaDevice::Synchronize(std::string* error) {
  const gpu::Driver::InContext in(driver_, gpu_, error);
  return in.ok() && driver_->Fine(calls().context_synchronize(), "wait for", gpu_, error);
}

bool CudaDevice::IsCapturing(gpu::Stream stream) {
  std::string error;
  const gpu::Driver::InContext in(driver_, gpu_, &error);
  int status = 0;
  return in.ok() && calls().stream_is_capturing(stream, &status) == 0 && status == kIsCaptured;
}

bool CudaDevice::Owns(const void* address) {
  std::string error;
  const gpu::Driver::InContext in(driver_, gpu_, &error);
  unsigned type = 0;
  int gpu = -1;
  return in.ok() && calls().pointer_get_attribute(&type, gpu::kMemoryType, At(address)) == 0 && type == gpu::kDeviceMemory &&
         calls().pointer_get_attribute(&gpu, gpu::kOrdinal, At(address)) == 0 && gpu == gpu_;
}

bool CudaCopyEngine::Open(std::string* error) {
  gpu::Driver* const driver = device_->driver();
  stream_ = driver->NewStream(device_->gpu(), gpu::Driver::Priority::kLast, error);
  if (stream_ == nullptr) return false;
  for (gpu::Event& event : events_)
    if (!driver->Fine(driver->calls().event_create(&event, gpu::kEventWithoutTiming), "make an event on", device_->gpu(), error))
      return false;
  return true;
}

bool CudaCopyEngine::Start(uint64_t from, void* to, uint64_t bytes, uint64_t* ticket) {
  gpu::Driver* const driver = device_->driver();
  *ticket = started_++;
  return driver->Fine(driver->calls().memory_copy(At(to), from, bytes, stream_), "copy from", device_->gpu(), &failure_) &&
         driver->Fine(driver->calls().event_record(events_[*ticket % kEvents], stream_), "copy from", device_->gpu(), &failure_);
}

CopyEngine::State CudaCopyEngine::StateOf(uint64_t ticket) {
  gpu::Driver* const driver = device_->driver();
  const gpu::Result result = driver->calls().event_query(events_[ticket % kEvents]);
  if (result == gpu::kNotReady) return State::kUnderWay;
  return driver->Fine(result, "copy from", device_->gpu(), &failure_) ? State::kDone : State::kFailed;
}

}  // namespace r2cc::observe
