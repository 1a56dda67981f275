// Recycles the memory blocks that hold copies of eager messages. Acknowledgements free some hundred KiB at a time. The allocator would
// return that to the kernel, which zeroes each page again for the next message. The pool keeps up to kKeptBytesMost until the session ends.
// Pure.
#ifndef R2CC_NETPLUGIN_FLOW_BUFFER_POOL_H_
#define R2CC_NETPLUGIN_FLOW_BUFFER_POOL_H_

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "netplugin/flow/memory_ops.h"
#include "netplugin/flow/types.h"

namespace r2cc::net {

class BufferPool {
 public:
  using Block = std::shared_ptr<std::byte[]>;

  explicit BufferPool(MemoryOps* memory = &host_memory) : memory_(memory) {}
  MemoryOps* memory() const { return memory_; }

  // A block of at least `bytes` (kEagerBytesMax at most). Its content is undefined.
  Block Acquire(uint64_t bytes) {
    if (bytes <= kUnpooledBytesMost) return memory_->Allocate(bytes);
    std::vector<Block>& kept = kept_[ClassOf(bytes)];
    if (kept.empty()) return memory_->Allocate(BytesOf(ClassOf(bytes)));
    // The newest block is the likeliest to be in a cache.
    Block block = std::move(kept.back());
    kept.pop_back();
    kept_bytes_ -= BytesOf(ClassOf(bytes));
    return block;
  }

  // Takes back what Acquire(bytes) returned, or null. A block that another holder still uses is not kept: that holder frees it.
  void Release(Block block, uint64_t bytes) {
    if (bytes <= kUnpooledBytesMost || block == nullptr || block.use_count() > 1) return;
    const size_t size_class = ClassOf(bytes);
    if (kept_bytes_ + BytesOf(size_class) > kKeptBytesMost) return;
    kept_bytes_ += BytesOf(size_class);
    kept_[size_class].push_back(std::move(block));
  }

  uint64_t kept_bytes() const { return kept_bytes_; }
  static constexpr uint64_t kKeptBytesMost = 1 << 20;

 private:
  // The allocator itself keeps blocks of this size ready.
  static constexpr uint64_t kUnpooledBytesMost = 4096;
  static constexpr size_t ClassOf(uint64_t bytes) { return static_cast<size_t>(std::bit_width((bytes - 1) / kUnpooledBytesMost)); }
  static constexpr size_t kClasses = std::bit_width((kEagerBytesMax - 1) / kUnpooledBytesMost) + 1;
  static constexpr uint64_t BytesOf(size_t size_class) { return kUnpooledBytesMost << size_class; }

  MemoryOps* const memory_;
  std::array<std::vector<Block>, kClasses> kept_;
  uint64_t kept_bytes_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_BUFFER_POOL_H_
