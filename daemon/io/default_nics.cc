#include "daemon/io/default_nics.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/core/address_choice.h"
#include "base/core/nic_choice.h"

namespace r2cc::daemon {
namespace {

// 0 if there is no such number.
int Number(const health::Sysfs& sysfs, const std::string& path) {
  const auto text = sysfs.Read(path);
  int number = 0;
  return text.ok() && absl::SimpleAtoi(*text, &number) ? number : 0;
}

// ARPHRD_LOOPBACK of <linux/if_arp.h>, which cannot be included with <net/if.h>.
constexpr int kLoopbackType = 772;

}  // namespace

std::vector<std::string> DefaultNics(const Addresses::Map& addresses, const health::Sysfs& sysfs,
                                     const std::function<int(const std::string& interface)>& ifindex) {
  std::vector<NicCandidate> candidates;
  for (const auto& [name, has] : addresses) {
    NicCandidate candidate;
    candidate.name = name;
    candidate.loopback = name == "lo";
    candidate.has_address = std::any_of(has.begin(), has.end(), [](const std::string& address) { return IsRoutable(address, {}); });
    const std::string folder = absl::StrCat("class/net/", name);
    const int there = Number(sysfs, folder + "/ifindex");
    if (there != 0 && there == ifindex(name)) {
      candidate.loopback = Number(sysfs, folder + "/type") == kLoopbackType;
      candidate.bridge = !sysfs.List(folder + "/bridge").empty();
      candidate.has_device = sysfs.LinkName(folder + "/device").ok();
      candidate.speed_mbps = Number(sysfs, folder + "/speed");
    }
    candidates.push_back(std::move(candidate));
  }
  std::vector<std::string> names;
  for (const size_t i : ChooseNics(candidates)) names.push_back(candidates[i].name);
  std::sort(names.begin(), names.end());
  return names;
}

}  // namespace r2cc::daemon
