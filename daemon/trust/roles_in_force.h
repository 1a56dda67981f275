// The roles as they are now: read by every thread that serves a request, replaced as a whole when the configuration is read again.
#ifndef R2CC_DAEMON_TRUST_ROLES_IN_FORCE_H_
#define R2CC_DAEMON_TRUST_ROLES_IN_FORCE_H_

#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "daemon/core/roles.h"

namespace r2cc::daemon {

// Thread-safe.
class RolesInForce {
 public:
  explicit RolesInForce(RolePolicy policy) : policy_(std::make_shared<const RolePolicy>(std::move(policy))) {}

  // A caller goes on with the policy that it got, also if another one is set meanwhile.
  std::shared_ptr<const RolePolicy> Get() const {
    absl::MutexLock lock(&mutex_);
    return policy_;
  }
  void Set(RolePolicy policy) {
    auto fresh = std::make_shared<const RolePolicy>(std::move(policy));
    absl::MutexLock lock(&mutex_);
    policy_ = std::move(fresh);
  }

 private:
  mutable absl::Mutex mutex_;
  std::shared_ptr<const RolePolicy> policy_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_TRUST_ROLES_IN_FORCE_H_
