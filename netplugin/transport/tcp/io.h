// What the peers of one process share.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_IO_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_IO_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/config/log.h"
#include "netplugin/flow/stripe.h"
#include "netplugin/link/wire.h"
#include "netplugin/transport/tcp/movers.h"
#include "netplugin/transport/tcp/poller.h"
#include "netplugin/transport/tcp/socket.h"
#include "plan/model.h"
#include "plan/page/ring.h"

namespace r2cc::net {

// Counted by whoever has a peer's turn, read by anybody.
class Counter {
 public:
  Counter() = default;
  Counter(const Counter& other) : value_(other.value()) {}
  Counter& operator=(const Counter&) = delete;
  void operator+=(uint64_t more) { value_.fetch_add(more, std::memory_order_relaxed); }
  uint64_t value() const { return value_.load(std::memory_order_relaxed); }

 private:
  std::atomic<uint64_t> value_{0};
};

// One of this process's rails. What can change changes only while the I/O thread has the turns of all peers.
struct LocalRail {
  std::string name;
  std::string nic;  // as the daemon calls it; without a daemon the rail's name
  Source source;
  uint16_t port = 0;  // where it listens
  bool up = true;
  bool lost_on_purpose = false;  // R2CC_FAIL_RAILS

  // Since the start.
  Counter sent_bytes;
  Counter received_bytes;
  Counter replayed_bytes;
  Counter failovers;
};

struct Io {
  Poller poller;             // the I/O thread's own
  Movers* movers = nullptr;  // null: NCCL's threads and the I/O thread move everything
  const Clock* clock = nullptr;
  // These may be called by any thread.
  std::function<void(LogLevel, const std::string&)> log;
  std::function<void(const plan::EvidenceRecord&)> report;

  // This process.
  uint64_t process = 0;
  uint64_t nonce = 0;
  std::string node;
  Source oob_source;
  uint16_t oob_port = 0;
  std::vector<LocalRail> rails;

  // Policy, from the environment.
  uint32_t chunk_bytes = 0;
  bool chunks_follow_rate = false;
  uint32_t eager_bytes = 0;
  uint8_t sockets_per_rail = 1;
  uint64_t bulk_after_bytes = 0;  // see BulkRun
  bool checksum = false;
  StripeMode mode = StripeMode::kBalance;
  Nanos silence = 0;
  Nanos deadline = 0;

  // The page's word on a NIC; full weight if it says nothing. Any thread.
  std::function<RailVerdict(const std::string& node, const std::string& nic)> verdict;
  // Whether it forbids the path between a NIC of this node and one of `peer_node`. Any thread.
  std::function<bool(const std::string& nic, const std::string& peer_node, const std::string& peer_nic)> path_broken;

  Nanos Now() const { return clock->Now(); }
  std::vector<RailInfo> RailInfos() const {
    std::vector<RailInfo> infos;
    for (const LocalRail& rail : rails) infos.push_back({rail.nic, rail.source.address.Text(), rail.port, rail.up});
    return infos;
  }
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_IO_H_
