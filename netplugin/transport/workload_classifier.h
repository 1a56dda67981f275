// Classifies a peer's traffic as bulk or small messages: large messages cost copying, small ones cost wake-ups. Pure.
#ifndef R2CC_NETPLUGIN_TRANSPORT_WORKLOAD_CLASSIFIER_H_
#define R2CC_NETPLUGIN_TRANSPORT_WORKLOAD_CLASSIFIER_H_

#include <cstdint>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {

class WorkloadClassifier {
 public:
  // A part of such a message moves, or is about to. An empty message, of a slice that NCCL's operation does not fill, is ignored.
  void Account(uint64_t message_bytes) {
    if (message_bytes == 0) return;
    if (message_bytes > tuning::kSmallBytesMost) {
      is_bulk_ = true;
      small_ = 0;
    } else if (++small_ >= tuning::kSmallMessagesMost) {
      is_bulk_ = false;
    }
  }
  bool is_bulk() const { return is_bulk_; }

 private:
  bool is_bulk_ = false;
  int small_ = 0;  // since the last large one
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_WORKLOAD_CLASSIFIER_H_
