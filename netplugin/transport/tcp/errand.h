// One bulk socket in the hands of a mover (see movers.h). Payload is copied without the peer's turn, so that several threads copy for
// one peer at a time and nobody waits for a turn because of it: with the turn the mover learns what is to be sent, or where bytes go;
// without it it makes one call; with it again it tells what came of it.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_ERRAND_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_ERRAND_H_

#include <atomic>
#include <memory>
#include <utility>

#include "netplugin/flow/planted.h"
#include "netplugin/transport/tcp/movers.h"
#include "netplugin/transport/tcp/peer.h"

namespace r2cc::net {

class Errand : public Movers::Task {
 public:
  explicit Errand(std::shared_ptr<Peer> peer) : peer_(std::move(peer)) {}

  void Run() final { peer_->Carry(this); }

  // With the turn. False: there is nothing to do, or the socket is not this errand's any more.
  virtual bool Prepare() = 0;
  // Without it: one call on the socket, which does not block. Until it has ended the socket and what it touches are the mover's.
  virtual void Call() = 0;
  // With the turn. False: enough.
  virtual bool Commit() = 0;
  // So many calls one after another; then the other sockets of its thread have their turn.
  static constexpr int kCallsTogether = 16;

  // With the turn: waits until no call is being made. They are short. What came of the last one may still be to be told.
  void Await() const { calling_.wait(true, std::memory_order_acquire); }
  // With the turn, when no call is being made: tells what came of the last one, unless that was done.
  bool Finish() { return std::exchange(untold_, false) && Commit(); }
  bool calling() const { return calling_.load(std::memory_order_acquire); }

 private:
  friend class Peer;
  void Begin() {
    untold_ = true;
    calling_.store(true, std::memory_order_relaxed);
  }
  void End() {
    calling_.store(false, std::memory_order_release);
    calling_.notify_all();
  }

  const std::shared_ptr<Peer> peer_;
  std::atomic<bool> calling_{false};
  bool untold_ = false;  // with the turn
};

// What a socket knows of its errand. With its peer's turn.
class Hire {
 public:
  bool on() const { return errand_ != nullptr && !rests_; }
  bool is(const Errand* errand) const { return on() && errand_.get() == errand; }
  // A call is being made: the socket is the mover's until it has ended.
  bool calling() const { return on() && errand_->calling(); }
  // It was called, or looks for more by itself, and has not come yet.
  bool called() const { return on() && called_; }
  void Came() { called_ = false; }
  void Comes() { called_ = true; }
  void Await() const {
    if (on()) errand_->Await();
  }

  void Begin(Movers* movers, Movers::Way way, size_t place, int fd, std::shared_ptr<Errand> errand) {
    errand_ = std::move(errand);
    called_ = rests_ = false;
    token_ = movers->Add(way, place, fd, errand_);
  }
  void Call(Movers* movers) {
    called_ = true;
    movers->Call(token_);
  }
  // When either returns no call is being made, and none will be. Nothing happens if it is off. End() is for a socket that ends, too.
  void End(Movers* movers, int fd) {
    if (errand_ == nullptr) return;
    movers->Remove(token_, fd);
    Await();
    errand_.reset();
  }
  // The socket goes on in other hands: bytes that the last call has moved are not to be moved again.
  void Dismiss(Movers* movers, int fd) {
    if (!on()) return;
    movers->Remove(token_, fd);
    Rest();
    errand_.reset();
  }
  // The same, but its thread keeps the socket, which a sending one hears nothing of meanwhile.
  void Rest() {
    if (!on()) return;
    Await();
    if (!IsPlanted(Planted::kDismissedUntold)) errand_->Finish();
    rests_ = true;
  }
  // True if it rested and is on again. Its mover does not come before it is called.
  bool Resume() {
    if (errand_ == nullptr || !rests_) return false;
    called_ = rests_ = false;
    return true;
  }

 private:
  std::shared_ptr<Errand> errand_;
  Movers::Token token_ = 0;
  bool called_ = false;
  bool rests_ = false;  // off, and to be resumed
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_ERRAND_H_
