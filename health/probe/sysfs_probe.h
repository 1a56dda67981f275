// The sysfs probe: rate, carrier changes and error counters of the configured NICs, once per interval. It only adds detail: whether a
// link is up is the link probe's word, because /sys may show another network namespace.
#ifndef R2CC_HEALTH_PROBE_SYSFS_PROBE_H_
#define R2CC_HEALTH_PROBE_SYSFS_PROBE_H_

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/executor.h"
#include "health/io/port_facts.h"
#include "health/probe/sink.h"
#include "health/view/node_state.h"

namespace r2cc::health {

constexpr Nanos kSysfsProbeInterval = kNanosPerSecond;

// What two samples of one port, `elapsed` apart, say about it: its rate if it is known, the errors per second if counters are there,
// and carrier changes if there were any. A counter that went back (the device was replaced) counts from zero. Pure.
std::vector<Evidence> JudgePort(const std::string& node, const std::string& nic, const PortFacts& before, const PortFacts& after,
                                Nanos elapsed, Nanos now);

// Runs on `executor`.
class SysfsProbe {
 public:
  // Told of every sample (for PCI address, RDMA device).
  using FactSink = std::function<void(const std::string& nic, const PortFacts& facts)>;

  // `sysfs` and `executor` outlive the probe. `on_fact` may be empty.
  SysfsProbe(std::string node, const std::vector<NicIdentity>& nics, const Sysfs* sysfs, Executor* executor, EvidenceSink sink,
             FactSink on_fact, Nanos interval = kSysfsProbeInterval);
  ~SysfsProbe();
  SysfsProbe(const SysfsProbe&) = delete;
  SysfsProbe& operator=(const SysfsProbe&) = delete;

  // Takes the first sample now and then one per interval.
  void Start();

  // The index that the link watch knows for a NIC's interface. If /sys shows another one it is not the same interface, and its
  // samples are not used.
  void SetIfindex(const std::string& nic, int ifindex);

 private:
  struct Port {
    std::string interface;
    int ifindex = 0;  // 0: not known, anything goes
    bool sampled = false;
    PortFacts last;
    Nanos last_when = 0;
  };
  void Sample();

  const std::string node_;
  std::map<std::string, Port> ports_;  // by NIC
  const Sysfs* const sysfs_;
  Executor* const executor_;
  const EvidenceSink sink_;
  const FactSink on_fact_;
  const Nanos interval_;
  TimerId timer_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_SYSFS_PROBE_H_
