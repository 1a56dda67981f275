// Runs one process's data plane. NCCL's progress threads move bytes themselves when they call (see peer.h). One I/O thread does the rest:
// connections, link events, the daemon's page, timers, and the peers of a job whose threads are busy elsewhere.
#ifndef R2CC_NETPLUGIN_TRANSPORT_ENGINE_H_
#define R2CC_NETPLUGIN_TRANSPORT_ENGINE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/core/mutex.h"
#include "netplugin/attach/daemon_link.h"
#include "netplugin/config/config.h"
#include "netplugin/config/run_id.h"
#include "netplugin/rails/link_events.h"
#include "netplugin/rails/rails.h"
#include "netplugin/transport/acceptor.h"
#include "netplugin/transport/bounce.h"
#include "netplugin/transport/comm.h"
#include "netplugin/transport/control_plane.h"
#include "netplugin/transport/device_memory_ops.h"
#include "netplugin/transport/flow_closer.h"
#include "netplugin/transport/flow_port.h"
#include "netplugin/transport/handle.h"
#include "netplugin/transport/host.h"
#include "netplugin/transport/memory_table.h"
#include "netplugin/transport/os/call_queue.h"
#include "netplugin/transport/os/poller.h"
#include "netplugin/transport/os/processors.h"
#include "netplugin/transport/peer_watch.h"
#include "netplugin/transport/progress_watch.h"
#include "netplugin/transport/rail_transports.h"
#include "netplugin/transport/requests.h"
#include "netplugin/transport/send_peer.h"

namespace r2cc::net {

class SendComm : public Comm {
 public:
  SendPeer* peer() const { return peer_; }
  FlowId flow() const { return flow_; }

 private:
  friend class Engine;
  SendPeer* peer_ = nullptr;
  FlowId flow_ = 0;
};

class Engine {
 public:
  struct Parts {
    PluginConfig config;
    std::vector<Rail> rails;
    IpAddress oob_address;
    std::unique_ptr<LinkEvents> link_events;
    std::unique_ptr<DaemonLink> daemon;
    LogFn log;
    std::string release;  // of the plugin, for its peers
    RunId run;
    HeldOperations held_operations;  // empty: no profiler reports operations
    MakeOobTransport make_transport;
    MakeTransport make_rail_transport = nullptr;  // null: there is none; not called with R2CC_TRANSPORT=tcp
    gpu::Gpu* gpu = nullptr;                      // outlives the engine; null: there is none
  };
  // Opens the listeners and starts the thread. On failure null and one line in `error`.
  static std::unique_ptr<Engine> Start(Parts parts, std::string* error);
  // Calls Stop(). No other thread may call any more.
  ~Engine() { Stop(); }

  // Notifies peers, waits a while for data that is still to be delivered, stops the thread and closes all connections. Later calls find
  // their comms failed.
  void Stop();

  // ---- any thread; none of these waits for a peer ----

  // A listener for one flow, and its handle.
  uint64_t Listen(Handle* handle);
  // Null until the flow is there. After an error the listener cannot be used any more.
  std::unique_ptr<RecvComm> Accept(uint64_t listen_id) { return acceptor_->Accept(listen_id); }
  void CloseListen(uint64_t listen_id);
  // Opens a flow to the listener behind `handle`; its state shows the progress. Null and one line in `error` if the handle is of no use.
  // `dealt`: see SendFlows::SetDealt(). `communicator`: see Comm.
  std::unique_ptr<SendComm> Connect(const Handle& handle, uint16_t local_rail, std::string* error, bool dealt = false,
                                    uint64_t communicator = 0);

  size_t rails() const { return parts_.rails.size(); }
  // The transports of the rails, in one line, and the name of each rail (RailTransports::NameOf). Call before flows are made.
  std::string DescribeRails() const { return transports_.Describe(parts_.rails); }
  std::string RailName(size_t rail) const { return transports_.NameOf(parts_.rails[rail]); }
  // The bandwidth of this node's rails that are up and reach some peer. Any thread.
  uint64_t UsableBytesPerSecond() const {
    return BytesPerSecondWithout(rails_down_.load(std::memory_order_relaxed) | rails_lost_.load(std::memory_order_relaxed));
  }
  // Reports to the daemon. Any thread; does not wait.
  void Report(const plan::EvidenceRecord& record) {
    calls_.Post([this, record] { host_.report(record); });
  }
  uint64_t WholeBytesPerSecond() const { return BytesPerSecondWithout(0); }
  // UsableBytesPerSecond() relative to WholeBytesPerSecond().
  uint32_t KeptPermille() const {
    const uint64_t all = WholeBytesPerSecond();
    return all == 0 ? 1000 : static_cast<uint32_t>(UsableBytesPerSecond() * 1000 / all);
  }

  // A communicator begins; negative: it names no traffic class.
  void UseTrafficClass(int named) { transports_.UseTrafficClass(named, host_.log); }

  // The registered memory of the job.
  MemoryTable& memory() { return *memory_; }

  // Called by the comm's own thread: see PostRequest() and LookAtRequest().
  uint64_t Send(SendComm* comm, const Buffer& from, uint64_t bytes) { return PostRequest(comm->peer(), comm->flow(), comm, from, bytes); }
  uint64_t Receive(RecvComm* comm, const Buffer& to, uint64_t capacity_bytes) {
    return PostRequest(comm->peer(), comm->flow(), comm, to, capacity_bytes);
  }
  template <typename OneComm>
  RequestState Look(OneComm* comm, uint64_t number) {
    return LookAtRequest(comm->peer(), comm->flow(), comm, number);
  }

  // Gives the flow to the port, which closes it here.
  template <typename OneComm>
  FlowRef GiveTo(PeerFlowPort* port, std::unique_ptr<OneComm> comm) {
    OneComm* const raw = comm.release();
    return port->Add(raw->peer(), raw->flow(), raw, [this, raw] { Close(std::unique_ptr<OneComm>(raw)); });
  }

  // When these return, nothing touches the flow's buffers any more.
  void Close(std::unique_ptr<SendComm> comm);
  void Close(std::unique_ptr<RecvComm> comm);

  // What the job met, as far as this process knows; empty: there was no fault.
  std::string LastLine() const;
  // One line per rail: what it carried and its faults; and one line about refused connections, if there were any.
  std::vector<std::string> Summary();

 private:
  explicit Engine(Parts parts) : parts_(std::move(parts)) {}
  uint64_t BytesPerSecondWithout(uint64_t down) const;
  bool Open(std::string* error);
  bool MakeTransports(std::string* error);
  void Log(LogLevel level, const std::string& line);
  void StartControlPlane();
  void NoteRail(uint16_t rail, bool up);
  void Wake();

  void Run();
  void ForEachPeer(const std::function<void(Peer*)>& call);
  // Calls it with the locks of all peers, then lets each peer do what follows from it.
  void Exclusively(const std::function<void()>& call);
  void TickPeers();
  // Once a second: reports to the daemon what the job waits for, if it waits.
  void WatchRequests(Nanos now);
  // Call before the thread runs.
  bool ListenOn(uint16_t rail, std::string* error) {
    return transports_.Listen(parts_.rails[rail], host_.log, &host_.rails[rail].endpoints, error);
  }
  void RailChanged(TransportKind kind, uint16_t rail);
  // When it returns nothing touches the flow's buffers any more.
  template <typename OneComm>
  void CloseComm(std::unique_ptr<OneComm> comm);
  void Drain();
  SendPeer* PeerFor(const Handle& handle);

  Parts parts_;
  const Processors processors_ = Processors::OfMainThread();
  SteadyClock clock_;

  // Written before the thread runs and later by it, with the locks of all peers; read under the lock of any peer.
  Host host_;
  std::unique_ptr<DeviceMemoryOps> device_memory_ops_;  // the host's; null: there is no GPU
  // Only the I/O thread, once it runs, unless their headers allow more.
  Poller poller_;
  RailTransports transports_{parts_.config.transport};
  std::unique_ptr<ControlPlane> control_plane_;
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<MemoryTable> memory_;                       // any thread
  std::unique_ptr<BouncePool> bounce_;                        // any thread
  std::map<uint64_t, std::shared_ptr<SendPeer>> send_peers_;  // by process
  PeerWatch peer_watch_{&poller_};
  ProgressWatch progress_;
  Nanos ticked_ = 0;

  CallQueue calls_{[this] { Wake(); }};
  FlowCloser closer_{[this](LogLevel level, const std::string& line) { Log(level, line); }};
  Mutex log_mutex_;
  std::map<std::string, Nanos> warned_ R2CC_GUARDED_BY(log_mutex_);  // by line: when it was last logged
  std::atomic<uint64_t> rails_down_{0};                              // one bit for each rail
  std::atomic<uint64_t> rails_lost_{0};                              // see LostRails
  uint32_t rails_fewer_ = 0;                                         // as last reported: see FewestRails
  Nanos used_ = 0;                                                   // since when `rails_fewer_` holds
  std::atomic<bool> stop_{false};
  UniqueFd wake_;
  std::thread thread_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_ENGINE_H_
