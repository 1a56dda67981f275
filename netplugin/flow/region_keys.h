// Lets flows ask which links can reach registered memory. Pure.
#ifndef R2CC_NETPLUGIN_FLOW_REGION_KEYS_H_
#define R2CC_NETPLUGIN_FLOW_REGION_KEYS_H_

#include <cstdint>

#include "netplugin/flow/types.h"

namespace r2cc::net {

// The sender's view of the receiver's memory.
class RegionKeys {
 public:
  virtual ~RegionKeys() = default;
  // True if any region is known.
  virtual bool any() const = 0;
  // True if this link reaches buffers in the region now.
  virtual bool Reaches(RegionId region, LinkId link) const = 0;
  // True if this link's own device can read memory that is registered on these rails of this node.
  virtual bool SendsFrom(RailSet rails, LinkId link) const = 0;
};

// The receiver's view of its own memory.
class RegionGenerations {
 public:
  virtual ~RegionGenerations() = default;
  // The generation of the keys that were announced to the sender; 0: none was.
  virtual uint32_t GenerationOf(RegionId region) const = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_REGION_KEYS_H_
