#ifndef R2CC_HEALTH_EVIDENCE_NIC_IDENTITY_H_
#define R2CC_HEALTH_EVIDENCE_NIC_IDENTITY_H_

#include <cstdint>
#include <string>

namespace r2cc::health {

// Identity of a NIC: fixed by the configuration, completed by the kernel's facts.
struct NicIdentity {
  std::string name;       // as in NODE/NIC
  std::string interface;  // empty: an address without an interface of its own, whose link is always up
  std::string address;
  std::string mac;
  std::string pci;
  uint64_t port_guid = 0;        // of an InfiniBand port; 0: none, or not known
  uint64_t rate_bits_per_s = 0;  // configured; 0: the kernel's

  friend bool operator==(const NicIdentity&, const NicIdentity&) = default;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_EVIDENCE_NIC_IDENTITY_H_
