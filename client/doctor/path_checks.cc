#include "client/doctor/path_checks.h"

#include <arpa/inet.h>

#include <algorithm>
#include <optional>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/core/address_choice.h"
#include "client/core/units.h"

namespace r2cc::client {
namespace {

const v1::NodeView* OwnView(const DaemonFacts& daemon) {
  for (const v1::NodeView& node : daemon.status.nodes())
    if (node.node() == daemon.status.node()) return &node;
  return nullptr;
}

void CheckStates(const v1::NodeView& own, Findings* found) {
  for (const v1::NicView& nic : own.nics()) {
    const std::string name = absl::StrCat(own.node(), "/", nic.name());
    switch (nic.state()) {
      case v1::FAILED:
      case v1::DEGRADED:
      case v1::SUSPECT:
        found->push_back(Fail("nic state", absl::StrCat(name, " is ", v1::NicState_Name(nic.state()), ": ", nic.reason()),
                              absl::StrCat("r2ccctl nic why ", name)));
        break;
      case v1::DRAINED:
      case v1::PROVING:
        found->push_back(Warn("nic state", absl::StrCat(name, " is ", v1::NicState_Name(nic.state()), ": ", nic.reason()),
                              absl::StrCat("r2ccctl nic why ", name)));
        break;
      case v1::UNCABLED: found->push_back(Ok("nic state", absl::StrCat(name, " never had a carrier, which is no fault"))); break;
      default: found->push_back(Ok("nic state", absl::StrCat(name, " is ", v1::NicState_Name(nic.state()))));
    }
    if (!nic.probe_trouble().empty())
      found->push_back(Warn("probes", absl::StrCat(name, ": ", nic.probe_trouble()), absl::StrCat("r2ccctl nic why ", name)));
  }
}

// A NIC that another node reports as failed: nothing is asked of it here, so no other line would name it.
void CheckOthers(const DaemonFacts& daemon, Findings* found) {
  constexpr size_t kNamed = 4;
  std::vector<std::string> failed;
  for (const v1::NodeView& node : daemon.status.nodes())
    for (const v1::NicView& nic : node.nics())
      if (node.node() != daemon.status.node() && nic.state() == v1::FAILED)
        failed.push_back(absl::StrCat(node.node(), "/", nic.name(), " (", nic.reason(), ")"));
  if (failed.empty()) return;
  const size_t more = failed.size() - std::min(failed.size(), kNamed);
  failed.resize(std::min(failed.size(), kNamed));
  found->push_back(Warn("other nodes",
                        absl::StrCat(absl::StrJoin(failed, ", "), more == 0 ? "" : absl::StrCat(" and ", more, " more"),
                                     " FAILED: this node sends nothing there"),
                        "r2ccctl nic list --bad"));
}

// A rate that somebody configured is meant.
void CheckSpeeds(const v1::NodeView& own, const std::map<std::string, uint64_t>& configured, Findings* found) {
  uint64_t best = 0;
  std::string best_nic;
  bool slow = false;
  for (const v1::NicView& nic : own.nics()) {
    if (nic.rate_bits_per_s() <= best || configured.contains(nic.name())) continue;
    best = nic.rate_bits_per_s();
    best_nic = nic.name();
  }
  for (const v1::NicView& nic : own.nics()) {
    if (nic.rate_bits_per_s() == 0 || nic.rate_bits_per_s() >= best || configured.contains(nic.name())) continue;
    slow = true;
    found->push_back(Warn("nic speed",
                          absl::StrCat(own.node(), "/", nic.name(), " runs at ", FormatRate(nic.rate_bits_per_s()), ", its twin ", best_nic,
                                       " at ", FormatRate(best)),
                          "check the cable, the transceiver and the switch port's speed; if it is intended, set nics { rate_bits_per_s }"));
  }
  if (!slow && best > 0) found->push_back(Ok("nic speed", absl::StrCat("no NIC is slower than ", FormatRate(best))));
}

void CheckAddress(const RailFacts& rail, Findings* found) {
  if (rail.interface.name.empty()) return;
  const std::string name = absl::StrCat(rail.nic, " (", rail.interface.name, ")");
  const auto any = [&](bool (*is)(const LocalInterface::Address&)) {
    return std::any_of(rail.interface.addresses.begin(), rail.interface.addresses.end(), is);
  };
  const bool usable = any([](const LocalInterface::Address& address) { return IsRoutable(address.text, address.state); });
  for (const LocalInterface::Address& address : rail.interface.addresses)
    if (address.state.duplicate)
      found->push_back(Fail(
          "nic address", absl::StrCat(address.text, " of ", name, " is another node's, too: the kernel does not use it (dadfailed)"),
          absl::StrCat("ip address del ", address.text, "/", address.prefix, " dev ", rail.interface.name, ", here or on the other node")));
  if (!usable && any([](const LocalInterface::Address& address) { return address.state.duplicate; })) return;
  if (!usable)
    found->push_back(Fail("nic address",
                          absl::StrCat(name, rail.interface.addresses.empty() ? " has no address" : " has only a link-local address"),
                          absl::StrCat("ip address add ADDRESS/LENGTH dev ", rail.interface.name)));
  else
    found->push_back(
        Ok("nic address", absl::StrCat(name, " has ", rail.address.empty() ? rail.interface.addresses.front().text : rail.address)));
}

void CheckOwners(const DaemonFacts& daemon, const RailFacts& rail, Findings* found) {
  if (rail.address.empty()) return;
  for (const v1::NodeView& node : daemon.status.nodes())
    for (const v1::NicView& nic : node.nics())
      if (nic.address() == rail.address && (node.node() != daemon.status.node() || nic.name() != rail.nic))
        return found->push_back(Fail("address owners",
                                     absl::StrCat(rail.address, " of ", rail.nic, " is also the address of ", node.node(), "/", nic.name()),
                                     "give one of them another address"));
  if (rail.interface.name.empty()) return;
  if (!rail.other_owners.ok())
    found->push_back(Unchecked("address owners", absl::StrCat(rail.nic, ": ", rail.other_owners.status().message())));
  else if (!rail.other_owners->empty())
    found->push_back(
        Fail("address owners",
             absl::StrCat(rail.address, " of ", rail.nic, " has another owner in its network: ", absl::StrJoin(*rail.other_owners, ", ")),
             "give one of them another address"));
  else
    found->push_back(Ok("address owners", absl::StrCat("no other machine has ", rail.address, " of ", rail.nic)));
}

// The first bits of an IPv4 address; nothing for another kind.
std::optional<uint32_t> NetworkOf(const std::string& address, int prefix) {
  in_addr v4{};
  if (inet_pton(AF_INET, address.c_str(), &v4) != 1 || prefix < 0 || prefix > 32) return std::nullopt;
  return prefix == 0 ? 0 : ntohl(v4.s_addr) & (~uint32_t{0} << (32 - prefix));
}

bool OneNetwork(const RailFacts& a, const RailFacts& b) {
  for (const auto& one : a.interface.addresses)
    for (const auto& other : b.interface.addresses) {
      const auto network = NetworkOf(one.text, one.prefix);
      if (network.has_value() && one.prefix == other.prefix && network == NetworkOf(other.text, other.prefix)) return true;
    }
  return false;
}

// In the same words wherever it shows.
void WarnOfFlux(const std::string& text, Findings* found) {
  found->push_back(Warn("arp", text, "sysctl -w net.ipv4.conf.all.arp_ignore=1 net.ipv4.conf.all.arp_announce=2"));
}

void CheckArp(const std::vector<RailFacts>& rails, Findings* found) {
  bool together = false, answers = false;
  for (size_t i = 0; i < rails.size(); ++i)
    for (size_t j = i + 1; j < rails.size(); ++j) {
      if (rails[i].interface.name.empty() || rails[j].interface.name.empty() || !OneNetwork(rails[i], rails[j])) continue;
      together = true;
      for (const RailFacts* rail : {&rails[i], &rails[j]})
        if (rail->arp_ignore.ok() && *rail->arp_ignore == 0) answers = true;
      if (answers)
        return WarnOfFlux(absl::StrCat(rails[i].interface.name, " and ", rails[j].interface.name,
                                       " are in one network, and each answers ARP for the other's address"),
                          found);
    }
  // Independent of their addresses: they did answer.
  for (const RailFacts& rail : rails)
    if (!rail.own_owners.empty())
      return WarnOfFlux(
          absl::StrCat(absl::StrJoin(rail.own_owners, " and "), " of this node ", rail.own_owners.size() == 1 ? "answers" : "answer",
                       " ARP for ", rail.address, " of ", rail.interface.name),
          found);
  found->push_back(Ok("arp", together ? "each NIC answers for its own address only" : "no two NICs are in one network"));
}

bool NoAnswer(const absl::Status& status) { return absl::IsDeadlineExceeded(status); }

std::string Way(const PairFacts& pair) {
  return absl::StrCat(pair.nic, " to ", pair.peer, " (", pair.address, " to ", pair.peer_address, ")");
}

// True: packets from this NIC's address leave by another one.
bool CheckRoute(const PairFacts& pair, const RailFacts* rail, Findings* found) {
  if (pair.interface.empty()) return false;
  if (!pair.route.ok()) {
    found->push_back(Unchecked("path route", absl::StrCat(Way(pair), ": ", pair.route.status().message())));
    return false;
  }
  if (*pair.route == pair.interface) {
    found->push_back(Ok("path route", absl::StrCat(Way(pair), " leaves by ", pair.interface)));
    return false;
  }
  const std::string fix = absl::StrCat("a routing table for each NIC: ip rule add from ", pair.address,
                                       " table N; ip route add NETWORK dev ", pair.interface, " table N");
  found->push_back(
      Warn("path route", absl::StrCat(Way(pair), " leaves by ", *pair.route, " where nothing binds it to ", pair.interface), fix));
  if (rail != nullptr && rail->rp_filter.ok() && *rail->rp_filter == 1)
    found->push_back(Fail("rp_filter",
                          absl::StrCat(pair.interface, ": strict, and the way back to ", pair.peer_address, " is by ", *pair.route,
                                       ": the kernel drops what comes in"),
                          absl::StrCat("sysctl -w net.ipv4.conf.", pair.interface, ".rp_filter=2 (and .all), or ", fix)));
  return true;
}

void CheckReach(const PairFacts& pair, Findings* found) {
  const std::string way = Way(pair);
  const bool probes_answer = pair.probes == "up" || pair.probes == "late";
  if (pair.small_ping.ok() && pair.full_ping.ok()) {
    found->push_back(Ok("path mtu", absl::StrCat(way, " takes packets of ", pair.full_bytes, " bytes")));
  } else if (pair.small_ping.ok() && NoAnswer(pair.full_ping)) {
    found->push_back(Fail("path mtu", absl::StrCat(way, " loses packets of ", pair.full_bytes, " bytes, which are not larger than its MTU"),
                          "set one MTU at both ends and at every switch port between them"));
  } else if (NoAnswer(pair.small_ping) && !probes_answer) {
    found->push_back(Fail("path", absl::StrCat(way, ": no answer to a ping", pair.probes == "silent" ? ", nor to r2ccd's probes" : ""),
                          absl::StrCat("is the NIC of ", pair.peer, " up? then the cables and switch ports between; r2ccctl nic why ",
                                       pair.peer, "/", pair.nic)));
  } else {
    const absl::Status& why = pair.small_ping.ok() ? pair.full_ping : pair.small_ping;
    found->push_back(Unchecked("path mtu", absl::StrCat(way, ": ", NoAnswer(why) ? "pings are not answered, probes are" : why.message())));
  }
  // If pings have no answer either, a firewall is not the first suspect.
  if (pair.probes == "silent" && !NoAnswer(pair.small_ping))
    found->push_back(Fail("probe port",
                          absl::StrCat(way, ": r2ccd's probes (UDP) have no answer", pair.small_ping.ok() ? ", pings have" : ""),
                          "let UDP through from and to the port of `listen` (7460), on the rails too"));
  else if (probes_answer)
    found->push_back(Ok("probe port", absl::StrCat(way, ": r2ccd's probes are answered")));
  else if (pair.probes != "silent")
    found->push_back(Unchecked("probe port", absl::StrCat(way, ": r2ccd has not looked at it yet")));
  if (pair.job_ports.ok())
    found->push_back(Ok("job ports", absl::StrCat(way, ": TCP ports are answered")));
  else if (!NoAnswer(pair.job_ports))
    found->push_back(Unchecked("job ports", absl::StrCat(way, ": ", pair.job_ports.message())));
  else if (pair.small_ping.ok() || probes_answer)
    found->push_back(Fail("job ports", absl::StrCat(way, ": ", pair.job_ports.message()),
                          "let TCP through between the rails, all ports of net.ipv4.ip_local_port_range"));
}

}  // namespace

Findings CheckNics(const Facts& facts) {
  Findings found;
  const v1::NodeView* const own = OwnView(facts.daemon);
  if (own == nullptr) return found;
  CheckStates(*own, &found);
  CheckOthers(facts.daemon, &found);
  CheckSpeeds(*own, facts.daemon.configured_rates, &found);
  for (const RailFacts& rail : facts.rails) CheckAddress(rail, &found);
  for (const RailFacts& rail : facts.rails) CheckOwners(facts.daemon, rail, &found);
  CheckArp(facts.rails, &found);
  return found;
}

Findings CheckPaths(const Facts& facts) {
  Findings found;
  for (const PeerFacts& peer : facts.peers) {
    if (peer.port.ok())
      found.push_back(Ok("daemon port", absl::StrCat(peer.node, " takes connections at ", peer.address)));
    else
      found.push_back(Fail("daemon port", absl::StrCat(peer.node, " at ", peer.address, ": ", peer.port.message()),
                           "is r2ccd up there, and does a firewall let the port of `listen` (TCP 7460) through?"));
  }
  for (const PairFacts& pair : facts.pairs) {
    const auto rail = std::find_if(facts.rails.begin(), facts.rails.end(), [&](const RailFacts& one) { return one.nic == pair.nic; });
    CheckRoute(pair, rail == facts.rails.end() ? nullptr : &*rail, &found);
    CheckReach(pair, &found);
  }
  if (facts.peers.empty() && facts.daemon.connection.ok())
    found.push_back(Unchecked("paths", "this daemon knows no other node that is up"));
  return found;
}

}  // namespace r2cc::client
