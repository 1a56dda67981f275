#include "netplugin/config/profiler_choice.h"

namespace r2cc::net {

std::string SeveralProfilers(const char* value) {
  const std::string text = value == nullptr ? "" : value;
  if (text.find(',') == std::string::npos || text.find("r2cc") == std::string::npos) return "";
  return "NCCL_PROFILER_PLUGIN=" + text + " names several profilers and NCCL loads at most one: this job may have none; name one of them";
}

}  // namespace r2cc::net
