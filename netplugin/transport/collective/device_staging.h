// Where the contributions of others land: in a GPU's memory if the result comes to be there, so that the GPU adds them up, else in host
// memory.
#ifndef R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_DEVICE_STAGING_H_
#define R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_DEVICE_STAGING_H_

#include <atomic>
#include <cstdint>
#include <string>

#include "netplugin/collnet/staging.h"
#include "netplugin/gpu/gpu.h"
#include "netplugin/transport/memory_table.h"

namespace r2cc::net {

// One thread; that of Reserve() may be another.
class DeviceStaging final : public collnet::Staging {
 public:
  // NCCL's operations are 2 MiB at most (plugin/coll_calls.cc), and while members share the work about evenly no more than that lands at
  // one of them. Once more as much is for plans in which half of them have nothing left. What is larger lands in host memory.
  static constexpr uint64_t kSlotBytes = 4 << 20;

  // Both outlive this. `gpu`: null where there is none.
  DeviceStaging(gpu::Gpu* gpu, MemoryTable* table, collnet::Slot slots) : gpu_(gpu), table_(table), slots_(slots) {}
  // Nothing lands there any more.
  ~DeviceStaging() override;
  DeviceStaging(const DeviceStaging&) = delete;
  DeviceStaging& operator=(const DeviceStaging&) = delete;

  // kSlotBytes for each slot, of the GPU that `like` is of, and known to all rails in the way that `like` is. Later none has to be found:
  // NCCL's kernels wait for us then, and what allocates may wait for them. False, and one line in `*error`: contributions have host memory.
  // Once. MAY BLOCK.
  bool Reserve(const Memory& like, std::string* error);

  Buffer Take(collnet::Slot slot, uint64_t bytes, const Buffer& result) override;

 private:
  gpu::Gpu* const gpu_;
  MemoryTable* const table_;
  const collnet::Slot slots_;
  std::atomic<const Memory*> memory_{nullptr};
  collnet::HostStaging host_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_DEVICE_STAGING_H_
