// One simulated process: netplugin/transport's peers and acceptor, over the simulated network, and the loop of its I/O thread. The
// counterpart of netplugin/transport's Engine.
//
// A process can be stopped (its kernel goes on), slowed, killed, and ended in order. The job's code runs in `progress`, once a turn.
#ifndef R2CC_TESTS_SIM_PROCESS_H_
#define R2CC_TESTS_SIM_PROCESS_H_

#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "netplugin/transport/acceptor.h"
#include "netplugin/transport/control_plane.h"
#include "netplugin/transport/memory_table.h"
#include "netplugin/transport/os/poller.h"
#include "netplugin/transport/send_peer.h"
#include "tests/sim/io.h"
#include "tests/sim/sim_link_events.h"
#include "tests/sim/sim_transport.h"

namespace r2cc::sim {

class Process : public Network::Host {
 public:
  // Makes what carries the rails' links in the place of the simulated network, which keeps the out-of-band connection.
  using MakeRails = std::function<std::unique_ptr<net::Transport>(Io* io, net::Greet greet)>;
  // `daemon`: the daemon of its node, by which its rails have names and verdicts; null: there is none, and `page` is what it would say.
  Process(Network* network, Tap* tap, int host, const ProcessOptions& options, const MakeRails& make_rails = nullptr,
          std::unique_ptr<net::DaemonLink> daemon = nullptr);
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() override;

  int host() const { return io_.host; }
  int node() const { return io_.network->NodeOf(io_.host); }
  // It takes the place of the process of its node that has ended. Before, it does nothing, and nobody hears of it.
  void Begin();
  bool begun() const { return begun_; }
  Nanos begun_at() const { return begun_at_; }
  // The run of the job that it belongs to, as its launcher calls it.
  const std::string& run() const { return host_.run; }
  Io& io() { return io_; }
  const Io& io() const { return io_; }
  // The page, without a daemon; it says nothing unless set.
  std::function<plan::Plan()> page = [] { return plan::Plan(); };

  // Called when it ends: its kernel closes what it had open at its daemon.
  std::function<void()> hangs_up;

  // ---- the job; call only from `progress` ----

  std::function<void()> progress;

  struct SendFlow {
    std::shared_ptr<net::SendPeer> peer;
    net::FlowId id = 0;
    std::shared_ptr<net::Comm> comm;
  };
  struct RecvFlow {
    std::shared_ptr<net::RecvPeer> peer;
    net::FlowId id = 0;
    std::shared_ptr<net::RecvComm> comm;
  };
  SendFlow Connect(int peer, uint64_t listen_id, int local_rail);
  void Listen(uint64_t listen_id) { acceptor_->Open(listen_id); }
  void CloseListen(uint64_t listen_id) { acceptor_->Close(listen_id); }
  // What requests name as their memory; null where transports need no key. Of a receiver's some rail may not reach it.
  // Some device is there.
  bool CanRegister() const;
  const net::Memory* Register(const std::byte* begin, uint64_t bytes, bool receives);
  // Memory of a GPU, on all rails. Null: some does not take it.
  const net::Memory* RegisterGpu(const std::byte* begin, uint64_t bytes, int gpu);
  void Unregister(const net::Memory* memory);
  // Those whose devices reach it now.
  std::vector<int> RailsOf(const net::Memory& memory) const;
  net::MemoryTable& memory() { return *memory_; }
  // False until a flow is there.
  bool Accept(uint64_t listen_id, RecvFlow* flow);

  // ---- what happens to it ----

  void Wake();
  void Stop();
  void Continue();
  bool stopped() const { return stopped_ > 0; }
  // No turn before then: a busy machine.
  void Pause(Nanos duration);
  void Kill(bool child_holds_sockets);
  bool dead() const { return dead_; }
  Nanos died_at() const { return died_at_; }
  // The job is over: drain, then end. dead() when it is done.
  void Exit();
  bool exiting() const { return exiting_; }
  // It ended although its peers had not heard everything, after it had tried for the whole of the deadline.
  bool gave_up() const { return gave_up_; }
  Nanos exit_began() const { return exit_began_; }
  void RailState(int rail, bool up);
  // The link monitor sees the address that the rail has now, and the rail up.
  void NewAddress(int rail);
  void ApplyVerdicts();
  // The rail's device is lost, and with it all that it did; or it is back.
  void Device(int rail, bool lost);

  // What the page in force says of its own rails, and of those of another node.
  net::PageView::Judgement Judge(const net::NamesOnPage& other) const { return host_.page()->Judge(host_.names, other); }
  // By what it has heard.
  int rails_up() const {
    return static_cast<int>(std::count_if(host_.rails.begin(), host_.rails.end(), [](const net::LocalRail& rail) { return rail.up; }));
  }
  // What has left on the rail.
  uint64_t sent_bytes(int rail) const { return host_.rails[static_cast<size_t>(rail)].sent_bytes.value(); }
  const std::map<int, std::shared_ptr<net::SendPeer>>& send_peers() const { return send_peers_; }
  const std::map<uint64_t, std::shared_ptr<net::RecvPeer>>& recv_peers() const { return acceptor_->peers(); }

 private:
  class VirtualClock final : public Clock {
   public:
    explicit VirtualClock(const Io* io) : io_(io) {}
    Nanos Now() const override { return io_->local_now(); }

   private:
    const Io* const io_;
  };

  void Arrived(Port) override { Wake(); }
  void AcceptAll();
  void ListenOn(int rail);
  // Somebody says that the rail may be elsewhere, or has a device again.
  void Relisten(int rail);
  // Where rails are has changed: peers that send here are told.
  void Regreet();
  void RegionChanged(const net::Region& region);
  void ForEachPeer(const std::function<void(net::Peer*)>& call) const;
  void StartControlPlane();
  // As Engine's: with the locks of all peers.
  void Exclusively(const std::function<void()>& call) const;
  void Turn();
  void TickPeers();
  void Plan(Nanos when);
  bool Drained() const;
  void End();

  Io io_;
  VirtualClock clock_;
  net::Host host_;
  std::unique_ptr<SimTransport> transport_;
  std::unique_ptr<net::Transport> rails_;  // null: that
  // Of the control plane, without which there is no daemon.
  std::unique_ptr<net::Poller> poller_;
  SimLinkEvents* link_events_ = nullptr;
  std::unique_ptr<net::ControlPlane> control_plane_;
  std::unique_ptr<net::DaemonLink> daemon_;  // until it begins; null: there is none
  std::unique_ptr<net::Acceptor> acceptor_;
  std::unique_ptr<net::MemoryTable> memory_;
  std::map<int, std::shared_ptr<net::SendPeer>> send_peers_;  // by peer
  std::vector<std::function<void()>> calls_;                  // for the next turn
  uint64_t generation_ = 0;                                   // of the planned turn
  Nanos planned_ = 0;                                         // 0: none
  Nanos ticked_ = 0;
  Nanos paused_until_ = 0;
  int stopped_ = 0;
  bool begun_ = false;
  Nanos begun_at_ = 0;
  bool dead_ = false;
  Nanos died_at_ = 0;
  bool exiting_ = false;
  bool gave_up_ = false;
  Nanos exit_began_ = 0;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_PROCESS_H_
