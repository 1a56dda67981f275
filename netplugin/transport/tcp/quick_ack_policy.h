// Decides when the kernel may delay its acknowledgements of what a socket receives. For each small message an acknowledgement is a packet
// sent in the very call that finds the message. For bulk, and above all for its last bytes, a sender needs it at once: until then its
// kernel counts the rail as busy. Pure.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_QUICK_ACK_POLICY_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_QUICK_ACK_POLICY_H_

#include <optional>
#include <utility>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {

class QuickAckPolicy {
 public:
  // Messages were read, while bulk moves or not. Returns what to set in the kernel: true: acknowledgements may be late; nothing: no change.
  std::optional<bool> Read(bool bulk) {
    if (bulk) return std::exchange(late_, false) ? std::optional(false) : std::nullopt;
    if (late_ && ++reads_ < tuning::kQuickAckSetEvery) return std::nullopt;
    late_ = true;
    reads_ = 0;
    return true;
  }

 private:
  bool late_ = false;  // a new connection's state
  int reads_ = 0;      // since the kernel was last set
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_QUICK_ACK_POLICY_H_
