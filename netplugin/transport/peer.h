// Holds what both sides of a peer process have in common: the lock, and the rules by which threads move its bytes.
//
// Everything of a peer - its session, its links, its ports - belongs to the thread that holds its lock. NCCL's progress threads take the
// lock when they call and it is free, so that a message travels without waking another thread. The I/O thread takes it for work that no
// call does: ticks, link events, and peers that no NCCL thread drives at the moment. Threads of a transport take it between two calls to
// the kernel. A thread that finds it taken leaves its request in the inbox, and the holder carries it out (flat combining). So no thread
// waits for the lock on the data path, and none waits for a peer while holding it.
#ifndef R2CC_NETPLUGIN_TRANSPORT_PEER_H_
#define R2CC_NETPLUGIN_TRANSPORT_PEER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/core/mutex.h"
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
  // Makes what progress is possible, first for `flow`, unless another thread already does so.
  void Progress(FlowId flow);

  // ---- a thread of a transport ----

  // See LinkOwner::WithLock(). Tries for some microseconds before it sleeps.
  bool RunWithLock(FunctionRef<bool()> report, FunctionRef<bool(bool posted)> ask);

  // ---- the I/O thread ----

  // A PeerLock takes the lock. It waits for a thread that has it, which never takes long.

  // Handles what has arrived, if the lock is free. False: another thread has the lock and does it.
  bool Service();
  // Handles what has arrived, then lets time pass. NCCL's threads do the same while they call.
  void Tick();
  // The lock was released before everything was moved.
  bool more() const { return more_.load(std::memory_order_relaxed); }
  // Their descriptors are readable while something has arrived, as long as Port::WatchAll() holds.
  const std::vector<std::unique_ptr<Port>>& ports() const { return ports_; }
  // Grows each time one of NCCL's threads has held the lock.
  uint64_t progress_calls() const { return progress_calls_.load(std::memory_order_relaxed); }
  // RDMA joins every pair of rails: buffers that the processors cannot read may be posted. Known once a flow is open.
  bool by_devices() const { return by_devices_.load(std::memory_order_relaxed); }
  // Bulk moves, and workers move it: they need the lock more than a thread that only polls.
  bool bulk_by_workers() const { return bulk_by_workers_.load(std::memory_order_relaxed); }

  // ---- with the lock ----

  // Does nothing: see R2CC_ASSERTS.
  void HasLock() R2CC_ASSERTS(mutex_) {}
  // The content of this process's greeting has changed: the two greet again.
  virtual void Regreet() R2CC_REQUIRES(mutex_) = 0;
  virtual void RailState(uint16_t rail, bool up) R2CC_REQUIRES(mutex_) = 0;
  // The page, or the peer's name, may have changed.
  virtual void ApplyVerdicts() R2CC_REQUIRES(mutex_) = 0;
  // Carries out what the session asks, moves bulk, publishes progress. True if a link has more to move at once.
  virtual bool RunToCompletion() R2CC_REQUIRES(mutex_) = 0;
  // A poll has found something. True: it is published, and the rest of RunToCompletion() is left to the next holder of the lock, so that
  // the job has its message before a system call acknowledges it to the peer. False also if the peer waits for that acknowledgement.
  virtual bool PublishFound() R2CC_REQUIRES(mutex_) { return false; }
  // Some link is up.
  virtual bool has_link() const R2CC_REQUIRES(mutex_) = 0;
  // Some request waits, or some control frame waits for its answer.
  virtual bool outstanding() const R2CC_REQUIRES(mutex_) = 0;
  // No flow is open and nothing waits for an answer.
  virtual bool idle() const R2CC_REQUIRES(mutex_) = 0;
  // Nothing will happen on it any more.
  virtual bool over() const R2CC_REQUIRES(mutex_) = 0;
  // The kernel has what was queued, as far as the peer can need it.
  virtual bool flushed() const R2CC_REQUIRES(mutex_) = 0;
  // A process that ends need not wait for it: everything is sent and answered, or no peer is left to receive it.
  bool drained() const R2CC_REQUIRES(mutex_) { return over() || (flushed() && idle()); }
  virtual void HalfClose() R2CC_REQUIRES(mutex_) = 0;
  // The process ends: closes its flows for it.
  virtual void CloseFlows() R2CC_REQUIRES(mutex_) = 0;
  // The process ends: all requests fail, all links are closed, and later holders of the lock do nothing.
  void Shut() R2CC_REQUIRES(mutex_);

 protected:
  // Called before Post(); for a request that waited in the inbox, by the next holder of the lock.
  virtual void Hint(uint64_t bytes) R2CC_REQUIRES(mutex_) = 0;
  virtual void Post(FlowId flow, const Buffer& buffer, uint64_t bytes) R2CC_REQUIRES(mutex_) = 0;
  // The shortest path for `flow`: polls its own links, without polling the ports. True if anything moved.
  virtual bool FastPath(FlowId flow) R2CC_REQUIRES(mutex_) = 0;
  virtual void OnTick() R2CC_REQUIRES(mutex_) = 0;
  virtual void CloseAll() R2CC_REQUIRES(mutex_) = 0;
  // Something threw while the lock was held, so the session may be in the middle of a step. All flows fail, and close.
  virtual void BreakFlows() noexcept R2CC_REQUIRES(mutex_) = 0;

  // True if it held anything.
  bool RunInbox() R2CC_REQUIRES(mutex_);
  // A part of such a message moves, or is about to.
  void Account(uint64_t message_bytes) R2CC_REQUIRES(mutex_) {
    workload_.Account(message_bytes);
    state_.bulk = workload_.is_bulk();
    bulk_by_workers_.store(has_workers_ && state_.bulk, std::memory_order_relaxed);
  }
  // Threads of its ports move messages that are not small.
  bool has_workers() const { return has_workers_; }
  bool has_bulk() const R2CC_REQUIRES(mutex_) { return state_.bulk; }
  // The peer has announced its rails for the first time; that decides for good how they are joined.
  void RailsAnnounced(std::span<const RailInfo> rails, const std::string& node);
  // The time at which the lock was taken, or the clock was last read: the lock is held for a short time, and reading the clock costs time.
  Nanos now() const R2CC_REQUIRES(mutex_) { return now_; }
  // The port that a link of this transport uses.
  Port* port(TransportKind kind) const { return port_of_[static_cast<size_t>(kind)]; }
  OobPort* oob_port() const { return oob_port_; }

  Host* const host_;
  Mutex mutex_ R2CC_ACQUIRED_BEFORE(inbox_mutex_);

 private:
  friend class PeerLock;
  struct Request {
    FlowId flow;
    Buffer buffer;
    uint64_t bytes;
  };
  void Lock() R2CC_ACQUIRES(mutex_);
  // Takes the lock, if it is free.
  bool TryLock() R2CC_TRY_ACQUIRES(true, mutex_);
  // The same, for a request that was left while this thread had the lock. Called after each release of the lock.
  bool TryLockForLeft() R2CC_TRY_ACQUIRES(true, mutex_);
  void LockSoon() R2CC_ACQUIRES(mutex_);
  // Called with the lock, which one of the job's threads has taken; releases it. `request`, if any, comes after those of the inbox.
  void RunAsJob(FlowId flow, const Request* request) R2CC_RELEASES(mutex_);
  void RunJobOnce(FlowId flow, bool waits, const Request* request) R2CC_REQUIRES(mutex_);
  // Handles what has arrived on any port. True if that was everything.
  bool Poll() R2CC_REQUIRES(mutex_);
  void PollAndTick() R2CC_REQUIRES(mutex_);
  // What the holder of the lock moved beyond the requests. `waits`: the caller waits for `flow`.
  enum class Moved {
    kNothing,
    kFound,      // on the flow's own links
    kSomething,  // elsewhere: something may follow from it
  };
  Moved Move(FlowId flow, bool waits) R2CC_REQUIRES(mutex_);
  Nanos PollEvery(bool waits) const R2CC_REQUIRES(mutex_);
  void Complete() R2CC_REQUIRES(mutex_) {
    incomplete_ = false;
    more_.store(RunToCompletion(), std::memory_order_relaxed);
  }

  PeerState state_ R2CC_GUARDED_BY(mutex_);
  std::vector<std::unique_ptr<Port>> ports_;
  Port* port_of_[kTransportKinds] = {};
  OobPort* oob_port_ = nullptr;
  bool has_workers_ = false;
  Nanos now_ R2CC_GUARDED_BY(mutex_);
  bool shut_ R2CC_GUARDED_BY(mutex_) = false;
  bool incomplete_ R2CC_GUARDED_BY(mutex_) = false;  // RunToCompletion() was left to the next holder of the lock
  std::atomic<bool> more_{false};
  std::atomic<Nanos> polled_{0};
  Nanos ticked_ R2CC_GUARDED_BY(mutex_) = 0;
  Nanos found_ R2CC_GUARDED_BY(mutex_) = 0;  // when a thread that waited last found something
  std::vector<Request> taken_ R2CC_GUARDED_BY(mutex_);
  std::atomic<uint64_t> progress_calls_{0};
  WorkloadClassifier workload_ R2CC_GUARDED_BY(mutex_);
  std::atomic<bool> by_devices_{false};
  std::atomic<bool> bulk_by_workers_{false};

  Mutex inbox_mutex_;
  std::vector<Request> inbox_ R2CC_GUARDED_BY(inbox_mutex_);
  std::atomic<bool> waiting_{false};  // the inbox is not empty
};

// Holds the lock of a peer, whose now() is the time at which it was taken.
class R2CC_SCOPED_LOCK PeerLock {
 public:
  explicit PeerLock(Peer& peer) R2CC_ACQUIRES(peer.mutex_) : peer_(peer) { peer.Lock(); }
  ~PeerLock() R2CC_RELEASES() { peer_.mutex_.Unlock(); }
  PeerLock(const PeerLock&) = delete;
  PeerLock& operator=(const PeerLock&) = delete;

 private:
  Peer& peer_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_PEER_H_
