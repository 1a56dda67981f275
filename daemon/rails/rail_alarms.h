// Finds conditions of this node's rails that need an operator although no verdict reports them. Pure: the time is part of the facts.
#ifndef R2CC_DAEMON_RAILS_RAIL_ALARMS_H_
#define R2CC_DAEMON_RAILS_RAIL_ALARMS_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "daemon/core/job_peers.h"
#include "health/evidence/evidence.h"
#include "health/evidence/pair_status.h"
#include "health/view/cluster_view.h"

namespace r2cc::daemon {

// A NIC that is SUSPECT for this time is an alarm, and so is a node whose probes nobody answers. A verdict takes less than two seconds, and
// a restart of the other daemons a few more.
constexpr Nanos kRailAlarmAfter = 10 * kNanosPerSecond;
// A pair that is not answered for this time may be one of two crossed cables.
constexpr Nanos kCrossedAfter = 3 * kNanosPerSecond;
// A daemon that sent something within this time is up: it sends each half second.
constexpr Nanos kDaemonAwake = 2 * kNanosPerSecond;

struct RailAlarmFacts {
  std::string node;
  Nanos now = 0;
  const health::ClusterView* view = nullptr;
  std::vector<std::string> nics;                 // of `node`, in order
  std::map<std::string, health::NicKey> cables;  // by NIC: the other end of a cable without a switch
  std::set<std::string> job_nodes;               // that jobs of this node talk to
  std::map<std::string, Nanos> last_messages;    // when the daemon of each node last sent something over another network than the rails
  std::vector<health::RailPairStatus> pairs;     // of this node's probes
  std::vector<health::PairKey> strays;           // NICs of other rails that answered a NIC of this node lately, on its own network
};

struct RailAlarm {
  // kFleet: many nodes have it in common; not of this node.
  enum class Kind { kBlind, kCrossed, kNoPartner, kSuspect, kUnwatched, kFleet };
  Kind kind = Kind::kBlind;
  std::string nic;   // of this node; empty: all of them
  std::string text;  // one line, the same as long as the reason is

  friend auto operator<=>(const RailAlarm&, const RailAlarm&) = default;
};

// In the order of their kinds. A later alarm does not repeat what an earlier one explains.
std::vector<RailAlarm> FindRailAlarms(const RailAlarmFacts& facts);

// A line for each set of rails that are none of this node's NICs, and the jobs that use them. `jobs`: by name, such rails of theirs.
std::vector<RailAlarm> UnwatchedRails(const std::map<std::string, std::set<std::string>>& jobs);

// The pairs that may be crossed: they are not answered, and the daemon and the link at the other end are up.
std::vector<health::RailPairStatus> MayBeCrossed(const RailAlarmFacts& facts);

// "check eth3 of n0, n1/rail3 and their switch ports; `r2ccctl nic drain n0/rail3` keeps traffic off it meanwhile"
std::string LookAtBothEnds(const health::NicKey& nic, const std::string& interface, const std::vector<health::NicKey>& peers);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RAILS_RAIL_ALARMS_H_
