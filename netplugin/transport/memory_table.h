// Records what the job has registered, on which rails, and by which keys its peers' devices reach it.
//
// Any thread, unless stated otherwise. No call waits for a peer or takes a peer's lock; registering may take milliseconds.
#ifndef R2CC_NETPLUGIN_TRANSPORT_MEMORY_TABLE_H_
#define R2CC_NETPLUGIN_TRANSPORT_MEMORY_TABLE_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/core/mutex.h"
#include "base/core/unique_fd.h"
#include "netplugin/flow/memory.h"
#include "netplugin/link/frame.h"
#include "netplugin/transport/links.h"

namespace r2cc::net {

class MemoryTable {
 public:
  // `notify`: the keys of a region have changed, or it has none any more; for peers that know it. Called by the thread that changed them,
  // with no lock of the table. A later generation may be reported before an earlier one. The transports outlive the table.
  MemoryTable(std::vector<Transport*> transports, size_t rails, std::function<void(const Region&)> notify)
      : transports_(std::move(transports)), rails_(rails), notify_(std::move(notify)) {}

  // Each rail has a transport that takes memory of that kind, so the plugin may offer it to NCCL. Not with a lock of a peer; MAY BLOCK.
  bool Takes(MemoryKind kind);

  // The plugin has offered that for GPU memory.
  bool promised() const { return promised_.load(std::memory_order_relaxed); }

  // Registers `like`, without its id, on all rails, so that no failover has to. Its descriptor, if it has one, is still the caller's. Null
  // and one line in `error`: no transport can reach such memory from any rail, and the plugin never offered it to NCCL.
  //
  // Memory of a GPU is registered on all rails or on none: a job whose last rail cannot reach its memory would hang. Memory that is on none
  // has no id, and `error` has one line why: it is copied through the host (see PostRequest()).
  //
  // Host memory that all transports reach without a key has no id: buffers need not name it (see BufferIn()), and its handle ends with
  // Unregister(). Any other handle stays readable after that, until kRetiredMost others were unregistered, because a flow that the job
  // aborts may still name it.
  static constexpr size_t kRetiredMost = 1 << 16;
  const Memory* Register(const Memory& like, std::string* error);
  // No transport reaches it any more; peers are notified.
  void Unregister(const Memory* memory);

  // Handles that are still readable although they were unregistered.
  size_t retired() const {
    const MutexLock lock(mutex_);
    return retired_.size();
  }

  // With or without a peer's lock: the region as it is now; null: not registered.
  std::shared_ptr<const Region> Find(RegionId region) const;

  // The rails whose devices can read the buffer now; all rails where no device reads. A device whose registration failed would lose its
  // link.
  RailSet RailsThatRead(const Buffer& from) const;
  static RailSet RailsOf(const Region& region);

  // The device of the rail was replaced, or its keys were revoked: registers all memory there again, as far as possible. Call before a link
  // by that device can begin.
  void DeviceBack(TransportKind kind, uint16_t rail);

 private:
  struct Entry {
    std::unique_ptr<Memory> memory;
    UniqueFd dma_buf;
    std::shared_ptr<const Region> region;
  };
  // Makes the next generation of all regions, each changed by `change`.
  void ChangeAll(const std::function<void(const Memory&, Region*)>& change);

  const std::vector<Transport*> transports_;
  const size_t rails_;
  const std::function<void(const Region&)> notify_;
  // One thread registers at a time.
  Mutex changing_ R2CC_ACQUIRED_BEFORE(mutex_);
  RegionId last_id_ R2CC_GUARDED_BY(changing_) = 0;
  // Not held while a transport is called. An entry changes only with both.
  mutable Mutex mutex_;
  std::map<RegionId, Entry> entries_ R2CC_GUARDED_BY(mutex_);
  std::deque<std::unique_ptr<Memory>> retired_ R2CC_GUARDED_BY(mutex_);
  std::atomic<bool> promised_{false};
};

// A buffer at `data` in `memory`, which is null or a table's.
inline Buffer BufferIn(const Memory* memory, const void* data) {
  const bool named = memory != nullptr && (memory->id != 0 || memory->kind != MemoryKind::kHost);
  return {data, named ? memory : nullptr};
}

// The buffer lies in `memory`, which is null or a table's. If it did not, the peer would refuse its offset, for as long as the job runs.
inline bool LiesIn(const Memory* memory, const void* data, uint64_t bytes) {
  if (memory == nullptr || bytes == 0) return true;
  const auto at = reinterpret_cast<uintptr_t>(data), base = reinterpret_cast<uintptr_t>(memory->base);
  return at >= base && at - base <= memory->bytes && bytes <= memory->bytes - (at - base);
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_MEMORY_TABLE_H_
