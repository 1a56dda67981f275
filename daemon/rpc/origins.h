// Keeps the caller of each connection that the gate has admitted. gRPC names a connection by its descriptor, and that is the key.
#ifndef R2CC_DAEMON_RPC_ORIGINS_H_
#define R2CC_DAEMON_RPC_ORIGINS_H_

#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "absl/synchronization/mutex.h"
#include "daemon/core/caller.h"

namespace r2cc::daemon {

struct Origin {
  // Local from the kernel, or only an address; the certificate adds the other fields.
  Caller caller;
  std::string pem;  // of the certificate that was shown, and those behind it; empty: none
};

// Thread-safe.
class Origins {
 public:
  // Before gRPC gets `fd`.
  void Add(int fd, std::shared_ptr<const Origin> origin) {
    absl::MutexLock lock(&mutex_);
    of_[fd] = std::move(origin);
  }
  // No effect if `fd` is another conversation's by now.
  void Remove(int fd, const Origin* origin) {
    absl::MutexLock lock(&mutex_);
    if (const auto found = of_.find(fd); found != of_.end() && found->second.get() == origin) of_.erase(found);
  }
  // `peer`: gRPC's name of a call's connection, "fd:12". The descriptor stays that connection's as long as it has a call: gRPC closes it
  // with the transport, and the transport ends with its last call. Null: the connection is over.
  std::shared_ptr<const Origin> Of(const std::string& peer) const {
    absl::string_view number = peer;
    int fd = -1;
    if (!absl::ConsumePrefix(&number, "fd:") || !absl::SimpleAtoi(number, &fd)) return nullptr;
    absl::MutexLock lock(&mutex_);
    const auto found = of_.find(fd);
    return found == of_.end() ? nullptr : found->second;
  }

 private:
  mutable absl::Mutex mutex_;
  std::map<int, std::shared_ptr<const Origin>> of_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_ORIGINS_H_
