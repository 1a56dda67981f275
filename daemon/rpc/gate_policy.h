// Decides which connections a gate admits, how many of each caller at a time, how much they may ask for, and what is due when. Pure: time
// is an argument.
#ifndef R2CC_DAEMON_RPC_GATE_POLICY_H_
#define R2CC_DAEMON_RPC_GATE_POLICY_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "base/core/clock.h"
#include "daemon/rpc/http2_meter.h"

namespace r2cc::daemon {

// One thread at a time.
class GatePolicy {
 public:
  // Unauthenticated connections. Beyond that the oldest goes.
  static constexpr size_t kGreetingsMax = 512;
  static constexpr size_t kGreetingsPerAddressMax = 64;
  // Rejected connections that still wait for the reason. Beyond that a connection gets none.
  static constexpr size_t kLeavingMax = 256;
  // One `kReservedShare`th of a group's places is for shares that have none.
  static constexpr size_t kReservedShare = 4;
  // How often those that were let in are judged again.
  static constexpr Nanos kJudgeInterval = 60 * kNanosPerSecond;
  // Shares that nobody uses are forgotten when their allowance is whole again.
  static constexpr Nanos kShareKeptFor = 30 * kNanosPerSecond;
  // Memory of connections goes back to the kernel when this many have ended. A silent one was measured at 77 KiB, so 32 are 2.5 MiB: less
  // is not worth a walk through the heap.
  static constexpr size_t kTrimAfter = 32;
  // The walk took 12 ms for a heap of 32 MiB and 51 ms for one of 128 MiB, on 2 loaded processors: at most 0.5 % of the listener's thread.
  static constexpr Nanos kTrimInterval = 10 * kNanosPerSecond;

  // One that is let in: conversations of one `share` (a node, a user, an address) are counted together, and so are those of one `group`.
  struct Admission {
    std::string share;
    size_t share_max = 0;
    std::string group;
    size_t group_max = 0;
    int streams_per_second = 0;  // that a share opens
    int streams_burst = 0;
    bool reserved = false;  // it may have the group's last places however many it has
  };
  // Connections of one share.
  struct Share {
    Share(std::string name, std::string its_group, int per_second, int burst)
        : share(std::move(name)), group(std::move(its_group)), allowance{{per_second, burst}} {}
    const std::string share;
    const std::string group;
    Http2Allowance allowance;
    size_t conversations = 0;
    Nanos used = 0;
  };
  // Why a conversation is refused: for the count, and for people.
  struct Refusal {
    std::string reason;
    std::string why;
  };
  struct Admitted {
    Share* share = nullptr;  // null: refused. Valid until its conversation ends.
    Refusal refusal;
  };
  enum class Greeting {
    kTake,
    kTakeForOldest,   // the oldest one that greets has to go
    kAddressHasMany,  // refused
  };

  // A connection from `host` comes, which is not authenticated yet.
  Greeting JudgeGreeting(const std::string& host) const;
  void BeginGreeting(const std::string& host);
  void EndGreeting(const std::string& host);

  // Counts a conversation, unless it is one too many or comes too soon.
  Admitted Admit(const Admission& admission, Nanos now);
  // A conversation that was admitted has ended.
  void End(Share* share, Nanos now);
  // A connection of any kind has ended.
  void CountEnd() { ++ended_; }

  // A rejected connection may stay to get the reason. True: it counts until EndLeaving().
  bool BeginLeaving();
  void EndLeaving() { --leaving_; }

  // True: it is time, and the next time is counted from now on.
  bool TakeJudging(Nanos now);
  void Judged(Nanos now) { judged_ = now; }
  bool TakeTrimming(Nanos now);
  // Memory is still to be given back.
  bool WantsTrimming() const { return ended_ >= kTrimAfter; }
  void ForgetShares(Nanos now);

  size_t greetings() const { return greeting_; }
  size_t shares() const { return shares_.size(); }

 private:
  std::map<std::pair<std::string, std::string>, std::unique_ptr<Share>> shares_;  // by group and name
  std::map<std::string, size_t> groups_;
  std::map<std::string, size_t> greetings_;  // by host
  size_t greeting_ = 0;                      // in all
  size_t leaving_ = 0;
  size_t ended_ = 0;  // since memory was given back
  Nanos judged_ = 0;
  Nanos trimmed_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_GATE_POLICY_H_
