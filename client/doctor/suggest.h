// `r2ccctl config suggest`: writes `nics` from the networks that this machine's interfaces are in. Pure.
#ifndef R2CC_CLIENT_DOCTOR_SUGGEST_H_
#define R2CC_CLIENT_DOCTOR_SUGGEST_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "client/doctor/facts.h"

namespace r2cc::client {

struct SuggestCommand {
  std::string socket_path;  // of this node's r2ccd, if it runs
};

// An interface of this machine.
struct InterfaceToName {
  LocalInterface facts;
  bool has_device = false;
  std::optional<int64_t> megabits;  // nothing: it is down, or does not report it
};

// A NIC of another node, as r2ccd knows it.
struct NamedNic {
  std::string node;
  std::string nic;
  std::string address;
};

// The field `nics` of the configuration. A rail has one name on all nodes: an interface gets the name that other nodes' NICs in its network
// have, else the next free one, in the order of networks, which is the same on all nodes. An interface that is left out is a comment with
// the reason: no address, ten times slower than the fastest, no device although others have one.
std::string SuggestNics(const std::vector<InterfaceToName>& interfaces, const std::vector<NamedNic>& others);

class Machine;
// Asks the machine, and r2ccd if it answers soon.
std::string Run(const SuggestCommand& command, Machine& machine);

// The network of an address ("10.0.1.0/24"); empty: it is no address.
std::string NetworkOf(const std::string& address, int prefix);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_SUGGEST_H_
