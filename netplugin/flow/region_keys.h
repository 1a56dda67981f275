// What flows ask of whoever knows the keys to registered memory. Pure.
#ifndef R2CC_NETPLUGIN_FLOW_REGION_KEYS_H_
#define R2CC_NETPLUGIN_FLOW_REGION_KEYS_H_

#include <cstdint>

#include "netplugin/flow/types.h"

namespace r2cc::net {

// At the sender's end: the receiver's memory.
class RegionKeys {
 public:
  virtual ~RegionKeys() = default;
  // Some region is known.
  virtual bool any() const = 0;
  // Buffers in the region may be reached by this link now.
  virtual bool Reaches(RegionId region, LinkId link) const = 0;
  // And this link's own device may read memory that is registered on these own rails.
  virtual bool SendsFrom(RailSet rails, LinkId link) const = 0;
};

// At the receiver's end: its own memory.
class RegionGenerations {
 public:
  virtual ~RegionGenerations() = default;
  // Of the keys that the sender was told; 0: it was told of none.
  virtual uint32_t GenerationOf(RegionId region) const = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_REGION_KEYS_H_
