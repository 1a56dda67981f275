#include "netplugin/transport/verbs/traffic_class.h"

#include <utility>

namespace r2cc::net::verbs {

std::string TrafficClass::Named(int traffic_class, const SiteSettings& site) {
  if (traffic_class < 0 || (site.traffic_class && site.service_level)) return "";
  const MutexLock lock(mutex_);
  const std::string begin = "R2CC: the communicator's trafficClass=" + std::to_string(traffic_class);
  const auto once = [this](std::string line) R2CC_REQUIRES(mutex_) { return std::exchange(logged_, true) ? std::string() : line; };
  if (traffic_class > UINT8_MAX) return once(begin + " is ignored: want a number from 0 to 255");
  if (class_.has_value() && *class_ != traffic_class)
    return once(begin + " is ignored: all communicators of a process share their links, and the first one that named a class chose " +
                std::to_string(*class_) + ". Give all of them one class, or set NCCL_IB_TC and NCCL_IB_SL");
  if (class_.has_value()) return "";
  class_ = static_cast<uint8_t>(traffic_class);
  if (!used_) return "";
  return once(begin +
              " is for links that open from now on: communicators before it named none, and the links that they opened keep the "
              "site's. Give all communicators one class, or set NCCL_IB_TC and NCCL_IB_SL");
}

SiteSettings TrafficClass::For(SiteSettings site) {
  const MutexLock lock(mutex_);
  used_ = true;
  if (!site.traffic_class) site.traffic_class = class_;
  if (!site.service_level) site.service_level = class_;
  return site;
}

}  // namespace r2cc::net::verbs
