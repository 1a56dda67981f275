// Encodes what the two ends of one incarnation send each other before its queue pairs are joined: an Endpoint, within its 255 bytes. Also
// encodes the address of a rail's port. Pure. All of it comes from the peer and is not trusted.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_OFFER_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_OFFER_H_

#include <cstdint>

#include "netplugin/link/frame.h"
#include "netplugin/transport/verbs/verbs_types.h"

namespace r2cc::net::verbs {

// The address of a rail.
struct RailAddress {
  LinkLayer link_layer = LinkLayer::kEthernet;
  Gid gid{};
  uint16_t lid = 0;
  friend bool operator==(const RailAddress&, const RailAddress&) = default;
};
Endpoint Encode(const RailAddress& address);
bool Decode(const Endpoint& endpoint, RailAddress* address);

// Memory that the other end may write: its address and its key.
struct RemoteMemory {
  uint64_t address = 0;
  uint32_t key = 0;
  friend bool operator==(const RemoteMemory&, const RemoteMemory&) = default;
};

// The offer of a queue pair.
struct Offer {
  RailAddress address;
  uint32_t number = 0;            // 24 bits
  uint32_t psn = 0;               // 24 bits: of the first packet that it sends
  uint32_t mtu_bytes = 0;         // its port's
  uint16_t receives = 0;          // posted, and never fewer than its records state
  bool adaptive_routing = false;  // its fabric may reorder packets
  RemoteMemory records;           // status slot, then ring; see grant_ring.h
  RemoteMemory tails;             // the acceptor's: tail records by slot
  RemoteMemory proof;             // the acceptor's: the destination of the data check
  friend bool operator==(const Offer&, const Offer&) = default;
};
Endpoint Encode(const Offer& offer);
// False if the length, a number or a size is invalid.
bool Decode(const Endpoint& endpoint, Offer* offer);

// A registration's key, as the region frame carries it.
Endpoint EncodeKey(uint32_t key);
bool DecodeKey(const Endpoint& endpoint, uint32_t* key);

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_OFFER_H_
