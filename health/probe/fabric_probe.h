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
#include "health/io/fabric.h"
#include "health/io/port_facts.h"
#include "health/probe/sa_mad.h"
#include "health/probe/sink.h"

namespace r2cc::health {

// A subnet manager that was restarted has forgotten its subscribers.
constexpr Nanos kResubscribeInterval = 30 * kNanosPerSecond;
// The same subject is told of at most this often; what comes in between is counted, and the last of it told if it is news. So a port that
// flaps is bounded, and what comes through several of our ports is told once.
constexpr Nanos kNoticeInterval = kNanosPerSecond;
// Subjects that are remembered for that; notices about more are dropped for the moment.
constexpr size_t kNoticeSubjectsMax = 4096;

// Runs on `executor`.
class FabricProbe {
 public:
  struct Outputs {
    EvidenceSink evidence;
    // What an operator wants to read: one line. `nic`: whom it is about; empty names: nobody whom we know.
    std::function<void(const NicKey& nic, const std::string& text)> tell;
  };
  // The NIC, of any node, with this port GUID.
  using Resolve = std::function<std::optional<NicKey>(uint64_t port_guid)>;

  // `fabric` and `executor` outlive the probe.
  FabricProbe(std::string node, Fabric* fabric, Executor* executor, Resolve resolve, Outputs outputs);
  ~FabricProbe();
  FabricProbe(const FabricProbe&) = delete;
  FabricProbe& operator=(const FabricProbe&) = delete;

  // What the sysfs probe read of one of this node's NICs, each time: that subscribes through it if it is an InfiniBand port.
  void OnFacts(const std::string& nic, const PortFacts& facts);

  // It is none of this node's any more.
  void Remove(const std::string& nic) { ports_.erase(nic); }

  // Reports that came, those that were told together with another one, and MADs that were not the subnet administrator's.
  uint64_t reports() const { return reports_; }
  uint64_t coalesced() const { return coalesced_; }
  uint64_t strangers() const { return strangers_; }

 private:
  struct Port {
    std::string nic;
    PortFacts facts;
    std::unique_ptr<FabricPort> open;  // null: not open
    bool lost = false;                 // `open` is of no use any more
    bool subscribed = false;
    bool told = false;  // that it was, once
    FabricAddress manager;
    uint32_t transaction = 0;
    Nanos asked = 0;
    std::string trouble;  // as last told; empty: none
  };
  // What one subject is known by: a port's GUID, or who speaks of what.
  using Subject = std::tuple<uint64_t, uint16_t, uint16_t, uint8_t>;
  struct Told {
    Nanos when = 0;
    SaNotice last;
    std::optional<SaNotice> pending;
    uint64_t more = 0;  // that are told with the pending one
  };

  void Open(Port* port);
  void OnMad(Port* port, const std::string& mad, const FabricAddress& from);
  void OnAnswer(Port* port, const SaMessage& answer);
  void Trouble(Port* port, const std::string& what);
  void Take(const SaNotice& notice);
  void Flush();
  void Tell(const SaNotice& notice, uint64_t more);
  std::optional<NicKey> OwnNicAt(uint16_t lid) const;

  const std::string node_;
  Fabric* const fabric_;
  Executor* const executor_;
  const Resolve resolve_;
  const Outputs outputs_;
  std::map<std::string, std::unique_ptr<Port>> ports_;  // by NIC
  std::map<Subject, Told> told_;
  uint32_t transaction_ = 0;
  TimerId flush_timer_ = 0;  // 0: nothing is pending
  uint64_t reports_ = 0;
  uint64_t coalesced_ = 0;
  uint64_t strangers_ = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_FABRIC_PROBE_H_
