// Whether what a peer moves is bulk, so that more threads at it are worth it: large messages are a matter of copying, small ones of who
// wakes up for them. Pure.
#ifndef R2CC_NETPLUGIN_TRANSPORT_WORKLOAD_CLASSIFIER_H_
#define R2CC_NETPLUGIN_TRANSPORT_WORKLOAD_CLASSIFIER_H_

#include <cstdint>

#include "netplugin/flow/types.h"

namespace r2cc::net {

class WorkloadClassifier {
 public:
  // It is after so many bytes of messages that are worth handing over; 0: always.
  explicit WorkloadClassifier(uint64_t after_bytes) : after_bytes_(after_bytes) {}

  // To send or receive a larger message takes longer than to wake another thread for it, though that one has its copy made first.
  static constexpr uint64_t kHandedOverBytes = 12 * 1024;
  // So many smaller messages one after another end it. A few, such as a job's flags, or the rests that an operation leaves in each of its
  // channels, do not.
  static constexpr int kSmallMost = 16;

  // So many bytes of a message move, or are about to. An empty message, of a slice that NCCL's operation does not fill, says nothing.
  void Account(uint64_t message_bytes, uint64_t bytes) {
    if (message_bytes == 0) return;
    bulk_.Account(message_bytes, bytes, kHandedOverBytes);
    large_.Account(message_bytes, bytes, kEagerBytesMax);
    Resume(message_bytes);
  }
  // Some of a message moves that was counted as a whole.
  void Resume(uint64_t message_bytes) {
    if (message_bytes > kHandedOverBytes) idle_ = false;
  }
  // Nothing has moved for a while, and a small message may be the next. A large one goes on where the run was.
  void Idle() { idle_ = after_bytes_ > 0; }
  bool is_bulk() const { return !idle_ && bulk_.bytes >= after_bytes_; }
  // Messages are about that are worth handing over: the peer's workers may send them by any socket of a link.
  bool has_bulk() const { return bulk_.bytes > 0; }
  // Messages are about that are too large for the eager path.
  bool has_large() const { return large_.bytes > 0; }

 private:
  struct Run {
    uint64_t bytes = 0;
    int small = 0;

    void Account(uint64_t message_bytes, uint64_t moved_bytes, uint64_t small_bytes) {
      if (message_bytes > small_bytes) {
        small = 0;
        bytes += moved_bytes;
      } else if (++small >= kSmallMost) {
        bytes = 0;
      }
    }
  };

  const uint64_t after_bytes_;
  Run bulk_, large_;
  bool idle_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_WORKLOAD_CLASSIFIER_H_
