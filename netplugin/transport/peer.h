// What both sides of a peer process have in common: the lock, and who moves its bytes.
//
// Everything of a peer - its session, its links, its ports - belongs to the thread that holds its lock, and to nobody else. NCCL's progress
// threads take the lock when they call and it is free, so that a message travels without waking anybody. The I/O thread takes it for what
// nobody calls for: ticks, link events, and peers that no thread of NCCL's drives at the moment. Threads of a transport take it between two
// calls to the kernel. Who finds it taken leaves his request in the inbox, and its holder carries it out (flat combining): nobody waits for
// it on the data path, and nobody waits for a peer while holding it.
#ifndef R2CC_NETPLUGIN_TRANSPORT_PEER_H_
#define R2CC_NETPLUGIN_TRANSPORT_PEER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "netplugin/flow/types.h"
#include "netplugin/transport/host.h"
#include "netplugin/transport/links.h"
#include "netplugin/transport/workload_classifier.h"

namespace r2cc::net {

class Peer : public std::enable_shared_from_this<Peer> {
 public:
  Peer(Host* host, const SessionKey& key);
  virtual ~Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // ---- any thread; never waits ----

  // An isend or irecv of `flow`. The buffer must stay until it is done or the flow is closed.
  void Submit(FlowId flow, const Buffer& buffer, uint64_t bytes);
  // Moves what there is to move, for `flow` above all, if nobody else does.
  void Progress(FlowId flow);

  // ---- a thread of a transport ----

  // See LinkOwner::WithLock(). Tries for some microseconds before it sleeps.
  bool RunWithLock(FunctionRef<bool()> tell, FunctionRef<bool(bool posted)> ask);

  // ---- the I/O thread ----

  // Takes the lock, waiting for a thread that has it: that is never long.
  [[nodiscard]] std::unique_lock<std::mutex> Lock() {
    std::unique_lock lock(mutex_);
    now_ = host_->Now();
    return lock;
  }
  // Handles what has arrived, if the lock is free. False: it is not, somebody else does it.
  bool Service();
  // Handles what has arrived, then lets time pass. NCCL's threads do so themselves while they come.
  void Tick();
  static constexpr Nanos kTickEvery = 5 * kNanosPerMs;
  // The lock was given back before everything was moved.
  bool more() const { return more_.load(std::memory_order_relaxed); }
  // Their descriptors are readable while something has arrived, as long as Port::WatchAll() holds.
  const std::vector<std::unique_ptr<Port>>& ports() const { return ports_; }
  // Grows each time that one of NCCL's threads has held the lock.
  uint64_t progress_calls() const { return progress_calls_.load(std::memory_order_relaxed); }
  // Every pair of rails is joined by RDMA: what the processors cannot read may be posted. Known once a flow is open.
  bool by_devices() const { return by_devices_.load(std::memory_order_relaxed); }
  // Bulk is about, and it is workers that move it: they need the lock more than who only looks.
  bool bulk_by_workers() const { return bulk_by_workers_.load(std::memory_order_relaxed); }

  // ---- with the lock ----

  // What this process says of itself in a greeting has changed: the two greet again.
  virtual void Regreet() = 0;
  virtual void RailState(uint16_t rail, bool up) = 0;
  // The page, or the peer's name, may have changed.
  virtual void ApplyVerdicts() = 0;
  // Carries out what the session asks, moves bulk, publishes progress. True if a link has more to move at once.
  virtual bool RunToCompletion() = 0;
  // A look has found something. True: it is published, and the rest of RunToCompletion() is left to the next holder of the lock, so that
  // the job has its message before a call of the kernel's tells the peer of it. False, too, if somebody there waits to be told.
  virtual bool PublishFound() { return false; }
  // Some link is up.
  virtual bool has_link() const = 0;
  // Some request waits, or some control frame is on its way.
  virtual bool outstanding() const = 0;
  // No flow is open and nothing waits for an answer.
  virtual bool idle() const = 0;
  // Nothing will come of it any more.
  virtual bool over() const = 0;
  // What was queued is with the kernel, as far as the peer can need it.
  virtual bool flushed() const = 0;
  // A process that ends need not wait for it: all is said and answered, or there is nobody to whom it could be said.
  bool drained() const { return over() || (flushed() && idle()); }
  virtual void HalfClose() = 0;
  // The process ends: its flows are closed for it.
  virtual void CloseFlows() = 0;
  // The process ends: all requests fail, all links are closed, and nobody who takes the lock does anything any more.
  void Shut();

 protected:
  // Before Post(); for one that waited in the inbox, by the next holder of the lock.
  virtual void Hint(uint64_t bytes) = 0;
  virtual void Post(FlowId flow, const Buffer& buffer, uint64_t bytes) = 0;
  // The shortest way for `flow`: its own links, without asking the ports. True if anything moved.
  virtual bool FastPath(FlowId flow) = 0;
  virtual void OnTick() = 0;
  virtual void CloseAll() = 0;
  // Something threw while the lock was held: what the session knows may be half a step. All flows fail, and close.
  virtual void BreakFlows() noexcept = 0;

  // True if it held anything.
  bool RunInbox();
  // Some of such a message moves, or is about to.
  void Account(uint64_t message_bytes) {
    workload_.Account(message_bytes);
    state_.bulk = workload_.is_bulk();
    bulk_by_workers_.store(has_workers_ && state_.bulk, std::memory_order_relaxed);
  }
  // Threads of its ports move messages that are not small.
  bool has_workers() const { return has_workers_; }
  bool has_bulk() const { return state_.bulk; }
  // The peer has told of its rails for the first time, by which it is known for good how they are joined.
  void FirstToldRails(std::span<const RailInfo> rails, const std::string& node);
  // When the lock was taken, or the clock last looked at: it is held for a short time, and the clock is not free.
  Nanos now() const { return now_; }
  // The port that a link of this transport uses.
  Port* port(TransportKind kind) const { return port_of_[static_cast<size_t>(kind)]; }
  OobPort* oob_port() const { return oob_port_; }

  Host* const host_;

 private:
  struct Request {
    FlowId flow;
    Buffer buffer;
    uint64_t bytes;
  };
  // The lock, if it is free.
  bool TryLock();
  std::unique_lock<std::mutex> LockSoon();
  // With the lock taken by one of the job's threads; gives it back. `request`, if any, comes after those of the inbox.
  void RunAsJob(FlowId flow, const Request* request);
  void RunJobOnce(FlowId flow, bool waits, const Request* request);
  // Handles what has arrived on any port. True if that was everything.
  bool Poll();
  void PollAndTick();
  // What the holder of the lock does beyond the requests. `waits`: the caller waits for `flow`.
  enum class Moved {
    kNothing,
    kFound,      // on the flow's own links
    kSomething,  // something may have come of it
  };
  Moved Move(FlowId flow, bool waits);
  Nanos PollEvery(bool waits) const;
  void Complete() {
    incomplete_ = false;
    more_.store(RunToCompletion(), std::memory_order_relaxed);
  }

  std::mutex mutex_;
  PeerState state_;
  std::vector<std::unique_ptr<Port>> ports_;
  Port* port_of_[kTransportKinds] = {};
  OobPort* oob_port_ = nullptr;
  bool has_workers_ = false;
  Nanos now_;
  bool shut_ = false;
  bool incomplete_ = false;  // RunToCompletion() was left to the next holder of the lock
  std::atomic<bool> more_{false};
  std::atomic<Nanos> polled_{0};
  Nanos ticked_ = 0;
  Nanos found_ = 0;  // when somebody who waited last found something
  std::vector<Request> taken_;
  std::atomic<uint64_t> progress_calls_{0};
  WorkloadClassifier workload_;
  std::atomic<bool> by_devices_{false};
  std::atomic<bool> bulk_by_workers_{false};

  std::mutex inbox_mutex_;
  std::vector<Request> inbox_;
  std::atomic<bool> waiting_{false};  // the inbox holds something
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_PEER_H_
