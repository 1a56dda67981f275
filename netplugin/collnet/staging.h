// Provides the memory in which contributions of other members land.
#ifndef R2CC_NETPLUGIN_COLLNET_STAGING_H_
#define R2CC_NETPLUGIN_COLLNET_STAGING_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "netplugin/collnet/member_action.h"
#include "netplugin/flow/memory.h"

namespace r2cc::collnet {

class Staging {
 public:
  virtual ~Staging() = default;
  // At least `bytes` bytes for the slot's operation, with undefined content, until the slot's next call. `result`: where the operation's
  // result goes; memory near it is best.
  virtual net::Buffer Take(Slot slot, uint64_t bytes, const net::Buffer& result) = 0;
};

// The process's own host memory, which no transport has to know. It keeps for each slot what the largest operation there has needed,
// because NCCL cuts an all_reduce into operations of one size.
class HostStaging final : public Staging {
 public:
  net::Buffer Take(Slot slot, uint64_t bytes, const net::Buffer& /*result*/) override {
    std::vector<std::byte>& memory = of_slot_[slot];
    if (memory.size() < bytes) memory = std::vector<std::byte>(bytes);
    return memory.data();
  }

 private:
  std::map<Slot, std::vector<std::byte>> of_slot_;
};

}  // namespace r2cc::collnet

#endif  // R2CC_NETPLUGIN_COLLNET_STAGING_H_
