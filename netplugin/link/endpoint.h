// Describes where a rail, a link or memory is reached, as one process reports it to another. Nothing that arrives is trusted.
#ifndef R2CC_NETPLUGIN_LINK_ENDPOINT_H_
#define R2CC_NETPLUGIN_LINK_ENDPOINT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "netplugin/flow/types.h"

namespace r2cc::net {

constexpr uint32_t kWireRailsMax = 32;

// The transport that carries a link.
enum class TransportKind : uint8_t { kTcp = 0, kVerbs = 1 };
constexpr int kTransportKinds = 2;
constexpr bool IsKnown(TransportKind transport) { return static_cast<uint8_t>(transport) < kTransportKinds; }
// Where a transport reaches a rail, or one path of a link: at most 255 bytes. Only that transport reads them.
using Endpoint = std::vector<uint8_t>;

// One transport of a rail. The bytes are empty while the rail exists and cannot be reached.
struct RailEndpoint {
  TransportKind transport = TransportKind::kTcp;
  Endpoint bytes;

  friend bool operator==(const RailEndpoint&, const RailEndpoint&) = default;
};

// What a process announces of memory that holds buffers: how the devices of its peers reach it. Each change of the keys is a new
// generation, 1, 2, 3, ...; all other fields stay.
struct Region {
  // The generation of a region that is not registered any more, and of no other.
  static constexpr uint32_t kGone = UINT32_MAX;

  RegionId id = 0;
  uint32_t generation = 0;
  uint64_t base = 0;  // the address of its first byte, for devices that have a key
  uint64_t bytes = 0;
  // By the rail of that process: the transports that reach the memory there, each with its key. The key is empty where the receiver places.
  // No rails: the memory is not registered any more, and the generation is kGone.
  std::vector<std::vector<RailEndpoint>> keys;

  friend bool operator==(const Region&, const Region&) = default;
};

// What a process announces of one of its rails.
struct RailInfo {
  std::string nic;  // the NIC's name on its node, as the node's daemon names it
  bool up = false;
  std::vector<RailEndpoint> endpoints;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_ENDPOINT_H_
