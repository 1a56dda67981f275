// Applies the traffic class that NCCL names for a communicator (ncclConfig_t.trafficClass). All communicators of two processes share their
// links, so the first one that names a class decides for the process. As in NCCL, it is also the service level, and NCCL_IB_TC and
// NCCL_IB_SL take precedence. Pure. Any thread.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_TRAFFIC_CLASS_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_TRAFFIC_CLASS_H_

#include <cstdint>
#include <optional>
#include <string>

#include "base/core/mutex.h"
#include "netplugin/transport/verbs/site_settings.h"

namespace r2cc::net::verbs {

class TrafficClass {
 public:
  // A communicator begins; negative: it names no class. Returns one line if it does not get its class, once; otherwise nothing.
  std::string Named(int traffic_class, const SiteSettings& site);
  // The site's settings for a queue pair that is made now.
  SiteSettings For(SiteSettings site);

 private:
  Mutex mutex_;
  std::optional<uint8_t> class_ R2CC_GUARDED_BY(mutex_);  // the first that was named
  bool used_ R2CC_GUARDED_BY(mutex_) = false;             // queue pairs were made
  bool logged_ R2CC_GUARDED_BY(mutex_) = false;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_TRAFFIC_CLASS_H_
