// Chooses the network interfaces that carry a job's traffic if nobody names any: one rule for the plugin and the daemon. Pure.
#ifndef R2CC_BASE_CORE_NIC_CHOICE_H_
#define R2CC_BASE_CORE_NIC_CHOICE_H_

#include <cstddef>
#include <string>
#include <vector>

namespace r2cc {

// The facts that the rule uses.
struct NicCandidate {
  std::string name;
  bool loopback = false;
  bool bridge = false;
  bool has_device = false;   // there is a device behind it: no virtual interface
  bool has_address = false;  // one that is not link-local
  int speed_mbps = 0;        // <= 0: unknown
};

// 0: a NIC, 1: a virtual interface, 2: one of a network of containers or virtual machines that this node hosts. -1: never chosen.
int NicRank(const NicCandidate& candidate);

// The positions of the chosen ones, in order: every NIC with an address that is not link-local, up or down; if there is none, virtual
// interfaces; if there is none either, those of hosted networks. The loopback is never chosen. An interface with less than a tenth of the
// fastest one's known speed is left out: it is there for management.
std::vector<size_t> ChooseNics(const std::vector<NicCandidate>& candidates);

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_NIC_CHOICE_H_
