// This node's own part of the view. Evidence of the probes and of everybody else goes in, verdicts on its NICs come out.
#ifndef R2CC_DAEMON_NICS_LOCAL_HEALTH_H_
#define R2CC_DAEMON_NICS_LOCAL_HEALTH_H_

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "base/executor.h"
#include "daemon/core/event_reporter.h"
#include "daemon/io/addresses.h"
#include "daemon/rails/rail_match.h"
#include "health/probe/link_probe.h"
#include "health/probe/sysfs_probe.h"
#include "health/view/node_health.h"

namespace r2cc::daemon {

// The core's thread only.
class LocalHealth {
 public:
  struct Seams {
    Executor* executor;
    health::LinkWatch* links;
    const health::Sysfs* sysfs;
    Addresses* addresses;
    size_t evidence_max;
  };

  struct Outputs {
    // The result of Snapshot() may have changed.
    std::function<void()> on_state;
    // A NIC became suspect: look closer at it.
    std::function<void(const std::string& nic)> on_suspect;
    // A drill has ended automatically.
    std::function<void(const std::string& nic)> on_drill_end;
    // Every sample of /sys.
    std::function<void(const std::string& nic, const health::SysfsPortFacts& facts)> on_port_facts;
  };

  // The seams and the reporter outlive it.
  LocalHealth(std::string node, std::vector<health::NicIdentity> nics, const health::OperatorSettings& settings,
              const std::set<std::string>& cabled, const Seams& seams, EventReporter* reporter, Outputs outputs);
  ~LocalHealth();
  LocalHealth(const LocalHealth&) = delete;
  LocalHealth& operator=(const LocalHealth&) = delete;

  // Starts the probes. Every NIC's link is known when it returns OK.
  absl::Status Start();

  // Judges the evidence, and reports the changes.
  void Handle(const health::Evidence& evidence);
  void Handle(const std::vector<health::Evidence>& evidence) {
    for (const auto& one : evidence) Handle(one);
  }

  // Something happened to a NIC: asks its kernel at once.
  void Look(const std::string& nic);

  // Sets the rate of a NIC by the configuration; 0: the kernel's.
  void SetRate(const std::string& nic, uint64_t rate_bits_per_s);
  // Adds a NIC with the operator's setting for it, after Start(); and removes one that no longer belongs to this node. `cabled`: its link
  // is known to have been up.
  void Add(const health::NicIdentity& nic, const health::OperatorSetting& setting, bool cabled);
  void Remove(const std::string& nic);
  // A NIC has got another address.
  void SetAddress(const std::string& nic, const std::string& address);

  const health::NodeHealth& health() const { return health_; }
  std::vector<std::string> nic_names() const;
  // The NICs that jobs' rails are matched against, as of now.
  std::vector<MatchableNic> Matchable() const;

 private:
  void OnLinkFact(const std::string& nic, const health::LinkFact& fact);
  void OnPortFacts(const std::string& nic, const health::SysfsPortFacts& facts);
  void Settle(const std::vector<health::NicChange>& changes);
  void ReportFlaps(const health::Evidence& evidence);
  void ArmTimer();

  const std::string node_;
  std::vector<health::NicIdentity> nics_;
  const Seams seams_;
  EventReporter* const reporter_;
  const Outputs outputs_;
  health::NodeHealth health_;
  health::LinkProbe link_probe_;
  health::SysfsProbe sysfs_probe_;
  std::map<std::string, std::string> macs_;  // by NIC
  std::map<std::string, std::string> pcis_;
  std::map<std::string, uint64_t> guids_;
  // Changes of a link that are too short for a change of state; reported as an event now and then.
  struct Flaps {
    int64_t bounces = 0;
    int64_t carrier_flips = 0;
    Nanos reported_at = 0;  // 0: never
  };
  std::map<std::string, Flaps> flaps_;  // by NIC; not reported yet
  uint64_t reported_revision_ = 0;
  TimerId timer_ = 0;
  Nanos timer_due_ = 0;
  Nanos refreshed_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_NICS_LOCAL_HEALTH_H_
