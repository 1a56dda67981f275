// Holds what the job has registered, by rail: local keys for sending, remote keys for peers. Each rail has a protection domain. A fence
// that cannot be proved revokes the whole domain, and the rail gets a new one: a device may give a released key to the next region, which
// the queue pair that could not be ended would reach in the old domain.
//
// Threads: any; the table's lock is never held in a call of Verbs.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_REGION_TABLE_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_REGION_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/core/mutex.h"
#include "netplugin/flow/memory.h"
#include "netplugin/transport/verbs/device.h"

namespace r2cc::net::verbs {

class RegionTable {
 public:
  // Registers in the domain of the rail. `*remote_key` is for peers. GPU memory without a dma-buf uses the kernel's module for peer memory.
  // 0, or an errno and one line in `*error`: the device does not take it. ESTALE: the domain was revoked meanwhile, and the rail's regions
  // are registered again. One thread at a time registers and unregisters. MAY BLOCK.
  int Register(const std::shared_ptr<Domain>& domain, uint16_t rail, const Memory& memory, uint32_t* remote_key, std::string* error);
  void Unregister(const Memory& memory, uint16_t rail);
  // Nothing: it is not registered there now.
  std::optional<uint32_t> LocalKey(net::RegionId memory, uint16_t rail) const;
  // The key by which peers, and the device itself, reach it. Nothing: as above.
  std::optional<uint32_t> RemoteKey(net::RegionId memory, uint16_t rail) const;
  // Deregisters all of the domain, and registers nothing in it any more: the second line of a fence. 0: each call reported that the device
  // does not reach the memory. Revoked memory has no keys until it is registered again. MAY BLOCK.
  int RevokeAll(Domain* domain);
  size_t size() const;

 private:
  struct Entry {
    std::shared_ptr<Domain> domain;
    MemoryRegion region;
  };
  using Key = std::pair<uint16_t, net::RegionId>;

  std::optional<MemoryRegion> Find(net::RegionId memory, uint16_t rail) const;
  // Deregisters it. False: the device does not release it, and may still write it.
  static bool End(const Entry& entry);

  mutable Mutex mutex_;
  std::map<Key, Entry> entries_ R2CC_GUARDED_BY(mutex_);
  std::vector<Entry> undead_ R2CC_GUARDED_BY(mutex_);                 // not in the table any more, but not released by the device
  std::map<const Domain*, int> registering_ R2CC_GUARDED_BY(mutex_);  // calls in progress
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_REGION_TABLE_H_
