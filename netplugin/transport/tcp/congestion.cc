#include "netplugin/transport/tcp/congestion.h"

namespace r2cc::net {

std::optional<std::string> RailCongestionControl(const std::string& wanted, const std::string& system,
                                                 FunctionRef<bool(const std::string& name)> has, std::string* error) {
  if (wanted == "system") return "";
  if (!wanted.empty()) {
    if (has(wanted)) return wanted;
    *error = "R2CC_TCP_CONGESTION=" + wanted +
             ": not available to this process on this kernel; want system or one of net.ipv4.tcp_allowed_congestion_control";
    return std::nullopt;
  }
  if (!system.starts_with("bbr")) return "";
  // Every kernel has reno and gives it to anybody.
  for (const char* name : {"cubic", "reno"})
    if (has(name)) return name;
  return "";
}

}  // namespace r2cc::net
