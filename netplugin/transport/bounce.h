// Registered memory in the place of buffers that the job has not registered: where a device places, it reads and writes nothing else. What
// is sent is copied there before it is posted; what came is copied to the job's buffer before the job hears of it. NCCL registers all that
// it sends and receives; some control messages of CollNet do not. Buffers in a GPU's memory that not all rails to the peer reach go the
// same way.
//
// Not registered on the fly: the job may unmap such a buffer and map another there, and nobody would tell.
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

// Pieces of it, of the process. It keeps what was ever needed at a time. Any thread, without a lock of a peer; may block.
class BouncePool {
 public:
  // Both outlive it. `gpu`: null where there is none.
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
  // At least so large. None and one line in `error`: no rail takes it.
  Piece Take(uint64_t bytes, std::string* error);
  void GiveBack(Piece piece);

 private:
  static constexpr size_t kClasses = 64;

  MemoryTable* const table_;
  gpu::Gpu* const gpu_;
  Mutex mutex_;
  std::array<std::vector<Piece>, kClasses> free_ R2CC_GUARDED_BY(mutex_);  // by the power of two that is their size
};

// The pieces of one comm's requests. The comm's own thread.
class Bounce {
 public:
  // The pool outlives it.
  Bounce(BouncePool* pool, bool receives) : pool_(pool), receives_(receives) {}
  ~Bounce();
  Bounce(const Bounce&) = delete;
  Bounce& operator=(const Bounce&) = delete;

  // The buffer that is posted in the place of `buffer`. Without data, and one line in `error`: there is none.
  Buffer Post(uint64_t number, const Buffer& buffer, uint64_t bytes, std::string* error);
  // All requests below are done: what came of those below what it returns is in the job's buffers from now on. Less than was asked for,
  // and one line in `error`: a GPU does not take it, and never will. `sizes`: see Comm.
  uint64_t Finish(uint64_t done_through, const std::array<uint64_t, kRequestsMax>& sizes, std::string* error);

 private:
  struct Posted {
    BouncePool::Piece piece;
    std::byte* job = nullptr;  // the job's buffer
    int gpu = -1;              // in whose memory it is; -1: the host's
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
