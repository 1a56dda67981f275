// Holds the facts and the policy that all peers of one process share. The I/O thread changes them only while it holds the locks of all
// peers; the counters are exempt.
#ifndef R2CC_NETPLUGIN_TRANSPORT_HOST_H_
#define R2CC_NETPLUGIN_TRANSPORT_HOST_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/abi/profile_v1.h"
#include "netplugin/config/log.h"
#include "netplugin/flow/memory_ops.h"
#include "netplugin/flow/stripe.h"
#include "netplugin/link/action.h"
#include "netplugin/link/cross_rail.h"
#include "netplugin/link/frame.h"
#include "netplugin/link/link_table.h"
#include "netplugin/transport/job_tally.h"
#include "netplugin/transport/oob.h"
#include "netplugin/transport/page_view.h"
#include "plan/model.h"
#include "plan/page/ring.h"

namespace r2cc::net {

class BouncePool;
class MemoryTable;

// Why the last attempt to open a link on a rail failed; kNone: the last one succeeded. Any thread.
class RailFault {
 public:
  RailFault() = default;
  RailFault(const RailFault& other) : cause_(other.cause_.load()), detail_(other.detail_.load()) {}
  RailFault& operator=(const RailFault&) = delete;
  LinkFault Get() const { return {cause_.load(std::memory_order_relaxed), detail_.load(std::memory_order_relaxed)}; }
  // Returns true if the fault was the same before.
  bool Set(const LinkFault& fault) {
    const LinkFault was = Get();
    cause_.store(fault.cause, std::memory_order_relaxed);
    detail_.store(fault.detail, std::memory_order_relaxed);
    return was == fault;
  }
  LinkFault Take() {
    const LinkFault was = Get();
    Set({});
    return was;
  }

 private:
  std::atomic<plan::EvidenceCause> cause_{plan::EvidenceCause::kNone};
  std::atomic<uint64_t> detail_{0};
};

// One of this process's rails.
struct LocalRail {
  std::string name;
  std::string nic;                      // the daemon's name for it; the rail's name, unless the daemon has matched it
  bool matched = false;                 // the node's daemon has matched the rail to this NIC
  std::vector<RailEndpoint> endpoints;  // one for each of its transports
  bool up = true;
  bool lost_on_purpose = false;  // forever: R2CC_FAIL_RAILS, or Rail::unused

  // The rail's name on pages.
  std::string page_name() const { return matched ? nic : UnmatchedName(nic); }

  // Since the start.
  Counter sent_bytes;
  Counter received_bytes;
  Counter replayed_bytes;
  Counter failovers;

  RailFault fault;
};

// The ends of a link, as the daemon and the log name them.
struct LinkEnds {
  uint16_t local_rail = 0;
  std::string peer_node;
  std::string peer_nic;  // from its greeting: perhaps an UnmatchedName()
};

// Writes the operations of the job that were outstanding in a time span to `held`, and returns their number. See abi/profile_v1.h. Any
// thread.
using HeldOperations = std::function<size_t(uint64_t communicator, Nanos begun, Nanos ended, std::span<abi::HeldOperationV1> held)>;

struct Host {
  const Clock* clock = nullptr;
  // Any thread may call these.
  std::function<void(LogLevel, const std::string&)> log;
  std::function<void(const plan::EvidenceRecord&)> report;
  // This process's data to the peer's process stalls on these rails: Acceptor::RailsStalled() follows, not within this call.
  std::function<void(uint64_t process, RailPair rails)> rails_stalled = [](uint64_t, RailPair) {};

  HeldOperations held_operations;  // empty: no profiler reports operations

  MemoryOps* memory_ops = &host_memory;
  MemoryTable* memory = nullptr;
  BouncePool* bounce = nullptr;  // null: unregistered buffers may be posted

  // This process.
  uint64_t process = 0;
  uint64_t nonce = 0;
  std::string node;
  std::string job;
  std::string run;             // of the job; empty: no launcher sets it
  bool run_is_shared = false;  // all processes of the job have the same one
  std::optional<uint32_t> rank;
  std::string release;  // of the plugin
  int32_t pid = 0;
  OobAddress oob;
  std::vector<LocalRail> rails;
  std::vector<Transport*> transports;  // all that the process may use, including the out-of-band one
  // See Transport::flow_slots(): the least of all transports.
  uint32_t flow_slots() const {
    uint32_t fewest = 0;
    for (const Transport* const transport : transports)
      if (const uint32_t slots = transport->flow_slots(); slots != 0 && (fewest == 0 || slots < fewest)) fewest = slots;
    return fewest;
  }
  OobTransport* oob_transport = nullptr;

  // Policy, from the environment.
  uint32_t chunk_bytes = 0;
  bool chunks_follow_rate = false;
  uint32_t eager_bytes = 0;
  StripeMode mode = StripeMode::kBalance;
  Nanos silence = 0;
  Nanos deadline = 0;

  // The daemon's page as of now; never null. Any thread.
  std::function<std::shared_ptr<const PageView>()> page = [] { return std::make_shared<const PageView>(); };
  JobTally tally;
  NamesOnPage names;  // of this node and its rails; see UpdateNames()

  // For tests that count the steps of the link tables, and the results of links: kLinkUp, kLinkFenced, kLinkSlow.
  std::function<void(LinkId, InitiatorState, InitiatorEvent)> initiator_observer;
  std::function<void(LinkId, AcceptorState, AcceptorEvent)> acceptor_observer;

  std::function<void(const SessionAction&, const LinkEnds&)> link_observer;

  Nanos Now() const { return clock->Now(); }
  // Call when `node`, or the name of a rail's NIC, has changed.
  void UpdateNames() {
    std::vector<std::string> nics;
    for (const LocalRail& rail : rails) nics.push_back(rail.page_name());
    names = NamesOnPage(node, nics);
  }
  std::vector<RailInfo> RailInfos() const {
    std::vector<RailInfo> infos;
    for (const LocalRail& rail : rails) infos.push_back({rail.page_name(), rail.up, rail.endpoints});
    return infos;
  }
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_HOST_H_
