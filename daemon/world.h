// The world of a Wiring: one interface for each thing that it touches.
#ifndef R2CC_DAEMON_WORLD_H_
#define R2CC_DAEMON_WORLD_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "base/core/clock.h"
#include "base/executor.h"
#include "daemon/core/event_log.h"
#include "daemon/core/roles.h"
#include "daemon/io/addresses.h"
#include "daemon/io/attach_server.h"
#include "daemon/io/files.h"
#include "daemon/io/page_sink.h"
#include "daemon/io/peer_transport.h"
#include "daemon/io/store.h"
#include "daemon/reload/config_loader.h"
#include "daemon/services/metrics_service.h"
#include "daemon/state/saved_state.h"
#include "daemon/trust/refusals.h"
#include "health/evidence/evidence_log.h"
#include "health/io/datagram.h"
#include "health/io/link_watch.h"
#include "health/io/mad_fabric.h"
#include "health/io/rdma_pairs.h"
#include "health/io/rdma_watch.h"
#include "health/io/sysfs.h"
#include "health/io/topology.h"
#include "health/probe/probe_key.h"

namespace r2cc::daemon {

// Everything outside of the daemon's own head. All of it outlives the Wiring.
struct World {
  Executor* core = nullptr;
  Executor* disk = nullptr;  // may block
  std::function<int64_t()> realtime_ns;
  std::function<Nanos()> boot_ns;  // CLOCK_BOOTTIME: since the machine was started, also while it slept
  health::LinkWatch* links = nullptr;
  const health::Sysfs* sysfs = nullptr;
  health::Datagrams* datagrams = nullptr;
  health::MadFabric* fabric = nullptr;
  health::RdmaWatch* rdma = nullptr;                 // null: there are no RDMA devices
  health::RdmaPairs* rdma_pairs = nullptr;           // null: the same
  const health::TopologySource* topology = nullptr;  // asked on `disk`
  Addresses* addresses = nullptr;
  Files* files = nullptr;
  PageSink* page = nullptr;
  AttachServer* jobs = nullptr;
  PeerTransport* peers = nullptr;
  Store* store = nullptr;
  ConfigLoader* config = nullptr;  // asked on `disk`; null: there is nothing to read again
  RolePolicy roles{DefaultGrants(-1, /*insecure=*/true), /*drills=*/true};
  Refusals* refusals = nullptr;      // null: nothing is refused before it comes here
  const TurnFacts* turns = nullptr;  // of the core; null: nobody measures
  // The identity of this run of the daemon.
  std::string boot_id;
  uint64_t incarnation = 1;                                                                          // random, not 0
  std::function<health::ProbeSecret()> new_probe_secret = [] { return health::ProbeSecret{0, 1}; };  // random, another with each call
  uint64_t netns_inode = 0;
  // What is kept of the past, in events and in pieces of evidence. A simulation keeps less, so that it sees what grows without end.
  size_t events_max = EventLog::kEventsMax;
  size_t evidence_max = health::kEvidenceLogEntriesMax;

  BootMoment BootNow() const { return {boot_id, boot_ns(), core->Now()}; }
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_WORLD_H_
