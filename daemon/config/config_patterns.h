// One configuration for many machines: what it names by a pattern or a network becomes what this machine has of it. Pure.
#ifndef R2CC_DAEMON_CONFIG_CONFIG_PATTERNS_H_
#define R2CC_DAEMON_CONFIG_CONFIG_PATTERNS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "daemon/config/config.h"

namespace r2cc::daemon {

// The parts of the configuration that the machine may lack.
struct MayLack {
  bool everything = false;           // a daemon that starts: a NIC that fell off the bus is what it is for
  std::set<std::string> names = {};  // NICs, and patterns of interfaces
};

// Appends the NICs that match `config->nic_patterns` to `config->nics`, and puts this machine's address into `config->listen` if it names a
// network. `addresses`: canonical, by interface; every interface of the machine is a key. An interface that another NIC has already is
// skipped. A NIC whose network the machine may lack gets AbsentInterface() and no address; a pattern that it may lack is one of
// `config->lacking_globs`. On failure one line: "FILE:LINE: ...", with the facts of the machine.
absl::Status FitToMachine(const std::map<std::string, std::vector<std::string>>& addresses, Config* config, const MayLack& may_lack = {});

// In place of the name of an interface that is not there: no interface has such a name.
std::string AbsentInterface(const Network& network);

// The NICs of a running daemon as the machine has them now.
struct NicsNow {
  std::vector<NicSpec> nics;                  // those of networks that have come, with their interface and address
  std::map<std::string, std::string> alarms;  // by NIC or pattern: what is not there
  bool news = false;                          // `nics` differ from what was asked for
};
NicsNow LookForNics(const std::vector<NicSpec>& nics, const std::vector<std::string>& lacking_globs, const ConfigParts& parts,
                    const std::map<std::string, std::vector<std::string>>& addresses);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CONFIG_CONFIG_PATTERNS_H_
