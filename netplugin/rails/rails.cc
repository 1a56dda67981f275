#include "netplugin/rails/rails.h"

#include <algorithm>
#include <set>
#include <tuple>

#include "base/core/glob.h"
#include "base/core/hash.h"
#include "base/core/nic_choice.h"
#include "netplugin/rails/arp_flux.h"
#include "netplugin/rails/management.h"
#include "netplugin/rails/port_rails.h"

namespace r2cc::net {
namespace {

// Error lines stay lines on machines with hundreds of interfaces.
constexpr size_t kInterfacesShown = 24;

using Ports = std::span<const verbs::PortFacts>;

std::vector<std::string> Split(const std::string& list) {
  std::vector<std::string> items;
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find(',', begin), list.size());
    std::string item = list.substr(begin, end - begin);
    while (!item.empty() && item.front() == ' ') item.erase(item.begin());
    while (!item.empty() && item.back() == ' ') item.pop_back();
    items.push_back(item);
    begin = end + 1;
  }
  return items;
}

// "eth0 (10.0.0.1), eth1 (down), lo (127.0.0.1), mlx5_0 (RDMA)".
std::string WhatExists(const std::vector<HostInterface>& interfaces, Ports ports) {
  std::string text;
  for (size_t i = 0; i < interfaces.size() && i < kInterfacesShown; ++i) {
    const HostInterface& interface = interfaces[i];
    const IpAddress address = PreferredAddress(interface);
    text += text.empty() ? "" : ", ";
    text += interface.name + " (" + (address.empty() ? "no address" : address.text) + (interface.admin_up ? "" : ", down") + ")";
  }
  if (interfaces.size() > kInterfacesShown) text += ", ...";
  for (const verbs::PortFacts& port : ports) text += (text.empty() ? "" : ", ") + PortName(port, ports) + " (RDMA)";
  return text.empty() ? "no interface at all" : text;
}

bool HasOtherName(const HostInterface& interface, const std::string& pattern) {
  return std::any_of(interface.other_names.begin(), interface.other_names.end(),
                     [&](const std::string& name) { return GlobFits(pattern, name); });
}

// Those that a name or a pattern stands for: by the names that the kernel gives them, else by other ones. The second alone would widen
// "enp*" on a machine that names its rails so and has a management NIC that is known so, too.
std::vector<const HostInterface*> Named(const std::vector<HostInterface>& interfaces, const std::string& pattern) {
  std::vector<const HostInterface*> named;
  for (const HostInterface& interface : interfaces)
    if (GlobFits(pattern, interface.name)) named.push_back(&interface);
  if (!named.empty()) return named;
  for (const HostInterface& interface : interfaces)
    if (HasOtherName(interface, pattern)) named.push_back(&interface);
  return named;
}

// With the address and, in `found`, as the kernel gave it (with its scope).
const HostInterface* WithAddress(const std::vector<HostInterface>& interfaces, const std::string& text, IpAddress* found) {
  for (const HostInterface& interface : interfaces)
    for (const IpAddress& address : interface.addresses)
      if (address.text == text) {
        *found = address;
        return &interface;
      }
  return nullptr;
}

Rail RailOn(const HostInterface& interface, const std::string& name, const IpAddress& address) {
  Rail rail;
  rail.name = name;
  rail.interface = interface.name;
  rail.ifindex = interface.ifindex;
  rail.address = address;
  rail.any_route = CarriesNothing(interface) && !address.IsLoopback();
  rail.mac = interface.mac;
  PciFunction pci = PciFunctionOf(interface.device_path);
  rail.pci_path = std::move(pci.path);
  rail.pci = std::move(pci.address);
  if (interface.speed_mbps > 0) rail.speed_mbps = interface.speed_mbps;
  rail.up = interface.admin_up && interface.carrier_up && address.rank() > 0;
  return rail;
}

Rail LoopbackRail(const std::vector<HostInterface>& interfaces, const std::string& name, const IpAddress& address) {
  Rail rail;
  rail.name = name;
  rail.address = address;
  rail.up = std::any_of(interfaces.begin(), interfaces.end(), [](const HostInterface& i) { return i.loopback && i.admin_up; });
  return rail;
}

void SetGuids(std::vector<Rail>* rails) {
  std::set<uint64_t> used = {0};
  for (Rail& rail : *rails) {
    if (rail.device.empty())
      for (uint8_t byte : rail.mac) rail.guid = rail.guid << 8 | byte;
    // Two addresses of one interface, VLANs and bonds share a MAC; NCCL takes equal GUIDs for one port.
    if (used.count(rail.guid) > 0) rail.guid = Fnv1a64(rail.name + "/" + rail.address.text);
    while (!used.insert(rail.guid).second) ++rail.guid;
  }
}

// The port that a rail goes by where RDMA is wanted: its own, or that of its interface; "": none.
std::string PortOf(const Rail& rail, Ports ports) {
  if (!rail.device.empty()) return rail.device + ":" + std::to_string(rail.port);
  const auto port = verbs::PortOfInterface({rail.ifindex, rail.interface, rail.pci}, ports);
  return port ? port->device + ":" + std::to_string(port->port) : "";
}

// The one of `rails` that `rail` is once more; null: it is none of them.
const Rail* SameRail(const Rail& rail, Ports ports, const std::vector<Rail>& rails) {
  for (const Rail& other : rails) {
    // Two addresses of an interface are two rails, whatever is behind it. It may have been named by two of its names.
    const bool same_interface = rail.ifindex != 0 && rail.ifindex == other.ifindex && !rail.fixed_address && !other.fixed_address;
    const bool same_port =
        rail.device.empty() != other.device.empty() && !PortOf(rail, ports).empty() && PortOf(rail, ports) == PortOf(other, ports);
    if (other.name == rail.name || same_interface || (!rail.address.empty() && other.address.text == rail.address.text) || same_port)
      return &other;
  }
  return nullptr;
}

bool IsPattern(const std::string& item) { return item.find_first_of("*?") != std::string::npos; }

// "eth2" before "eth10".
bool NaturallyLess(const std::string& a, const std::string& b) {
  const auto digits = [](const std::string& s) { return s.size() - std::min(s.size(), s.find_last_not_of("0123456789") + 1); };
  const std::string a_stem = a.substr(0, a.size() - digits(a)), b_stem = b.substr(0, b.size() - digits(b));
  if (a_stem != b_stem) return a_stem < b_stem;
  return std::make_tuple(a.size(), a) < std::make_tuple(b.size(), b);
}

std::vector<Rail> RailsThatFit(const std::string& pattern, const std::vector<HostInterface>& interfaces, HostNetwork& host, Ports ports) {
  std::vector<Rail> fitting;
  for (const HostInterface* const interface : Named(interfaces, pattern))
    if (!interface->loopback) fitting.push_back(RailOn(*interface, interface->name, PreferredAddress(*interface)));
  std::sort(fitting.begin(), fitting.end(), [](const Rail& a, const Rail& b) { return NaturallyLess(a.name, b.name); });
  std::vector<verbs::PortFacts> named = PortsNamed(pattern, ports);
  std::sort(named.begin(), named.end(), [](const verbs::PortFacts& a, const verbs::PortFacts& b) {
    return a.device != b.device ? NaturallyLess(a.device, b.device) : a.port < b.port;
  });
  for (const verbs::PortFacts& port : named) fitting.push_back(RailOfPort(port, PortName(port, ports), host));
  return fitting;
}

std::vector<Rail> RailsNamed(const std::string& item, const std::vector<HostInterface>& interfaces, HostNetwork& host, Ports ports) {
  if (const auto address = ParseIpAddress(item)) {
    if (address->IsLoopback()) return {LoopbackRail(interfaces, item, *address)};
    IpAddress on_interface;
    const HostInterface* const interface = WithAddress(interfaces, address->text, &on_interface);
    if (interface == nullptr) return {};
    Rail rail = RailOn(*interface, item, on_interface);
    rail.fixed_address = true;
    return {rail};
  }
  if (IsPattern(item)) return RailsThatFit(item, interfaces, host, ports);
  if (const auto known = Named(interfaces, item); !known.empty()) return {RailOn(*known.front(), item, PreferredAddress(*known.front()))};
  std::vector<Rail> named;
  for (const verbs::PortFacts& port : PortsNamed(item, ports)) named.push_back(RailOfPort(port, PortName(port, ports), host));
  return named;
}

// `shown`: the item as the user wrote it.
std::string NotHere(const std::string& item, const std::string& shown, const std::vector<HostInterface>& interfaces, Ports ports) {
  return "R2CC_RAILS: " + shown +
         (ParseIpAddress(item).has_value() ? " is no address of this node"
          : IsPattern(item)                ? " fits nothing on this node"
                                           : " does not exist on this node") +
         "; there are: " + WhatExists(interfaces, ports) +
         (ports.empty() ? "; RDMA ports are rails where R2CC_TRANSPORT is verbs or auto" : "");
}

// `~` and a list: what the machine lacks is a line in `told` then, unless it lacks all of it.
bool ResolveListed(const std::string& spec, const std::vector<HostInterface>& interfaces, HostNetwork& host, Ports ports,
                   std::vector<Rail>* rails, std::vector<std::string>* notes, std::string* error) {
  const bool may_lack = spec[0] == '~';
  for (const std::string& item : Split(may_lack ? spec.substr(1) : spec)) {
    if (item.empty() || item[0] == '^' || item[0] == '~') {
      *error = "R2CC_RAILS=" + spec +
               ": want interfaces, IP addresses or RDMA devices, comma separated; ^ and ~ may only stand at the very beginning";
      return false;
    }
    std::vector<Rail> named = RailsNamed(item, interfaces, host, ports);
    if (named.empty()) {
      *error = NotHere(item, item, interfaces, ports);
      if (!may_lack) {
        if (spec.find(',') != std::string::npos) *error += "; R2CC_RAILS=~" + spec + " starts with the rails that exist";
        return false;
      }
      notes->push_back("R2CC: " + *error + "; the job starts without this rail");
    }
    for (Rail& rail : named) {
      const Rail* const same = SameRail(rail, ports, *rails);
      if (same == nullptr) {
        rails->push_back(std::move(rail));
      } else if (!IsPattern(item)) {
        *error = "R2CC_RAILS: " + item + " is there twice (as " + same->name + "): each rail is named once";
        return false;
      }
    }
  }
  // Of a list of which nothing is there the last item's line stays.
  return !rails->empty();
}

NicCandidate CandidateOf(const HostInterface& interface) {
  return {interface.name,      CarriesNothing(interface), interface.bridge, !interface.device_path.empty(), HasRoutableAddress(interface),
          interface.speed_mbps};
}

NicCandidate CandidateOf(const Rail& port) { return {port.name, false, false, true, true, port.speed_mbps}; }

// The interfaces that an item after `^` means.
std::vector<const HostInterface*> Excluded(const std::vector<HostInterface>& interfaces, const std::string& item) {
  const auto address = ParseIpAddress(item);
  if (!address.has_value()) return Named(interfaces, item);
  std::vector<const HostInterface*> with_it;
  for (const HostInterface& interface : interfaces)
    if (std::any_of(interface.addresses.begin(), interface.addresses.end(), [&](const IpAddress& a) { return a.text == address->text; }))
      with_it.push_back(&interface);
  return with_it;
}

// What follows `^`. One list serves nodes that are not alike, so what a node lacks is no error: but a misspelt one would be a rail unasked.
bool ReadExcluded(const std::string& spec, const std::vector<HostInterface>& interfaces, Ports ports, std::vector<std::string>* excluded,
                  std::vector<std::string>* notes, std::string* error) {
  for (const std::string& item : Split(spec.substr(1))) {
    if (item.empty() || item[0] == '^') {
      *error = "R2CC_RAILS=" + spec + ": want ^ and then interfaces, comma separated";
      return false;
    }
    if (Excluded(interfaces, item).empty() && PortsNamed(item, ports).empty())
      notes->push_back("R2CC: " + NotHere(item, "^" + item, interfaces, ports) + "; nothing is left out for it");
    excluded->push_back(item);
  }
  return true;
}

std::vector<Rail> ChooseRails(const std::vector<HostInterface>& interfaces, HostNetwork& host, Ports ports,
                              std::span<const std::string> excluded, std::vector<std::string>* down) {
  std::vector<Rail> offered;
  std::vector<NicCandidate> candidates;
  std::vector<const HostInterface*> left, taken;
  for (const std::string& item : excluded)
    for (const HostInterface* const interface : Excluded(interfaces, item)) taken.push_back(interface);
  for (const HostInterface& interface : interfaces) {
    if (std::find(taken.begin(), taken.end(), &interface) != taken.end()) continue;
    left.push_back(&interface);
    offered.push_back(RailOn(interface, interface.name, PreferredAddress(interface)));
    candidates.push_back(CandidateOf(interface));
  }
  // A port of one that would be no rail, as a bond or a VLAN beside NICs, may be one by itself.
  for (const size_t i : ChooseNics(candidates)) taken.push_back(left[i]);
  for (const verbs::PortFacts& port : FreePorts(taken, ports, excluded)) {
    // Nothing tells one that lost its cable from one that never had any, and a rail for ever down would cost NCCL channels.
    if (!port.active) {
      down->push_back(PortName(port, ports));
      continue;
    }
    offered.push_back(RailOfPort(port, PortName(port, ports), host));
    candidates.push_back(CandidateOf(offered.back()));
  }
  std::vector<Rail> rails;
  for (const size_t i : ChooseNics(candidates)) rails.push_back(std::move(offered[i]));
  std::sort(rails.begin(), rails.end(), [](const Rail& a, const Rail& b) {
    if (a.pci.empty() != b.pci.empty()) return b.pci.empty();
    return a.pci != b.pci ? a.pci < b.pci : NaturallyLess(a.name, b.name);
  });
  return rails;
}

// An address that another node has, too, carries nothing, and nobody else tells of it.
void WarnOfDuplicates(const std::vector<HostInterface>& interfaces, const std::vector<Rail>& rails, std::vector<std::string>* notes) {
  for (const HostInterface& interface : interfaces)
    for (const IpAddress& address : interface.addresses) {
      const auto rail = std::find_if(rails.begin(), rails.end(), [&](const Rail& one) { return one.ifindex == interface.ifindex; });
      if (!address.state.duplicate || rail == rails.end()) continue;
      notes->push_back("R2CC: " + address.text + " of " + interface.name +
                       " is not used: another node of its network has it, too (dadfailed)" +
                       (rail->up ? "; rail " + rail->name + " uses " + rail->address.text : "; rail " + rail->name + " is down") +
                       "; take it from one of them: ip address show dadfailed");
    }
}

}  // namespace

IpAddress PreferredAddress(const HostInterface& interface) {
  IpAddress best;
  for (const IpAddress& address : interface.addresses)
    if (address.rank() > best.rank()) best = address;
  return best;
}

bool ResolveRails(const std::string& spec, HostNetwork& host, std::span<const verbs::PortFacts> ports, std::vector<Rail>* rails,
                  std::string* error, std::vector<std::string>* warnings) {
  const std::vector<HostInterface> interfaces = host.Interfaces();
  std::vector<Rail> found;
  std::vector<std::string> notes;
  if (spec.empty() || spec[0] == '^') {
    std::vector<std::string> excluded, down;
    if (!spec.empty() && !ReadExcluded(spec, interfaces, ports, &excluded, &notes, error)) return false;
    found = ChooseRails(interfaces, host, ports, excluded, &down);
    if (found.empty()) {
      *error = "R2CC_RAILS" + (spec.empty() ? std::string(" is not set") : "=" + spec) + " and this node has no NIC with an IP address" +
               (ports.empty() ? "" : ", and no RDMA port that is active") +
               ": name interfaces or addresses in R2CC_RAILS; there are: " + WhatExists(interfaces, ports);
      return false;
    }
    if (std::string line = ManagementWarning(spec, host, found); !line.empty()) notes.push_back(std::move(line));
    for (const std::string& port : down)
      notes.push_back("R2CC: the RDMA port " + port +
                      " is down and no rail: rails behind it have other numbers than at a peer where it is up" +
                      "; name all rails in R2CC_RAILS, or leave it out there, too (^" + port + ")");
  } else if (!ResolveListed(spec, interfaces, host, ports, &found, &notes, error)) {
    return false;
  }
  WarnOfDuplicates(interfaces, found, &notes);
  for (const Rail& rail : found)
    if (!rail.port_active)
      notes.push_back("R2CC: rail " + rail.name + " is down: its RDMA port is not active; it comes in when that is up");
  if (found.size() > kRailsMax) {
    *error = "R2CC_RAILS: " + std::to_string(found.size()) + " rails, at most " + std::to_string(kRailsMax) + " are possible: name fewer";
    return false;
  }
  SetGuids(&found);
  const uint64_t netns_inode = host.NetnsInode();
  for (size_t i = 0; i < found.size(); ++i) {
    found[i].index = static_cast<int>(i);
    found[i].netns_inode = netns_inode;
  }
  SettleArpFlux(host, &found, &notes);
  *rails = std::move(found);
  if (warnings != nullptr) *warnings = std::move(notes);
  return true;
}

bool ChooseOobAddress(const std::string& oob_ifname, const std::vector<Rail>& rails, HostNetwork& host, IpAddress* address,
                      std::string* error) {
  const std::vector<HostInterface> interfaces = host.Interfaces();
  const auto use = [address](const IpAddress& chosen) { return *address = chosen, true; };
  if (!oob_ifname.empty()) {
    const auto numeric = ParseIpAddress(oob_ifname);
    if (numeric.has_value() && numeric->IsLoopback()) return use(*numeric);
    IpAddress found;
    const HostInterface* interface = numeric.has_value() ? WithAddress(interfaces, numeric->text, &found) : nullptr;
    if (const auto named = Named(interfaces, oob_ifname); !numeric.has_value() && !IsPattern(oob_ifname) && !named.empty())
      interface = named.front();
    if (interface != nullptr && !numeric.has_value()) found = PreferredAddress(*interface);
    if (!found.empty()) return use(found);
    *error = "R2CC_OOB_IFNAME=" + oob_ifname + (interface != nullptr ? ": it has no IP address" : ": this node does not have it") +
             "; there are: " + WhatExists(interfaces, {});
    return false;
  }
  // Loopback rails reach this machine only, and so need no other interface to talk.
  if (std::all_of(rails.begin(), rails.end(), [](const Rail& rail) { return rail.address.IsLoopback(); }))
    return use(*ParseIpAddress("127.0.0.1"));
  for (int rank = 0; rank <= 1; ++rank)
    for (const HostInterface& interface : interfaces) {
      const bool is_rail = std::any_of(rails.begin(), rails.end(), [&](const Rail& rail) { return rail.interface == interface.name; });
      if (NicRank(CandidateOf(interface)) == rank && interface.admin_up && interface.carrier_up && !is_rail)
        return use(PreferredAddress(interface));
    }
  for (bool want_up : {true, false})
    for (const Rail& rail : rails)
      if ((rail.up || !want_up) && !rail.address.empty()) return use(rail.address);
  *error = "no interface for out-of-band connections: set R2CC_OOB_IFNAME; there are: " + WhatExists(interfaces, {});
  return false;
}

}  // namespace r2cc::net
