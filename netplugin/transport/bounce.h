// Replaces buffers that the job has not registered by registered memory: a device that places reads and writes nothing else. Data to send
// is copied there before it is posted; received data is copied to the job's buffer before the request is reported done. NCCL registers all
// that it sends and receives, except some control messages of CollNet. Buffers in GPU memory that not all rails to the peer reach take the
// same path.
//
// Buffers are not registered on the fly: the job may unmap such a buffer and map another there, and the plugin would not notice.
#ifndef R2CC_NETPLUGIN_TRANSPORT_BOUNCE_H_
#define R2CC_NETPLUGIN_TRANSPORT_BOUNCE_H_

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "base/core/mutex.h"
#include "netplugin/gpu/gpu.h"
#include "netplugin/transport/comm.h"
#include "netplugin/transport/memory_table.h"

namespace r2cc::net {

// The process's pool of such memory, in pieces. It keeps as much as was ever needed at one time. Any thread, without a lock of a peer; may
// block.
class BouncePool {
 public:
  // Both outlive it. `gpu`: null if there is none.
  explicit BouncePool(MemoryTable* table, gpu::Gpu* gpu = nullptr) : table_(table), gpu_(gpu) {}
  gpu::Gpu* gpu() const { return gpu_; }

  struct Piece {
    struct Free {
      void operator()(std::byte* bytes) const { std::free(bytes); }
    };
    std::unique_ptr<std::byte[], Free> bytes;  // whole pages; null: none
    const Memory* memory = nullptr;
    size_t size_class = 0;
  };
  // A piece of at least `bytes`. An empty one and one line in `error`: no rail takes it.
  Piece Take(uint64_t bytes, std::string* error);
  void GiveBack(Piece piece);

 private:
  static constexpr size_t kClasses = 64;

  MemoryTable* const table_;
  gpu::Gpu* const gpu_;
  Mutex mutex_;
  std::array<std::vector<Piece>, kClasses> free_ R2CC_GUARDED_BY(mutex_);  // by size class: a power of two
};

// The pieces of one comm's requests. Used only by the comm's own thread.
class Bounce {
 public:
  // The pool outlives it.
  Bounce(BouncePool* pool, bool receives) : pool_(pool), receives_(receives) {}
  ~Bounce();
  Bounce(const Bounce&) = delete;
  Bounce& operator=(const Bounce&) = delete;

  // The buffer to post instead of `buffer`. On failure one without data, and one line in `error`.
  Buffer Post(uint64_t number, const Buffer& buffer, uint64_t bytes, std::string* error);
  // All requests below `done_through` are done. Copies their data to the job's buffers, and returns the number below which all is copied.
  // Less than `done_through`, and one line in `error`: a GPU does not take the copy, and never will. `sizes`: see Comm.
  uint64_t Finish(uint64_t done_through, const std::array<uint64_t, kRequestsMax>& sizes, std::string* error);

 private:
  struct Posted {
    BouncePool::Piece piece;
    std::byte* job = nullptr;  // the job's buffer
    int gpu = -1;              // the GPU that has it; -1: host memory
  };
  bool Copy(const Posted& posted, void* to, const void* from, uint64_t bytes, std::string* error) const;

  BouncePool* const pool_;
  const bool receives_;
  uint64_t finished_ = 0;
  std::array<Posted, kRequestsMax> posted_;  // by number modulo the array
};

// Null without a pool.
inline std::shared_ptr<Bounce> NewBounce(BouncePool* pool, bool receives) {
  return pool != nullptr ? std::make_shared<Bounce>(pool, receives) : nullptr;
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_BOUNCE_H_
