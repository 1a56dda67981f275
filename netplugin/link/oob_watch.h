// Watches the initiator's out-of-band connection: when to open it again, and what its state shows about the peer. Pure; time is an
// argument.
//
// A connection that the peer's kernel has accepted, and whose greeting stays unanswered, is no error. It is kept: the peer's process is
// stopped or busy, or something else holds the connection open. A probe decides which.
#ifndef R2CC_NETPLUGIN_LINK_OOB_WATCH_H_
#define R2CC_NETPLUGIN_LINK_OOB_WATCH_H_

#include <cstdint>

#include "base/core/clock.h"
#include "base/core/retry.h"
#include "netplugin/link/action.h"

namespace r2cc::net {

class OobWatch {
 public:
  // `retry_seed`: the session's own, for the jitter.
  explicit OobWatch(uint64_t retry_seed);

  // True: open it now.
  bool Try(Nanos now);
  // The result of that attempt. Up() and Down() may come at any time.
  void Ungreeted(Nanos now);
  void Up();
  void Down(ProbeResult result, Nanos now);

  bool up() const { return state_ == State::kUp; }
  // The last attempt was refused: no process listens there.
  bool refused() const { return refused_; }
  // The greeting is unanswered, but the peer's kernel answers.
  bool ungreeted() const { return state_ == State::kUngreeted; }
  // The greeting has been unanswered for the whole of the silence.
  bool Ungreeted(Nanos silence, Nanos now) const { return ungreeted() && now - ungreeted_since_ >= silence; }
  // It is down, and not even the peer's kernel has answered for the whole of the silence.
  bool Silent(Nanos silence, Nanos now) const { return !up() && silent_since_ != 0 && now - silent_since_ >= silence; }

 private:
  enum class State : uint8_t { kDown, kOpening, kUngreeted, kUp };

  State state_ = State::kDown;
  bool refused_ = false;
  Nanos ungreeted_since_ = 0;
  Nanos silent_since_ = 0;  // 0: the peer's kernel has answered since
  Retry retry_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_OOB_WATCH_H_
