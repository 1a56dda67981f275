// Calls that gRPC still owns: what they use may not go before them.
#ifndef R2CC_DAEMON_RPC_CALL_COUNT_H_
#define R2CC_DAEMON_RPC_CALL_COUNT_H_

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace r2cc::daemon {

// Thread-safe.
class CallCount {
 public:
  void Add(int n) {
    absl::MutexLock lock(&mutex_);
    under_way_ += n;
  }
  void AwaitNone() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](int* n) { return *n == 0; }, &under_way_));
  }

 private:
  absl::Mutex mutex_;
  int under_way_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_CALL_COUNT_H_
