#include "tools/perf/root_address.h"

#include "base/core/address_choice.h"

namespace r2cc::perf {
namespace {

bool AsksForLoopback(const std::string& host) {
  return IsLoopback(host) || host == "localhost" || host.starts_with("localhost.") || host.ends_with(".localhost") ||
         host == "ip6-localhost" || host == "ip6-loopback";
}

}  // namespace

std::optional<size_t> ChooseListenAddress(const std::string& host, const std::vector<std::string>& addresses) {
  if (AsksForLoopback(host)) return 0;
  for (size_t i = 0; i < addresses.size(); ++i)
    if (!IsLoopback(addresses[i])) return i;
  return std::nullopt;
}

}  // namespace r2cc::perf
