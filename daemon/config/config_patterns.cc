#include "daemon/config/config_patterns.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/glob.h"
#include "base/names.h"

namespace r2cc::daemon {
namespace {

using Addresses = std::map<std::string, std::vector<std::string>>;

constexpr char kLoopback[] = "lo";

absl::Status Wrong(const Config& config, int line, const std::string& what) {
  return absl::NotFoundError(absl::StrCat(config.parts.Place(line), ": ", what));
}

std::string Names(const Addresses& addresses) {
  std::vector<std::string> names;
  for (const auto& [interface, of] : addresses)
    if (interface != kLoopback) names.push_back(interface);
  return names.empty() ? "none" : absl::StrJoin(names, " ");
}

struct Found {
  std::string interface;
  std::string address;
};
std::string Text(const std::vector<Found>& found) {
  return absl::StrJoin(found, " ", [](std::string* out, const Found& one) { absl::StrAppend(out, one.address, " (", one.interface, ")"); });
}

// The one address of this machine in `network`: `what` names who wants it.
absl::StatusOr<Found> OnlyAddressIn(const Network& network, const Addresses& addresses, const Config& config, int line,
                                    const std::string& what) {
  std::vector<Found> all, inside;
  for (const auto& [interface, of] : addresses)
    for (const std::string& address : of) {
      all.push_back({interface, address});
      if (network.Contains(address)) inside.push_back(all.back());
    }
  if (inside.empty())
    return Wrong(config, line,
                 absl::StrCat(what, ": this machine has no address in ", network.text(), "; it has ", all.empty() ? "none" : Text(all)));
  if (inside.size() > 1)
    return absl::InvalidArgumentError(absl::StrCat(config.parts.Place(line), ": ", what, ": this machine has more than one address in ",
                                                   network.text(), ": ", Text(inside), "; name a smaller network"));
  return inside.front();
}

}  // namespace

std::string AbsentInterface(const Network& network) { return "in " + network.text(); }

NicsNow LookForNics(const std::vector<NicSpec>& nics, const std::vector<std::string>& lacking_globs, const ConfigParts& parts,
                    const std::map<std::string, std::vector<std::string>>& addresses) {
  NicsNow now{nics};
  const auto taken = [&](const std::string& interface) {
    return std::any_of(nics.begin(), nics.end(), [&](const NicSpec& nic) { return nic.interface == interface; });
  };
  for (NicSpec& nic : now.nics) {
    if (nic.interface.empty() || addresses.contains(nic.interface)) continue;
    const std::string place = nic.line == 0 ? "" : absl::StrCat(" (", parts.Place(nic.line), ")");
    if (!nic.network.has_value() || !nic.address.empty()) {
      now.alarms[nic.name] = absl::StrCat("NIC ", nic.name, " has no interface '", nic.interface, "'", place,
                                          ": it fell off the bus or has another name; `ip link` shows what is there");
      continue;
    }
    std::vector<Found> inside;
    for (const auto& [interface, of] : addresses)
      for (const std::string& address : of)
        if (nic.network->Contains(address) && !taken(interface)) inside.push_back({interface, address});
    if (inside.size() == 1) {
      nic.interface = inside.front().interface == kLoopback ? "" : inside.front().interface;
      nic.address = inside.front().address;
      now.news = true;
      continue;
    }
    now.alarms[nic.name] = absl::StrCat("NIC ", nic.name, ": this machine has ", inside.empty() ? "no address" : "more than one address",
                                        " in ", nic.network->text(), place, "; `ip address` shows what is there");
  }
  for (const std::string& glob : lacking_globs) {
    const bool come = std::any_of(addresses.begin(), addresses.end(), [&](const auto& entry) { return GlobFits(glob, entry.first); });
    now.alarms[glob] = come
                           ? absl::StrCat("an interface that fits '", glob, "' is there now: `r2ccctl config reload` makes it a NIC")
                           : absl::StrCat("no interface of this machine fits '", glob, "': it has fewer NICs than the configuration names");
  }
  return now;
}

absl::Status FitToMachine(const Addresses& addresses, Config* config, const MayLack& may_lack) {
  const auto may = [&](const std::string& name) { return may_lack.everything || may_lack.names.contains(name); };
  if (config->listen_by_default) {
    const bool v6 = std::any_of(addresses.begin(), addresses.end(), [](const auto& entry) {
      return std::any_of(entry.second.begin(), entry.second.end(), [](const std::string& a) { return a.find(':') != std::string::npos; });
    });
    config->listen = v6 ? kDefaultListenV6 : kDefaultListen;
  }
  if (config->listen_network.has_value()) {
    const auto found = OnlyAddressIn(*config->listen_network, addresses, *config, config->listen_line, "listen");
    if (!found.ok()) return found.status();
    const auto port = ParseHostPort(config->listen, /*allow_port_zero=*/true);
    if (!port.ok()) return port.status();
    const bool v6 = found->address.find(':') != std::string::npos;
    config->listen = absl::StrCat(v6 ? "[" : "", found->address, v6 ? "]" : "", ":", port->port);
  }
  std::set<std::string> names, interfaces, used_addresses;
  for (const NicSpec& nic : config->nics) {
    names.insert(nic.name);
    interfaces.insert(nic.interface);
    used_addresses.insert(nic.address);
  }
  for (const NicPattern& pattern : config->nic_patterns) {
    std::vector<NicSpec> fitting;
    if (pattern.network.has_value()) {
      const auto found = OnlyAddressIn(*pattern.network, addresses, *config, pattern.nic.line, absl::StrCat("NIC ", pattern.nic.name));
      if (!found.ok() && !(absl::IsNotFound(found.status()) && may(pattern.nic.name))) return found.status();
      NicSpec& nic = fitting.emplace_back(pattern.nic);
      if (!found.ok()) {
        nic.interface = AbsentInterface(*pattern.network);
        nic.network = pattern.network;
        names.insert(nic.name);
        config->nics.push_back(std::move(nic));
        continue;
      }
      nic.interface = found->interface == kLoopback ? "" : found->interface;
      nic.address = found->address;
      nic.network = pattern.network;
      if ((!nic.interface.empty() && interfaces.contains(nic.interface)) || used_addresses.contains(nic.address))
        return Wrong(*config, nic.line, absl::StrCat("NIC ", nic.name, ": ", nic.address, " is another NIC's already"));
    } else {
      bool any = false;
      for (const auto& [interface, of] : addresses) {
        if (interface == kLoopback || !GlobFits(pattern.interface_glob, interface)) continue;
        any = true;
        if (interfaces.contains(interface)) continue;
        NicSpec& nic = fitting.emplace_back(pattern.nic);
        nic.name = nic.interface = interface;
        if (!IsNicName(interface) || names.contains(interface))
          return Wrong(*config, nic.line,
                       absl::StrCat("interface '", interface, "' fits ", pattern.interface_glob, ", and its name ",
                                    IsNicName(interface) ? "is another NIC's" : "is no NIC's", ": name each NIC"));
      }
      if (!any && may(pattern.interface_glob)) config->lacking_globs.push_back(pattern.interface_glob);
      if (!any && !may(pattern.interface_glob))
        return Wrong(*config, pattern.nic.line,
                     absl::StrCat("no interface of this machine fits '", pattern.interface_glob, "'; it has ", Names(addresses)));
    }
    for (NicSpec& nic : fitting) {
      names.insert(nic.name);
      if (!nic.interface.empty()) interfaces.insert(nic.interface);
      used_addresses.insert(nic.address);
      config->nics.push_back(std::move(nic));
    }
  }
  if (config->nics.size() > config->nics_per_node)
    return Wrong(*config, config->nic_patterns.empty() ? 0 : config->nic_patterns.back().nic.line,
                 absl::StrCat(config->nics.size(), " NICs fit, and more than ", config->nics_per_node,
                              " are refused; name fewer, or set limits { nics_per_node }, on all nodes"));
  return absl::OkStatus();
}

}  // namespace r2cc::daemon
