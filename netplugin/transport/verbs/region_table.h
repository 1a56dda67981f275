// What the job has registered, by device: local keys for what is sent, remote keys for peers. A region of a device that was revoked, or is
// lost, is registered anew by the next Register().
//
// Threads: any; the table's lock is never held in a call of Verbs.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_REGION_TABLE_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_REGION_TABLE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/flow/memory.h"
#include "netplugin/transport/verbs/device.h"

namespace r2cc::net::verbs {

class RegionTable {
 public:
  // On the device of the rail. `*remote_key` is for peers. Memory of a GPU that has no dma-buf takes the kernel's module for peer memory.
  // 0, or an errno and one line in `*error`: the device does not take it. One thread at a time registers and unregisters. MAY BLOCK.
  int Register(const std::shared_ptr<Device>& device, uint16_t rail, const Memory& memory, uint32_t* remote_key, std::string* error);
  void Unregister(const Memory& memory, uint16_t rail);
  // Nothing: it is not registered there now.
  std::optional<uint32_t> LocalKey(net::RegionId memory, uint16_t rail) const;
  // The key by which peers, and the device itself, reach it. Nothing: as above.
  std::optional<uint32_t> RemoteKey(net::RegionId memory, uint16_t rail) const;
  // No device of a peer may write through the rail's device any more: the second line of a fence. 0: proved. What is revoked has no keys
  // until it is registered again. MAY BLOCK.
  int RevokeAll(uint16_t rail);
  size_t size() const;

 private:
  struct Entry {
    std::shared_ptr<Device> device;
    MemoryRegion region;
  };
  using Key = std::pair<uint16_t, net::RegionId>;

  std::optional<MemoryRegion> Find(net::RegionId memory, uint16_t rail) const;
  // In the table no more. False: the device does not let go of it, and it may still be written.
  static bool End(const Entry& entry);

  mutable std::mutex mutex_;
  std::map<Key, Entry> entries_;
  std::vector<std::pair<uint16_t, Entry>> undead_;  // unregistered, and the device did not let go
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_REGION_TABLE_H_
