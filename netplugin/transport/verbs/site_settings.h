// Reads what a RoCE or InfiniBand site sets for NCCL's own transport, from the same variables and with the same meaning: traffic of the
// wrong class runs among traffic that the fabric may drop. Pure.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_SITE_SETTINGS_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_SITE_SETTINGS_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace r2cc::net::verbs {

struct SiteSettings {
  std::optional<uint8_t> traffic_class = {};  // NCCL_IB_TC; unset: the communicators', or 0
  std::optional<uint8_t> service_level = {};  // NCCL_IB_SL; unset: the same
  uint16_t pkey_index = 0;                    // NCCL_IB_PKEY: an index of the partition key table
  std::optional<uint32_t> gid_index = {};     // NCCL_IB_GID_INDEX; unset: chosen
  // NCCL_IB_TIMEOUT and NCCL_IB_RETRY_CNT. Not NCCL's defaults (20 and 7): another rail takes over within a second. With 15 and 6 it takes
  // 0.94 s. The first packets of emulation take longer than 12 allows, and soft-RoCE retries forever with a count of 7.
  uint8_t timeout = 15;
  uint8_t retry_cnt = 6;
  bool adaptive_routing = false;  // NCCL_IB_ADAPTIVE_ROUTING
};

// The settings that `get` returns. A value that is no number in its range is ignored, with one line in `warnings`.
SiteSettings SiteSettingsOf(const std::function<const char*(const char* name)>& get, std::vector<std::string>* warnings);

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_SITE_SETTINGS_H_
