#include "daemon/rails/rail_match.h"

#include <algorithm>
#include <cctype>
#include <cstring>
#include <functional>

#include "daemon/config/config.h"

namespace r2cc::daemon {
namespace {

std::string LowerCase(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return text;
}

// 81:00.0 and 0000:81:00.0 are one device.
std::string CanonicalPci(const std::string& text) {
  if (text.empty()) return "";
  const std::string lower = LowerCase(text);
  return std::count(lower.begin(), lower.end(), ':') == 1 ? "0000:" + lower : lower;
}

std::string Match(const plan::AttachRail& rail, const std::vector<MatchableNic>& nics, uint64_t own_netns_inode) {
  const std::string name(rail.name);
  const std::string pci = CanonicalPci(rail.pci);
  // A rail named by its address alone is common on loopback rigs.
  const std::string address = CanonicalAddress(rail.address[0] != 0 ? rail.address : rail.name);
  const bool same_netns = own_netns_inode != 0 && rail.netns_inode == own_netns_inode;
  constexpr std::array<uint8_t, 6> kNoMac = {};
  std::array<uint8_t, 6> mac;
  std::memcpy(mac.data(), rail.mac, mac.size());

  const std::function<bool(const MatchableNic&)> keys[] = {
      [&](const MatchableNic& nic) { return !pci.empty() && CanonicalPci(nic.pci) == pci; },
      [&](const MatchableNic& nic) { return rail.guid != 0 && nic.guid == rail.guid; },
      [&](const MatchableNic& nic) { return same_netns && mac != kNoMac && nic.mac == mac; },
      [&](const MatchableNic& nic) {
        return !address.empty() && std::find(nic.addresses.begin(), nic.addresses.end(), address) != nic.addresses.end();
      },
      [&](const MatchableNic& nic) { return same_netns && !nic.interface.empty() && nic.interface == name; },
  };
  std::vector<const MatchableNic*> candidates;
  // Two different devices cannot be one NIC, also if all else agrees: addresses repeat between namespaces.
  for (const MatchableNic& nic : nics)
    if (pci.empty() || nic.pci.empty() || CanonicalPci(nic.pci) == pci) candidates.push_back(&nic);
  for (const auto& fits : keys) {
    std::vector<const MatchableNic*> fitting;
    for (const MatchableNic* nic : candidates)
      if (fits(*nic)) fitting.push_back(nic);
    if (fitting.size() == 1) return fitting[0]->name;
    if (!fitting.empty()) candidates = std::move(fitting);
  }
  // Several fit as well as each other: any of them would be a guess about which cable carries the bytes, and a wrong guess moves
  // traffic off the wrong rail.
  return "";
}

}  // namespace

std::vector<std::string> MatchRails(const plan::AttachRequest& request, const std::vector<MatchableNic>& nics, uint64_t own_netns_inode) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < request.rail_count && i < plan::kAttachRailsMax; ++i)
    names.push_back(Match(request.rails[i], nics, own_netns_inode));
  return names;
}

}  // namespace r2cc::daemon
