// The sysfs probe: reads rate, carrier changes and error counters of the configured NICs, once per interval. It only adds detail. The
// link probe decides whether an interface's link is up, because /sys may show another network namespace. An InfiniBand port without an
// interface is known by its GUID; this probe sees its link.
#ifndef R2CC_HEALTH_PROBE_SYSFS_PROBE_H_
#define R2CC_HEALTH_PROBE_SYSFS_PROBE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "health/evidence/nic_identity.h"
#include "health/io/sysfs_port_facts.h"
#include "health/probe/counter_rules.h"
#include "health/probe/sink.h"

namespace r2cc::health {

constexpr Nanos kSysfsProbeInterval = kNanosPerSecond;

// One port's samples over time. Pure: time is an argument.
class PortJudge {
 public:
  // `node`, `nic`: the subject of the evidence. `speaks_of_link`: the port's state decides whether its link is up.
  PortJudge(std::string node, std::string nic, bool speaks_of_link);

  // The evidence of a sample: the port's rate if it is known, how far its counters are from the limits of counter_rules.h if there is an
  // earlier sample, and carrier changes if there were any. A sample of another interface (by its index) has no past.
  std::vector<Evidence> Judge(const SysfsPortFacts& facts, Nanos now);

  // The port is not there. If its facts include the link, the link is down. The next port begins without a history.
  std::vector<Evidence> Gone(const std::string& why, Nanos now);

  // The port cannot be seen: what comes next has no past.
  void Forget();

 private:
  Evidence About(EvidenceKind kind, uint64_t value, Nanos now) const;

  const std::string node_;
  const std::string nic_;
  const bool speaks_of_link_;
  CounterWatch counters_;
  std::optional<SysfsPortFacts> last_;
};

// Runs on `executor`.
class SysfsProbe {
 public:
  // Called with every sample (for PCI address, RDMA device).
  using FactSink = std::function<void(const std::string& nic, const SysfsPortFacts& facts)>;

  // `sysfs` and `executor` outlive the probe. `on_fact` may be empty.
  SysfsProbe(std::string node, const std::vector<NicIdentity>& nics, const Sysfs* sysfs, Executor* executor, EvidenceSink sink,
             FactSink on_fact, Nanos interval = kSysfsProbeInterval);
  ~SysfsProbe();
  SysfsProbe(const SysfsProbe&) = delete;
  SysfsProbe& operator=(const SysfsProbe&) = delete;

  // Takes the first sample now and then one per interval.
  void Start();

  // Takes one of this NIC now: something has happened to it.
  void Look(const std::string& nic);

  // One more NIC: it is sampled now, if the others are, and with them.
  void Add(const NicIdentity& nic);
  void Remove(const std::string& nic) { ports_.erase(nic); }

  // Sets the index of a NIC's interface from the link watch, at each change: it came, went, or has another index. If /sys shows another
  // index it is not the same interface, and its samples are not used.
  void SetIfindex(const std::string& nic, int ifindex);

 private:
  struct Port {
    std::string interface;  // empty: known by its GUID
    uint64_t port_guid = 0;
    int ifindex = 0;  // 0: not known, anything goes
    PortJudge judge;
    KeptSysfs files;
  };
  // Null: it has no port.
  Port* Know(const NicIdentity& nic);
  void Sample();
  void SamplePort(const std::string& nic, Port* port);

  const std::string node_;
  const Sysfs* const sysfs_;
  std::map<std::string, Port> ports_;  // by NIC
  Executor* const executor_;
  const EvidenceSink sink_;
  const FactSink on_fact_;
  const Nanos interval_;
  TimerId timer_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_SYSFS_PROBE_H_
