// Matches a job's rails to this node's NICs, also if their names inside the job's container differ.
#ifndef R2CC_DAEMON_RAILS_RAIL_MATCH_H_
#define R2CC_DAEMON_RAILS_RAIL_MATCH_H_

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "plan/page/attach.h"

namespace r2cc::daemon {

// The daemon's facts about one of its NICs. Empty or 0: unknown.
struct MatchableNic {
  std::string name;  // as in NODE/NIC
  std::string interface;
  std::vector<std::string> addresses;  // canonical
  std::string pci;
  uint64_t guid = 0;
  std::array<uint8_t, 6> mac = {};
};

// For each rail of `request` (which is Valid) the name of its NIC, or "" if it is none of `nics`. Hardware first: the PCI address, the
// GUID, the MAC (in the daemon's own network namespace only: outside it a copy of a MAC proves nothing). Then the numeric address. Then,
// in the same namespace only, the interface's name. If a key matches several NICs (two ports behind one PCI function), the next key decides
// among them. Pure.
std::vector<std::string> MatchRails(const plan::AttachRequest& request, const std::vector<MatchableNic>& nics, uint64_t own_netns_inode);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RAILS_RAIL_MATCH_H_
