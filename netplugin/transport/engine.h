// One process's data plane: one I/O thread that owns every socket and every session. NCCL's threads talk to it through a command queue
// and the atomics of Comm; they never wait for it on the data path.
#ifndef R2CC_NETPLUGIN_TRANSPORT_ENGINE_H_
#define R2CC_NETPLUGIN_TRANSPORT_ENGINE_H_

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "netplugin/attach/daemon_link.h"
#include "netplugin/config/config.h"
#include "netplugin/rails/link_events.h"
#include "netplugin/rails/rails.h"
#include "netplugin/transport/comm.h"
#include "netplugin/transport/handle.h"
#include "netplugin/transport/tcp/greeter.h"
#include "netplugin/transport/tcp/io.h"
#include "netplugin/transport/tcp/recv_peer.h"
#include "netplugin/transport/tcp/send_peer.h"
#include "netplugin/transport/world.h"

namespace r2cc::net {

class SendComm : public Comm {
 private:
  friend class Engine;
  SendPeer* peer_ = nullptr;  // I/O thread only
  FlowId flow_ = 0;           // I/O thread only
};

class RecvComm : public Comm {
 private:
  friend class Engine;
  RecvPeer* peer_ = nullptr;
  FlowId flow_ = 0;
};

class Engine {
 public:
  struct Parts {
    Config config;
    std::vector<Rail> rails;
    IpAddress oob_address;
    std::unique_ptr<LinkEvents> link_events;
    std::unique_ptr<DaemonLink> daemon;
    LogFn log;
  };
  // Opens the listeners and starts the thread. Null and one line in `error` on failure.
  static std::unique_ptr<Engine> Start(Parts parts, std::string* error);
  // Tells peers that have to know, waits a moment for what is queued, and stops the thread.
  ~Engine();

  // ---- any thread; none of these blocks on a peer ----

  // A listener for one flow, and its handle.
  uint64_t Listen(Handle* handle);
  // Null until the flow is there. After an error the listener is of no use.
  std::unique_ptr<RecvComm> Accept(uint64_t listen_id);
  void CloseListen(uint64_t listen_id);
  // A flow to the listener behind `handle`, being opened: see its state. Null and one line in `error` if the handle is of no use.
  std::unique_ptr<SendComm> Connect(const Handle& handle, uint16_t local_rail, std::string* error);

  // The comm's own thread. Number the request `comm->posted` before the call.
  void Send(SendComm* comm, const void* data, uint64_t bytes);
  void Receive(RecvComm* comm, void* data, uint64_t capacity_bytes);

  // When these return, nothing touches the flow's buffers any more.
  void Close(std::unique_ptr<SendComm> comm);
  void Close(std::unique_ptr<RecvComm> comm);

  // One line per rail: what it carried and what it went through.
  std::vector<std::string> Summary();

 private:
  struct Command {
    enum class Kind { kSend, kReceive, kCall } kind;
    SendComm* send = nullptr;
    RecvComm* recv = nullptr;
    void* data = nullptr;
    uint64_t bytes = 0;
    std::function<void()> call;
  };
  explicit Engine(Parts parts) : parts_(std::move(parts)) {}
  bool Open(std::string* error);
  void Submit(Command command);
  // Runs on the I/O thread and waits for it.
  void Call(const std::function<void()>& call);

  void Run();
  void RunCommands();
  bool ListenOn(LocalRail* rail, std::string* error);
  void Drain();
  SendPeer* PeerFor(const Handle& handle);
  HelloReply Greet(const Hello& hello, std::unique_ptr<PacketStream>* stream);
  Comm* FlowOpened(RecvPeer* peer, FlowId flow, uint64_t listen_id);

  Parts parts_;
  SteadyClock clock_;

  // I/O thread only, once it runs.
  Io io_;
  std::unique_ptr<World> world_;
  std::unique_ptr<Greeter> greeter_;
  std::map<uint64_t, std::unique_ptr<SendPeer>> send_peers_;  // by process
  std::map<uint64_t, std::unique_ptr<RecvPeer>> recv_peers_;  // by session
  std::set<uint64_t> listeners_;                              // listen ids
  Nanos ticked_ = 0;

  std::mutex mutex_;
  std::vector<Command> commands_;
  // The flows that listeners have opened and nobody has accepted yet, for Accept() to look at without asking the I/O thread.
  std::map<uint64_t, std::deque<std::unique_ptr<RecvComm>>> opened_;
  std::atomic<bool> asleep_{false};
  std::atomic<bool> stop_{false};
  UniqueFd wake_;
  std::thread thread_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_ENGINE_H_
