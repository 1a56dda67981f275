// The RDMA probe: makes evidence of what RDMA devices report about the ports behind this node's NICs.
//
// An event is reported at once, as a record, and causes a look at the NIC's link and files. The answer of the device decides whether the
// port is active, once it has held for a moment: mostly the link went down too, and explains it.
#ifndef R2CC_HEALTH_PROBE_RDMA_PROBE_H_
#define R2CC_HEALTH_PROBE_RDMA_PROBE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/executor.h"
#include "health/evidence/nic_identity.h"
#include "health/io/rdma_watch.h"
#include "health/io/sysfs_port_facts.h"
#include "health/probe/sink.h"

namespace r2cc::health {

// A port must be in another state for this time before that is reported. The kernel reports a link that went down with it within
// milliseconds.
constexpr Nanos kRdmaSettle = 20 * kNanosPerMs;
// Events of one NIC are reported at most this often; those in between are counted and reported together.
constexpr Nanos kRdmaEventInterval = kNanosPerSecond;

struct RdmaPortName {
  std::string device;
  uint8_t port = 1;

  friend bool operator==(const RdmaPortName&, const RdmaPortName&) = default;
};

// Runs on `executor`.
class RdmaProbe {
 public:
  struct Outputs {
    EvidenceSink evidence;
    // The NIC's link and its files may have changed: look at them.
    std::function<void(const std::string& nic)> look;
    // The NIC has another RDMA port that is active, or none any more.
    std::function<void(const std::string& nic, const std::optional<RdmaPortName>& port)> on_port = [](const auto&, const auto&) {};
  };

  // `watch` and `executor` outlive the probe. `watch` may be null: there are no devices.
  RdmaProbe(std::string node, const std::vector<NicIdentity>& nics, RdmaWatch* watch, Executor* executor, Outputs outputs);
  ~RdmaProbe();
  RdmaProbe(const RdmaProbe&) = delete;
  RdmaProbe& operator=(const RdmaProbe&) = delete;

  void Start();

  // Adds a NIC, for which OnFacts() will be called; and removes one that no longer belongs to this node.
  void Add(const NicIdentity& nic) { nics_[nic.name].interface = nic.interface; }
  void Remove(const std::string& nic);

  // Takes the facts that the sysfs probe read about one of this node's NICs, each time: they identify the NIC's port.
  void OnFacts(const std::string& nic, const SysfsPortFacts& facts);

  // Why what goes by RDMA over the NIC does not come, although its port is active; empty: it does.
  void SetFault(const std::string& nic, const std::string& why);

 private:
  struct State {
    bool active = false;
    std::string why;  // it is not

    friend bool operator==(const State&, const State&) = default;
  };
  struct Nic {
    std::string interface;  // empty: an InfiniBand port that is known by its GUID, or an address without an interface
    SysfsPortFacts facts;   // as last read
    std::string device;     // behind it; empty: none yet
    uint8_t port = 0;
    std::optional<RdmaPortName> active;  // as reported
    std::string fault;                   // of its paths
    bool reported = false;               // anything of its port: one that was never active is no fault
    State state;                         // as reported
    State next;                          // reported once it has held
    TimerId settling = 0;
    uint64_t rate_bits_per_s = 0;  // as reported
    int events = 0;                // to be reported, the last of them:
    std::string event;
    TimerId report_timer = 0;
  };

  void OnEvent(const std::string& device, uint8_t port, verbs::AsyncKind kind);
  void OnPorts(const std::string& device, const std::vector<RdmaPort>& ports);
  void Judge(const std::string& name, Nic* nic);
  void ReportPort(const std::string& name, Nic* nic);
  // Which port the NIC has; it keeps the one that it had while there is no other.
  void Match(Nic* nic) const;
  const RdmaPort* PortOf(const Nic& nic) const;
  State StateOf(const Nic& nic) const;
  void ReportState(const std::string& name, Nic* nic, const State& state);
  void ReportRate(const std::string& name, Nic* nic);
  void ReportEvents(const std::string& name, Nic* nic);
  void Emit(const std::string& nic, EvidenceKind kind, int64_t value, const std::string& detail);

  const std::string node_;
  RdmaWatch* const watch_;
  Executor* const executor_;
  const Outputs outputs_;
  std::map<std::string, Nic> nics_;                       // by name
  std::map<std::string, std::vector<RdmaPort>> devices_;  // by name
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_RDMA_PROBE_H_
