// The job's memory, as everybody between NCCL and a transport knows it: by name. What lies in a buffer is touched by MemoryOps and by
// transports alone.
#ifndef R2CC_NETPLUGIN_FLOW_MEMORY_H_
#define R2CC_NETPLUGIN_FLOW_MEMORY_H_

#include <cstddef>
#include <cstdint>

namespace r2cc::net {

enum class MemoryKind : uint8_t {
  kHost,
  kCuda,    // named by its address, which only devices and libcuda can follow
  kDmaBuf,  // the same, with a descriptor by which devices reach it
};

// A registration of this process: 1, 2, 3, ... 0: none.
using RegionId = uint32_t;

// What the job has registered. It does not change, and any thread may read it: see transport/memory_table.h for how long.
struct Memory {
  RegionId id = 0;
  MemoryKind kind = MemoryKind::kHost;
  std::byte* base = nullptr;
  uint64_t bytes = 0;
  int gpu = -1;  // whose memory it is; -1: the host's
  // kDmaBuf: open as long as the memory is registered, and where in it `base` lies.
  int dma_buf = -1;
  uint64_t dma_buf_offset = 0;
};

// Where a message comes from or goes to. Null memory: host memory that no transport has to know.
struct Buffer {
  Buffer() = default;
  // NOLINTNEXTLINE: host memory is a buffer as it is. A sender's is not written, whatever its type.
  Buffer(const void* at, const Memory* of = nullptr) : data(static_cast<std::byte*>(const_cast<void*>(at))), memory(of) {}

  // The processors cannot read or write it.
  bool is_device() const { return memory != nullptr && memory->kind != MemoryKind::kHost; }

  std::byte* data = nullptr;
  const Memory* memory = nullptr;
};

// Where in a receiver's memory a buffer lies, as its sender hears of it; region 0: its devices need no key. The keys are those of the
// region's generation, or later ones.
struct Place {
  RegionId region = 0;
  uint32_t generation = 0;
  uint64_t offset = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_MEMORY_H_
