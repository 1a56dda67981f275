#include "daemon/io/addresses.h"

#include <algorithm>

#include "base/core/address_choice.h"
#include "base/core/interfaces.h"

namespace r2cc::daemon {
namespace {

bool IsV6(const std::string& address) { return address.find(':') != std::string::npos; }

}  // namespace

std::string ChooseAddress(const std::vector<std::string>& on_interface, const std::string& current) {
  const bool any_will_do = current.empty() || IsLinkLocal(current);
  if (!any_will_do && std::find(on_interface.begin(), on_interface.end(), current) != on_interface.end()) return current;
  for (const std::string& address : on_interface)
    if (!IsLinkLocal(address) && (any_will_do || IsV6(address) == IsV6(current))) return address;
  return current.empty() && !on_interface.empty() ? on_interface.front() : current;
}

Addresses::Map OsAddresses::ByInterface() {
  Map map;
  for (const Interface& interface : ReadInterfaces()) {
    std::vector<InterfaceAddress> usable = interface.addresses;
    const auto rank = [](const InterfaceAddress& address) { return AddressRank(address.text, address.state); };
    std::erase_if(usable, [&](const InterfaceAddress& address) { return rank(address) == 0; });
    std::stable_sort(usable.begin(), usable.end(), [&](const auto& a, const auto& b) { return rank(a) > rank(b); });
    std::vector<std::string>& texts = map[interface.name];
    for (const InterfaceAddress& address : usable) texts.push_back(address.text);
  }
  return map;
}

}  // namespace r2cc::daemon
