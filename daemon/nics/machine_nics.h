// Finds the NICs of the configuration on this machine: their addresses, and which are missing.
#ifndef R2CC_DAEMON_NICS_MACHINE_NICS_H_
#define R2CC_DAEMON_NICS_MACHINE_NICS_H_

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "daemon/config/config.h"
#include "daemon/io/addresses.h"
#include "health/view/node_state.h"

namespace r2cc::daemon {

// The identities of `nics`: from the configuration, with the address that the interface has. Pure.
std::vector<health::NicIdentity> IdentitiesOf(const std::vector<NicSpec>& nics, const Addresses::Map& addresses);

// NICs of `own` whose interfaces have another address now: name and address. A NIC with an address in the configuration keeps it. Pure.
std::vector<std::pair<std::string, std::string>> ChangedAddresses(const std::vector<NicSpec>& nics, const health::NodeState& own,
                                                                  const Addresses::Map& addresses);

// Alarms about NICs that the machine lacks. One thread.
class MissingNics {
 public:
  // Interval at which addresses are read, at most.
  static constexpr Nanos kInterval = kNanosPerSecond;

  // `alarms`: those of `status`, by what each is about.
  MissingNics(Addresses* addresses, std::map<std::string, std::string>* alarms) : addresses_(addresses), alarms_(alarms) {}

  // Patterns of interfaces that none fitted when the configuration was read.
  void SetLackingGlobs(std::vector<std::string> globs) { lacking_globs_ = std::move(globs); }

  // Sets and clears the alarms; `parts` is where in the files a NIC is named. Returns `nics` with those that have come since, if any have.
  // Asks for addresses only while a link of `own` is down or a pattern fits nothing.
  std::optional<std::vector<NicSpec>> Look(const std::vector<NicSpec>& nics, const health::NodeState& own, const ConfigParts& parts,
                                           Nanos now);

 private:
  Addresses* const addresses_;
  std::map<std::string, std::string>* const alarms_;
  std::vector<std::string> lacking_globs_;
  std::optional<Nanos> looked_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_NICS_MACHINE_NICS_H_
