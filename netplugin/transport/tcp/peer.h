// What both sides of a peer process have in common: whose turn it is to move its bytes.
//
// Everything of a peer - its session, its sockets, its poller - belongs to the thread that has its turn, and to nobody else. NCCL's
// progress threads take the turn when they call and it is free, so that a message travels without waking anybody; the I/O thread takes it
// for what nobody calls for: ticks, link events, and peers that no NCCL thread drives at the moment. Whoever finds the turn taken leaves
// his request in the inbox and goes on: nobody waits for a turn on the data path, and no turn waits for a peer. A peer that moves much may
// have a crew besides: movers that take the turn between their calls and copy without it (see errand.h).
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_PEER_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_PEER_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "netplugin/flow/bulk_run.h"
#include "netplugin/flow/types.h"
#include "netplugin/transport/tcp/io.h"

namespace r2cc::net {

class Errand;

class Peer : public std::enable_shared_from_this<Peer> {
 public:
  explicit Peer(Io* io) : io_(io), now_(io->Now()), run_(io->bulk_after_bytes) {}
  virtual ~Peer() = default;
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;

  // ---- any thread; never waits ----

  // An isend or irecv of `flow`. The buffer must stay until it is done or the flow is closed.
  void Submit(FlowId flow, void* data, uint64_t bytes);
  // Moves what there is to move, for `flow` above all, if nobody else does.
  void Help(FlowId flow);

  // ---- the I/O thread ----

  // Takes the turn, waiting for a thread that has it: that is never long.
  [[nodiscard]] std::unique_lock<std::mutex> TakeTurn() {
    std::unique_lock turn(turn_);
    now_ = io_->Now();
    return turn;
  }
  // Handles what has arrived, if the turn is free. False: it is not, somebody else does it.
  bool Service();
  // Reads what has arrived, then lets time pass. NCCL threads do so themselves while they come.
  void TickTurn();
  static constexpr Nanos kTickEvery = 5 * kNanosPerMs;
  // The last turn ended before everything was moved.
  bool more() const { return more_.load(std::memory_order_relaxed); }
  // Readable while something has arrived on a socket that is in the poller: see WatchAll().
  int fd() const { return poller_.fd(); }
  // Grows with every turn that an NCCL thread took.
  uint64_t helped() const { return helped_.load(std::memory_order_relaxed); }
  bool crewed() const { return crewed_.load(std::memory_order_relaxed); }

  // ---- a mover ----

  // Runs an errand as far as it goes.
  void Carry(Errand* errand);

  // ---- with the turn ----

  // While bulk moves the peer has a crew, if there are movers. Call again now and then: links come up, and bulk comes to rest.
  void UpdateCrew();
  virtual void RailState(uint16_t rail, bool up) = 0;
  // The page, or the peer's name, may have changed.
  virtual void ApplyVerdicts() = 0;
  // Carries out what the session asks, moves bulk, publishes progress. True if a socket has more to move at once.
  virtual bool Settle() = 0;
  // A look has found something. True: it is published, and the rest of Settle() is left to a later turn, so that the job has its message
  // before a call of the kernel's tells the peer of it. False, too, if somebody there waits to be told: Settle() now.
  virtual bool PublishFound() { return false; }
  // Some request waits, or some word is on its way.
  virtual bool outstanding() const = 0;
  // No flow is open and nothing waits for an answer.
  virtual bool idle() const = 0;
  // Nothing will come of it any more.
  virtual bool over() const = 0;
  // Everything that was queued is with the kernel.
  virtual bool flushed() const = 0;
  virtual void HalfClose() = 0;
  // The process ends: its flows are closed for it.
  virtual void CloseFlows() = 0;
  // The process ends: all requests fail, all sockets are closed, and no turn does anything any more.
  void Shut();

 protected:
  // Before Post(), so that a crew is there when the message is to move; for one that waited in the inbox, by the next turn.
  virtual void Announce(uint64_t bytes) = 0;
  virtual void Post(FlowId flow, void* data, uint64_t bytes) = 0;
  // The shortest way for `flow`: its own sockets, without asking the poller. True if anything moved.
  virtual bool Hot(FlowId flow) = 0;
  virtual void Tick() = 0;
  virtual void CloseAll() = 0;
  // Hands the bulk sockets that are up over to movers, or takes them back.
  virtual void Crew(bool wanted) = 0;
  // Sockets that NCCL's threads look at all the time need not be in the poller. What has arrived on those is read with every poll, ...
  virtual void ReadUnwatched() {}
  // ... and when nobody looks any more the poller has them again.
  virtual void WatchAll() {}

  // True if it held anything.
  bool RunInbox();
  // Of a message, so much moves, or is about to.
  void Count(uint64_t message_bytes, uint64_t bytes) {
    run_.Count(message_bytes, bytes);
    counted_ = now_;
  }
  // Some of a message moves that was counted as a whole.
  void Moves(uint64_t message_bytes) {
    run_.Moves(message_bytes);
    counted_ = now_;
  }
  bool has_bulk() const { return run_.has_bulk(); }
  // Large messages have begun to come, and several threads are about to move what one of them would move alone now.
  bool crew_is_due() const { return io_->movers != nullptr && run_.is_bulk() && run_.has_large() && !crewed(); }
  // The turn is one of the job's own threads.
  bool jobs_turn() const { return jobs_turn_; }
  // When the turn began, or was last looked at the clock: a turn is short, and the clock is not free.
  Nanos now() const { return now_; }

  Io* const io_;
  Poller poller_;

 private:
  struct Request {
    FlowId flow;
    void* data;
    uint64_t bytes;
  };
  // The turn, if it is free.
  bool TryTurn();
  // Takes the turn, which others have for a moment only while there are movers.
  std::unique_lock<std::mutex> TakeTurnSoon();
  // With the turn taken by one of the job's threads; gives it back. `request`, if any, comes after those of the inbox.
  void JobsTurn(FlowId flow, const Request* request);
  // Handles what has arrived, whichever socket it is on. True if that was everything.
  bool Poll();
  void PollAndTick();
  // What a turn does beyond the requests. `hot`: somebody waits for `flow`.
  enum class Moved {
    kNothing,
    kFound,      // on the flow's own sockets
    kSomething,  // something may have come of it
  };
  Moved Move(FlowId flow, bool hot);
  Nanos PollEvery(bool hot) const;
  void CrewAsNeeded() {
    if (run_.is_bulk() != crewed()) UpdateCrew();
  }
  void SettleNow() {
    unsettled_ = false;
    more_.store(Settle(), std::memory_order_relaxed);
  }

  std::mutex turn_;
  Nanos now_;
  bool shut_ = false;
  bool jobs_turn_ = false;
  bool unsettled_ = false;  // a turn has left Settle() to a later one
  std::atomic<bool> more_{false};
  std::atomic<Nanos> polled_{0};
  Nanos ticked_ = 0;
  Nanos moved_ = 0;  // when somebody who waited last found something
  std::vector<Request> taken_;
  std::atomic<uint64_t> helped_{0};
  BulkRun run_;
  Nanos counted_ = 0;
  std::atomic<bool> crewed_{false};

  std::mutex inbox_mutex_;
  std::vector<Request> inbox_;
  std::atomic<bool> waiting_{false};  // the inbox holds something
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_PEER_H_
