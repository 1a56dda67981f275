// The fabric probe: what the subnet manager of an InfiniBand fabric knows becomes evidence. The daemon subscribes at each subnet's
// administrator, through each of its own InfiniBand ports, to the notices of the whole fabric.
#ifndef R2CC_HEALTH_PROBE_FABRIC_PROBE_H_
#define R2CC_HEALTH_PROBE_FABRIC_PROBE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>

#include "base/executor.h"
#include "health/io/mad_fabric.h"
#include "health/io/sysfs_port_facts.h"
#include "health/probe/sa_mad.h"
#include "health/probe/sink.h"

namespace r2cc::health {

// A subnet manager that was restarted has forgotten its subscribers.
constexpr Nanos kResubscribeInterval = 30 * kNanosPerSecond;
// The same subject is reported at most this often. Notices in between are counted, and the last of them is reported if it is news. So a
// port that flaps is bounded, and a notice that arrives over several of our ports is reported once.
constexpr Nanos kNoticeInterval = kNanosPerSecond;
// Subjects that are remembered for that; notices about more are dropped for the moment.
constexpr size_t kNoticeSubjectsMax = 4096;

// Runs on `executor`.
class FabricProbe {
 public:
  struct Outputs {
    EvidenceSink evidence;
    // Reports one line for an operator. `nic`: the NIC that it is about; empty names: a port that is not known.
    std::function<void(const NicKey& nic, const std::string& text)> report;
  };
  // The NIC, of any node, with this port GUID.
  using Resolve = std::function<std::optional<NicKey>(uint64_t port_guid)>;

  // `fabric` and `executor` outlive the probe.
  FabricProbe(std::string node, MadFabric* fabric, Executor* executor, Resolve resolve, Outputs outputs);
  ~FabricProbe();
  FabricProbe(const FabricProbe&) = delete;
  FabricProbe& operator=(const FabricProbe&) = delete;

  // Takes the facts that the sysfs probe read about one of this node's NICs, each time. It subscribes through the NIC if that is an
  // InfiniBand port.
  void OnFacts(const std::string& nic, const SysfsPortFacts& facts);

  // It is none of this node's any more.
  void Remove(const std::string& nic) { ports_.erase(nic); }

  // Counts: reports that arrived, reports that were merged into another one, and MADs that were not the subnet administrator's.
  uint64_t reports() const { return reports_; }
  uint64_t coalesced() const { return coalesced_; }
  uint64_t foreign() const { return foreign_; }

 private:
  struct Port {
    std::string nic;
    SysfsPortFacts facts;
    std::unique_ptr<FabricPort> open;  // null: not open
    bool lost = false;                 // `open` is of no use any more
    bool subscribed = false;
    bool reported = false;  // that it was, once
    FabricAddress manager;
    uint32_t transaction = 0;
    Nanos asked = 0;
    std::string trouble;  // the last one that was reported; empty: none
  };
  // Identifies a subject: a port's GUID, or the sender and the topic.
  using Subject = std::tuple<uint64_t, uint16_t, uint16_t, uint8_t>;
  struct Reported {
    Nanos when = 0;
    SaNotice last;
    std::optional<SaNotice> pending;
    uint64_t more = 0;  // notices that are reported with the pending one
  };

  void Open(Port* port);
  void OnMad(Port* port, const std::string& mad, const FabricAddress& from);
  void OnAnswer(Port* port, const SaMessage& answer);
  void Trouble(Port* port, const std::string& what);
  void Take(const SaNotice& notice);
  void Flush();
  void Report(const SaNotice& notice, uint64_t more);
  std::optional<NicKey> OwnNicAt(uint16_t lid) const;

  const std::string node_;
  MadFabric* const fabric_;
  Executor* const executor_;
  const Resolve resolve_;
  const Outputs outputs_;
  std::map<std::string, std::unique_ptr<Port>> ports_;  // by NIC
  std::map<Subject, Reported> reported_;
  uint32_t transaction_ = 0;
  TimerId flush_timer_ = 0;  // 0: nothing is pending
  uint64_t reports_ = 0;
  uint64_t coalesced_ = 0;
  uint64_t foreign_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_FABRIC_PROBE_H_
