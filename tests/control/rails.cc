#include "tests/control/rails.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>

#include <algorithm>
#include <cstring>
#include <sstream>

namespace r2cc::control {

std::vector<Interface> ListInterfaces() {
  std::vector<Interface> interfaces;
  ifaddrs* list = nullptr;
  if (getifaddrs(&list) != 0) return interfaces;
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    Interface interface;
    interface.name = entry->ifa_name;
    memcpy(&interface.address, entry->ifa_addr, sizeof(interface.address));
    interface.usable = (entry->ifa_flags & IFF_UP) != 0 && (entry->ifa_flags & IFF_LOOPBACK) == 0;
    interfaces.push_back(interface);
  }
  freeifaddrs(list);
  return interfaces;
}

bool ParseRails(std::string_view text, const std::vector<Interface>& interfaces, std::vector<Rail>* rails, std::string* error) {
  rails->clear();
  std::vector<std::string> excluded;
  std::istringstream words{std::string(text)};
  for (std::string word; std::getline(words, word, ',');) {
    if (word.empty()) continue;
    if (word.front() == '^') {
      excluded.push_back(word.substr(1));
      continue;
    }
    Rail rail;
    rail.name = word;
    rail.address.sin_family = AF_INET;
    if (inet_pton(AF_INET, word.c_str(), &rail.address.sin_addr) != 1) {
      const auto found = std::find_if(interfaces.begin(), interfaces.end(), [&](const Interface& one) { return one.name == word; });
      if (found == interfaces.end()) {
        *error = "R2CC_RAILS: there is no interface '" + word + "' with an IPv4 address here";
        return false;
      }
      rail.interface = word;
      rail.address = found->address;
      rail.address.sin_port = 0;
    }
    rails->push_back(rail);
  }
  if (rails->empty()) {
    for (const Interface& interface : interfaces) {
      if (!interface.usable || std::find(excluded.begin(), excluded.end(), interface.name) != excluded.end()) continue;
      Rail rail{interface.name, interface.name, interface.address};
      rail.address.sin_port = 0;
      rails->push_back(rail);
    }
  }
  if (!rails->empty()) return true;
  *error = "R2CC_RAILS: no usable interface is left; name interfaces or addresses";
  return false;
}

}  // namespace r2cc::control
