#include "netplugin/transport/collective/device_staging.h"

#include "netplugin/transport/unique_fd.h"

namespace r2cc::net {

DeviceStaging::~DeviceStaging() {
  const Memory* const memory = memory_.load();
  if (memory == nullptr) return;
  // The handle may end with the registration.
  const int gpu = memory->gpu;
  std::byte* const base = memory->base;
  table_->Unregister(memory);
  gpu_->Free(gpu, base);
}

bool DeviceStaging::Reserve(const Memory& like, std::string* error) {
  const uint64_t bytes = slots_ * kSlotBytes;
  std::byte* const base = gpu_->Allocate(like.gpu, bytes, error);
  if (base == nullptr) return false;
  const UniqueFd dma_buf(like.kind == MemoryKind::kDmaBuf ? gpu_->DmaBuf(like.gpu, base, bytes) : -1);
  const Memory* const memory =
      table_->Register({.kind = like.kind, .base = base, .bytes = bytes, .gpu = like.gpu, .dma_buf = dma_buf.get()}, error);
  if (memory != nullptr && memory->id != 0) {
    memory_.store(memory, std::memory_order_release);
    return true;
  }
  if (memory != nullptr) table_->Unregister(memory);
  gpu_->Free(like.gpu, base);
  return false;
}

Buffer DeviceStaging::Take(collnet::Slot slot, uint64_t bytes, const Buffer& result) {
  const Memory* const memory = memory_.load(std::memory_order_acquire);
  if (memory == nullptr || !result.is_device() || result.memory->gpu != memory->gpu || slot >= slots_ || bytes > kSlotBytes)
    return host_.Take(slot, bytes, result);
  return {memory->base + slot * kSlotBytes, memory};
}

}  // namespace r2cc::net
