// The initiator's out-of-band connection: when to try it again, and what it says of the peer. Pure; time is an argument.
//
// One that the peer's kernel has accepted and nobody greets is no error: it is kept, and says that the peer's process is stopped or busy,
// or that something else holds it open. A probe tells.
#ifndef R2CC_NETPLUGIN_LINK_OOB_WATCH_H_
#define R2CC_NETPLUGIN_LINK_OOB_WATCH_H_

#include <cstdint>

#include "base/core/clock.h"
#include "base/core/retry.h"
#include "netplugin/link/action.h"

namespace r2cc::net {

class OobWatch {
 public:
  // `retry_seed`: for the jitter, the session's own.
  explicit OobWatch(uint64_t retry_seed);

  // True: open it now.
  bool Try(Nanos now);
  // What became of that. Up() and Down() may come at any time.
  void Ungreeted(Nanos now);
  void Up();
  void Down(ProbeResult result, Nanos now);

  bool up() const { return state_ == State::kUp; }
  // The last attempt was refused: nobody listens there.
  bool refused() const { return refused_; }
  // Nobody greets, and the peer's kernel answers.
  bool ungreeted() const { return state_ == State::kUngreeted; }
  // So for the whole of the silence.
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
