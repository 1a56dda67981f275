// When the kernel's own acknowledgements of what a socket receives may be late. One for each small message is a packet in the very call
// that finds the message; of bulk, and of its last bytes above all, a sender should hear at once: until then its kernel takes the rail for
// busy. Pure.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_QUICK_ACK_POLICY_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_QUICK_ACK_POLICY_H_

#include <optional>
#include <utility>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {

class QuickAckPolicy {
 public:
  // Messages were read, while bulk is about or not. What the kernel is to be told: true: they may be late; nothing: all stays.
  std::optional<bool> Read(bool bulk) {
    if (bulk) return std::exchange(late_, false) ? std::optional(false) : std::nullopt;
    if (late_ && ++reads_ < tuning::kQuickAckToldEvery) return std::nullopt;
    late_ = true;
    reads_ = 0;
    return true;
  }

 private:
  bool late_ = false;  // as a new connection is
  int reads_ = 0;      // since the kernel was told last
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_QUICK_ACK_POLICY_H_
