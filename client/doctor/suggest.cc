#include "client/doctor/suggest.h"

#include <arpa/inet.h>

#include <algorithm>
#include <map>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "client/core/client.h"
#include "client/core/table.h"
#include "client/doctor/machine.h"

namespace r2cc::client {
namespace {

// As the plugin leaves rails out that nobody named.
constexpr int64_t kSlowerBy = 10;
constexpr size_t kNamed = 4;

// IPv4 before IPv6; link-local addresses are no network of a rail.
std::string RailNetworkOf(const LocalInterface& interface, int* prefix) {
  for (const int family : {AF_INET, AF_INET6})
    for (const LocalInterface::Address& address : interface.addresses) {
      const bool v6 = absl::StrContains(address.text, ':');
      if ((family == AF_INET6) != v6 || absl::StartsWith(address.text, "fe80:") || absl::StartsWith(address.text, "169.254.")) continue;
      *prefix = address.prefix;
      return NetworkOf(address.text, address.prefix);
    }
  return "";
}

struct Chosen {
  const InterfaceToName* interface = nullptr;
  std::string network;
  std::string name;
  std::vector<std::string> as;  // NICs of other nodes in that network
};

// A network sorts by its bytes, so that 10.0.9.0/24 is before 10.0.10.0/24.
std::vector<uint8_t> BytesOf(const std::string& network) {
  std::vector<uint8_t> bytes(sizeof(in6_addr));
  const std::string address = network.substr(0, network.find('/'));
  if (inet_pton(AF_INET, address.c_str(), bytes.data()) == 1) return {bytes.begin(), bytes.begin() + 4};
  inet_pton(AF_INET6, address.c_str(), bytes.data());
  return bytes;
}

std::string Reason(const InterfaceToName& one, bool any_device, int64_t fastest) {
  int prefix = 0;
  if (any_device && !one.has_device) return "no device is behind it";
  if (RailNetworkOf(one.facts, &prefix).empty()) return "it has no address that other nodes reach";
  if (one.megabits.has_value() && *one.megabits * kSlowerBy <= fastest)
    return absl::StrCat(*one.megabits, " Mbit/s is a tenth of the fastest or less: probably a management interface");
  return "";
}

}  // namespace

std::string NetworkOf(const std::string& address, int prefix) {
  uint8_t bytes[sizeof(in6_addr)] = {};
  const int family = inet_pton(AF_INET, address.c_str(), bytes) == 1    ? AF_INET
                     : inet_pton(AF_INET6, address.c_str(), bytes) == 1 ? AF_INET6
                                                                        : 0;
  if (family == 0 || prefix < 0) return "";
  const int bits = family == AF_INET ? 32 : 128;
  prefix = std::min(prefix, bits);
  for (int bit = prefix; bit < bits; ++bit) bytes[bit / 8] = static_cast<uint8_t>(bytes[bit / 8] & ~(0x80 >> bit % 8));
  char text[INET6_ADDRSTRLEN];
  return absl::StrCat(inet_ntop(family, bytes, text, sizeof(text)), "/", prefix);
}

std::string SuggestNics(const std::vector<InterfaceToName>& interfaces, const std::vector<NamedNic>& others) {
  bool any_device = false;
  int64_t fastest = 0;
  for (const InterfaceToName& one : interfaces) {
    any_device = any_device || one.has_device;
    fastest = std::max(fastest, one.megabits.value_or(0));
  }
  std::vector<Chosen> chosen;
  std::string left_out;
  for (const InterfaceToName& one : interfaces) {
    const std::string reason = Reason(one, any_device, fastest);
    if (!reason.empty()) {
      absl::StrAppend(&left_out, "# left out: ", one.facts.name, ": ", reason, "\n");
      continue;
    }
    int prefix = 0;
    Chosen& rail = chosen.emplace_back(Chosen{&one, RailNetworkOf(one.facts, &prefix), "", {}});
    std::map<std::string, int> names;
    for (const NamedNic& other : others)
      if (NetworkOf(other.address, prefix) == rail.network) {
        ++names[other.nic];
        rail.as.push_back(absl::StrCat(other.node, "/", other.nic));
      }
    for (const auto& [name, times] : names)
      if (rail.name.empty() || times > names[rail.name]) rail.name = name;
  }
  std::sort(chosen.begin(), chosen.end(), [](const Chosen& a, const Chosen& b) {
    return std::pair(BytesOf(a.network), a.interface->facts.name) < std::pair(BytesOf(b.network), b.interface->facts.name);
  });
  std::set<std::string> taken;
  std::map<std::string, std::string> interface_of;
  for (Chosen& rail : chosen)
    if (!rail.name.empty() && !taken.insert(rail.name).second) rail.name.clear();
  std::string text;
  int next = 0;
  for (Chosen& rail : chosen) {
    const std::string& interface = rail.interface->facts.name;
    while (rail.name.empty() && !taken.insert(absl::StrCat("rail", next)).second) ++next;
    if (rail.name.empty()) rail.name = absl::StrCat("rail", next);
    const auto [first, is_first] = interface_of.emplace(rail.network, interface);
    std::string why = rail.network;
    if (!rail.as.empty()) {
      const size_t named = std::min(rail.as.size(), kNamed);
      absl::StrAppend(&why, ", as ", absl::StrJoin(rail.as.begin(), rail.as.begin() + static_cast<ptrdiff_t>(named), " "));
      if (rail.as.size() > named) absl::StrAppend(&why, " and ", rail.as.size() - named, " more");
    }
    if (!is_first) absl::StrAppend(&why, "; CHECK: the network of ", first->second, " too, so the order may differ on other nodes");
    if (!rail.interface->facts.up) absl::StrAppend(&why, "; its link is down");
    absl::StrAppend(&text, "nics { name: \"", rail.name, "\" interface: \"", interface, "\" }  # ", why, "\n");
  }
  if (chosen.empty()) text = "# no interface of this machine can be a rail\n";
  return text + left_out;
}

std::string Run(const SuggestCommand& command, Machine& machine) {
  std::vector<InterfaceToName> interfaces;
  for (LocalInterface& facts : machine.Interfaces()) {
    const std::string entry = absl::StrCat("/sys/class/net/", facts.name);
    InterfaceToName& one = interfaces.emplace_back();
    one.has_device = machine.Read(entry + "/device/uevent").ok();
    int64_t megabits = 0;
    // Some drivers report -1.
    if (const auto speed = machine.Read(entry + "/speed"); speed.ok() && absl::SimpleAtoi(*speed, &megabits) && megabits > 0)
      one.megabits = megabits;
    one.facts = std::move(facts);
  }
  std::vector<NamedNic> others;
  std::string from = "# r2ccd does not answer here, so nothing is known of other nodes\n";
  if (const auto client = Client::Connect(command.socket_path); client.ok())
    if (const auto nics = (*client)->ListNics(v1::ListNicsRequest()); nics.ok()) {
      from.clear();
      const auto own = (*client)->OwnNodeSoon();
      for (const v1::NodeView& node : nics->nodes())
        if (!own.ok() || node.node() != own->node())
          for (const v1::NicView& nic : node.nics()) others.push_back({node.node(), nic.name(), nic.address()});
    }
  std::string text = from + SuggestNics(interfaces, others);
  // Names of other nodes end in a file that a person takes over.
  std::string printable;
  for (const absl::string_view line : absl::StrSplit(absl::StripSuffix(text, "\n"), '\n'))
    absl::StrAppend(&printable, Printable(line), "\n");
  return printable;
}

}  // namespace r2cc::client
