#include "netplugin/gpu/libcuda.h"

namespace r2cc::gpu {
namespace {

Pointer At(const void* address) { return static_cast<Pointer>(reinterpret_cast<uintptr_t>(address)); }

}  // namespace

std::vector<int> Libcuda::InUse() {
  std::vector<int> all;
  int count = 0;
  if (!missing().empty() || driver_.calls().device_get_count(&count) != 0) return all;
  for (int gpu = 0; gpu < count; ++gpu) {
    unsigned flags = 0;
    int active = 0;
    if (driver_.calls().primary_context_get_state(gpu, &flags, &active) == 0 && active != 0) all.push_back(gpu);
  }
  return all;
}

std::optional<int> Libcuda::Of(const void* address) {
  unsigned type = 0;
  int gpu = 0;
  if (!missing().empty() || driver_.calls().pointer_get_attribute(&type, kMemoryType, At(address)) != 0 || type != kDeviceMemory ||
      driver_.calls().pointer_get_attribute(&gpu, kOrdinal, At(address)) != 0)
    return std::nullopt;
  return gpu;
}

std::string Libcuda::PciAddress(int gpu) {
  char id[32] = {};
  if (!missing().empty() || driver_.calls().device_get_pci_bus_id(id, sizeof(id), gpu) != 0) return "";
  std::string address = id;
  // As the kernel writes it.
  for (char& c : address)
    if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  return address;
}

std::byte* Libcuda::Allocate(int gpu, uint64_t bytes, std::string* error) {
  // So much the driver maps at least, and from so much on it begins on a page of the GPU.
  constexpr uint64_t kLeastBytes = 2 << 20;
  const Driver::InContext in(&driver_, gpu, error);
  Pointer address = 0;
  if (!in.ok() ||
      !driver_.Fine(driver_.calls().memory_allocate(&address, bytes < kLeastBytes ? kLeastBytes : bytes), "find memory on", gpu, error))
    return nullptr;
  return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address));
}

void Libcuda::Free(int gpu, std::byte* memory) {
  std::string error;
  const Driver::InContext in(&driver_, gpu, &error);
  if (in.ok()) driver_.calls().memory_free(At(memory));
}

int Libcuda::DmaBuf(int gpu, std::byte* base, uint64_t bytes) {
  std::string error;
  const Driver::InContext in(&driver_, gpu, &error);
  int descriptor = -1;
  const LibcudaCalls& calls = driver_.calls();
  if (!in.ok() || calls.memory_get_handle == nullptr || calls.memory_get_handle(&descriptor, At(base), bytes, kDmaBufDescriptor, 0) != 0)
    return -1;
  return descriptor;
}

bool Libcuda::Copy(int gpu, void* to, const void* from, uint64_t bytes, std::string* error) {
  const Driver::InContext in(&driver_, gpu, error);
  if (!in.ok()) return false;
  Copies* copies = nullptr;
  {
    const MutexLock lock(mutex_);
    copies = &copies_[gpu];
  }
  const MutexLock copying(copies->copying);
  // The job's kernels may fill the GPU: what others wait for goes first.
  if (copies->stream == nullptr && (copies->stream = driver_.NewStream(gpu, Driver::Priority::kFirst, error)) == nullptr) return false;
  return driver_.Fine(driver_.calls().memory_copy(At(to), At(from), bytes, copies->stream), "copy memory of", gpu, error) &&
         driver_.Fine(driver_.calls().stream_synchronize(copies->stream), "copy memory of", gpu, error);
}

}  // namespace r2cc::gpu
