// The facts and the policy that all peers of one process share. What can change does so only while the I/O thread holds the locks of all
// peers, but for the counters.
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
  // True: it was so already.
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
  std::string nic;                      // as the daemon calls it; the rail's name, unless it has matched it
  bool matched = false;                 // the node's daemon says that it is this NIC
  std::vector<RailEndpoint> endpoints;  // one a transport that it has
  bool up = true;
  bool lost_on_purpose = false;  // for good: R2CC_FAIL_RAILS, or Rail::unused

  // As pages know it.
  std::string page_name() const { return matched ? nic : UnmatchedName(nic); }

  // Since the start.
  Counter sent_bytes;
  Counter received_bytes;
  Counter replayed_bytes;
  Counter failovers;

  RailFault fault;
};

// Where a link ends, as the daemon and the log name it.
struct LinkEnds {
  uint16_t local_rail = 0;
  std::string peer_node;
  std::string peer_nic;  // by its greeting: perhaps an UnmatchedName()
};

// The operations of the job that were outstanding in a time, into `held`; how many. See abi/profile_v1.h. Any thread.
using HeldOperations = std::function<size_t(uint64_t communicator, Nanos begun, Nanos ended, std::span<abi::HeldOperationV1> held)>;

struct Host {
  const Clock* clock = nullptr;
  // These may be called by any thread.
  std::function<void(LogLevel, const std::string&)> log;
  std::function<void(const plan::EvidenceRecord&)> report;
  // What is sent to the peer's process by these rails stalls: Acceptor::RailsStalled() follows, not within this call.
  std::function<void(uint64_t process, RailPair rails)> rails_stalled = [](uint64_t, RailPair) {};

  HeldOperations held_operations;  // empty: nobody knows of operations

  MemoryOps* memory_ops = &host_memory;
  MemoryTable* memory = nullptr;
  BouncePool* bounce = nullptr;  // null: what is not registered may be posted

  // This process.
  uint64_t process = 0;
  uint64_t nonce = 0;
  std::string node;
  std::string job;
  std::string run;             // of the job; empty: no launcher says
  bool run_is_shared = false;  // all its processes have that one
  std::optional<uint32_t> rank;
  std::string release;  // of the plugin
  int32_t pid = 0;
  OobAddress oob;
  std::vector<LocalRail> rails;
  std::vector<Transport*> transports;  // all that the process may use, the out-of-band one among them
  // See Transport::flow_slots(): the fewest of any.
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

  // What the daemon's page says at the moment; never null. Any thread.
  std::function<std::shared_ptr<const PageView>()> page;
  JobTally tally;
  NamesOnPage names;  // of this node and its rails; see UpdateNames()

  // For tests that count the steps of the link tables, and what came of links: kLinkUp, kLinkFenced, kLinkSlow.
  std::function<void(LinkId, InitiatorState, InitiatorEvent)> initiator_observer;
  std::function<void(LinkId, AcceptorState, AcceptorEvent)> acceptor_observer;

  std::function<void(const Action&, const LinkEnds&)> link_observer;

  Nanos Now() const { return clock->Now(); }
  // When `node`, or what a rail's NIC is called, has changed.
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
