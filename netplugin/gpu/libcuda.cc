#include "netplugin/gpu/libcuda.h"

#include <dlfcn.h>

#include <utility>

namespace r2cc::gpu {
namespace {

Pointer At(const void* address) { return static_cast<Pointer>(reinterpret_cast<uintptr_t>(address)); }

}  // namespace

const std::string& Libcuda::missing() {
  std::call_once(once_, [this] {
    // Never closed: the driver leaves threads of its own behind.
    void* const handle = dlopen(library_.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) {
      missing_ = "R2CC: there is no CUDA driver: " + std::string(dlerror());
    } else if (const std::string lacks = calls_.Find(handle); !lacks.empty()) {
      missing_ = "R2CC: the CUDA driver is too old: " + library_ + " lacks " + lacks;
    } else if (const Result result = calls_.init(0); result != 0) {
      missing_ = "R2CC: the CUDA driver does not start: " + calls_.TextOf(result);
    }
  });
  return missing_;
}

bool Libcuda::Fine(Result result, const char* what, int gpu, std::string* error) const {
  if (result != 0) *error = std::string("R2CC: cannot ") + what + " GPU " + std::to_string(gpu) + ": " + calls_.TextOf(result);
  return result == 0;
}

std::vector<int> Libcuda::InUse() {
  std::vector<int> all;
  int count = 0;
  if (!missing().empty() || calls_.device_get_count(&count) != 0) return all;
  for (int gpu = 0; gpu < count; ++gpu) {
    unsigned flags = 0;
    int active = 0;
    if (calls_.primary_context_get_state(gpu, &flags, &active) == 0 && active != 0) all.push_back(gpu);
  }
  return all;
}

std::optional<int> Libcuda::Of(const void* address) {
  unsigned type = 0;
  int gpu = 0;
  if (!missing().empty() || calls_.pointer_get_attribute(&type, kMemoryType, At(address)) != 0 || type != kDeviceMemory ||
      calls_.pointer_get_attribute(&gpu, kOrdinal, At(address)) != 0)
    return std::nullopt;
  return gpu;
}

std::string Libcuda::PciAddress(int gpu) {
  char id[32] = {};
  if (!missing().empty() || calls_.device_get_pci_bus_id(id, sizeof(id), gpu) != 0) return "";
  std::string address = id;
  // As the kernel writes it.
  for (char& c : address)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  return address;
}

Libcuda::Opened* Libcuda::Open(int gpu, std::string* error) {
  if (!missing().empty()) {
    *error = missing();
    return nullptr;
  }
  const std::lock_guard lock(mutex_);
  auto& opened = opened_[gpu];
  if (opened == nullptr) opened = std::make_unique<Opened>();
  if (opened->context == nullptr && !Fine(calls_.primary_context_retain(&opened->context, gpu), "use", gpu, error)) {
    opened->context = nullptr;
    return nullptr;
  }
  return opened.get();
}

Libcuda::InContext::InContext(Libcuda* of, int gpu, std::string* error) : calls_(of->calls_) {
  Opened* const opened = of->Open(gpu, error);
  if (opened == nullptr) return;
  pushed_ = of->Fine(calls_.context_push(opened->context), "work on", gpu, error);
  if (pushed_) calls_.exchange_capture_mode(&capture_mode_);
}

Libcuda::InContext::~InContext() {
  if (!pushed_) return;
  calls_.exchange_capture_mode(&capture_mode_);
  Context popped = nullptr;
  calls_.context_pop(&popped);
}

Stream Libcuda::NewStream(int gpu, std::string* error) {
  int least = 0, greatest = 0;
  Stream stream = nullptr;
  // The job's kernels may fill the GPU: what others wait for goes first.
  if (!Fine(calls_.context_get_priorities(&least, &greatest), "look at", gpu, error) ||
      !Fine(calls_.stream_create(&stream, kNonBlockingStream, greatest), "make a stream on", gpu, error))
    return nullptr;
  return stream;
}

std::byte* Libcuda::Allocate(int gpu, uint64_t bytes, std::string* error) {
  // So much the driver maps at least, and from so much on it begins on a page of the GPU.
  constexpr uint64_t kLeastBytes = 2 << 20;
  const InContext in(this, gpu, error);
  Pointer address = 0;
  if (!in.ok() || !Fine(calls_.memory_allocate(&address, bytes < kLeastBytes ? kLeastBytes : bytes), "find memory on", gpu, error))
    return nullptr;
  return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address));
}

void Libcuda::Free(int gpu, std::byte* memory) {
  std::string error;
  const InContext in(this, gpu, &error);
  if (in.ok()) calls_.memory_free(At(memory));
}

int Libcuda::DmaBuf(int gpu, std::byte* base, uint64_t bytes) {
  std::string error;
  const InContext in(this, gpu, &error);
  int descriptor = -1;
  if (!in.ok() || calls_.memory_get_handle == nullptr || calls_.memory_get_handle(&descriptor, At(base), bytes, kDmaBufDescriptor, 0) != 0)
    return -1;
  return descriptor;
}

bool Libcuda::Copy(int gpu, void* to, const void* from, uint64_t bytes, std::string* error) {
  const InContext in(this, gpu, error);
  if (!in.ok()) return false;
  Opened* const opened = Open(gpu, error);
  const std::lock_guard copying(opened->copying);
  if (opened->copies == nullptr && (opened->copies = NewStream(gpu, error)) == nullptr) return false;
  return Fine(calls_.memory_copy(At(to), At(from), bytes, opened->copies), "copy memory of", gpu, error) &&
         Fine(calls_.stream_synchronize(opened->copies), "copy memory of", gpu, error);
}

}  // namespace r2cc::gpu
