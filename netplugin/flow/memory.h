// Names the job's memory for all code between NCCL and a transport. Only MemoryOps and transports access the bytes of a buffer.
#ifndef R2CC_NETPLUGIN_FLOW_MEMORY_H_
#define R2CC_NETPLUGIN_FLOW_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace r2cc::net {

enum class MemoryKind : uint8_t {
  kHost,
  kCuda,    // named by its address, which only devices and libcuda can dereference
  kDmaBuf,  // the same, with a descriptor through which devices reach it
};

// Identifies a registration of this process: 1, 2, 3, ... 0: none.
using RegionId = uint32_t;

// One registration of the job. It does not change, and any thread may read it; transport/memory_table.h states for how long.
struct Memory {
  RegionId id = 0;
  MemoryKind kind = MemoryKind::kHost;
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  int gpu = -1;  // the GPU that has the memory; -1: host memory
  // kDmaBuf: a descriptor that is open as long as the memory is registered, and the offset of `base` in it.
  int dma_buf = -1;
  uint64_t dma_buf_offset = 0;
};

// The source or the destination of a message. Null memory: host memory that no transport has to know.
struct Buffer {
  Buffer() = default;
  // NOLINTNEXTLINE: host memory converts to a buffer. A sender's buffer is not written, whatever its type.
  Buffer(const void* at, const Memory* of = nullptr) : data(static_cast<std::byte*>(const_cast<void*>(at))), memory(of) {}

  // True if the processors cannot read or write it.
  bool is_device() const { return memory != nullptr && memory->kind != MemoryKind::kHost; }

  std::byte* data = nullptr;
  const Memory* memory = nullptr;
};

// The position of a buffer in a receiver's memory, as the receiver announces it to the sender. Region 0: the sender's devices need no key.
// Valid keys are those of the region's generation, or later ones.
struct BufferPlace {
  RegionId region = 0;
  uint32_t generation = 0;
  uint64_t offset = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_MEMORY_H_
