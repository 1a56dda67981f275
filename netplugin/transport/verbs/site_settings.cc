#include "netplugin/transport/verbs/site_settings.h"

#include <charconv>
#include <cstring>

namespace r2cc::net::verbs {

SiteSettings SiteSettingsOf(const std::function<const char*(const char* name)>& get, std::vector<std::string>* warnings) {
  SiteSettings settings;
  const auto number = [&](const char* name, uint32_t most, bool minus_is_unset = false) -> std::optional<uint32_t> {
    const char* const text = get(name);
    if (text == nullptr || *text == '\0' || (minus_is_unset && *text == '-')) return std::nullopt;
    uint32_t value = 0;
    const char* const end = text + std::strlen(text);
    const auto [stopped, error] = std::from_chars(text, end, value);
    if (error == std::errc() && stopped == end && value <= most) return value;
    warnings->push_back(std::string("R2CC: ") + name + "=" + text + " is ignored: want a number from 0 to " + std::to_string(most));
    return std::nullopt;
  };
  // What is unset in NCCL is negative there.
  if (const auto value = number("NCCL_IB_TC", 255, true)) settings.traffic_class = static_cast<uint8_t>(*value);
  if (const auto value = number("NCCL_IB_SL", 15, true)) settings.service_level = static_cast<uint8_t>(*value);
  if (const auto value = number("NCCL_IB_PKEY", UINT16_MAX)) settings.pkey_index = static_cast<uint16_t>(*value);
  settings.gid_index = number("NCCL_IB_GID_INDEX", 255, true);
  if (const auto value = number("NCCL_IB_TIMEOUT", 31)) settings.timeout = static_cast<uint8_t>(*value);
  if (const auto value = number("NCCL_IB_RETRY_CNT", 7)) settings.retry_cnt = static_cast<uint8_t>(*value);
  if (const auto value = number("NCCL_IB_ADAPTIVE_ROUTING", 1, true)) settings.adaptive_routing = *value == 1;
  return settings;
}

}  // namespace r2cc::net::verbs
