#include "netplugin/rails/arp_flux.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace r2cc::net {
namespace {

// In the machine's byte order.
uint32_t V4(const IpAddress& address) {
  in_addr parsed{};
  inet_pton(AF_INET, address.text.c_str(), &parsed);
  return ntohl(parsed.s_addr);
}

std::string Text(uint32_t v4) {
  const in_addr address{htonl(v4)};
  char text[INET_ADDRSTRLEN] = "";
  inet_ntop(AF_INET, &address, text, sizeof(text));
  return text;
}

uint32_t MaskOf(int prefix_bits) { return ~uint32_t{0} << (32 - prefix_bits); }

// Network and length; nothing for a rail that shares none.
using Network = std::pair<uint32_t, int>;
std::optional<Network> NetworkOf(const Rail& rail) {
  const int bits = rail.address.prefix_bits;
  const bool v4 = rail.address.storage.ss_family == AF_INET;
  if (!v4 || rail.ifindex == 0 || rail.any_route || bits < 1 || bits > 31) return std::nullopt;
  return Network{V4(rail.address) & MaskOf(bits), bits};
}

// An address that may be another node's.
std::string Neighbour(const Network& network, const std::vector<Rail*>& own) {
  for (uint32_t host = 1;; ++host) {
    const std::string address = Text(network.first | (host & ~MaskOf(network.second)));
    if (std::none_of(own.begin(), own.end(), [&](const Rail* rail) { return rail->address.text == address; })) return address;
  }
}

void Settle(HostNetwork& host, const Network& network, const std::vector<Rail*>& rails, std::vector<std::string>* warnings) {
  std::set<int> interfaces;
  for (const Rail* const rail : rails) interfaces.insert(rail->ifindex);
  const bool flux = std::any_of(rails.begin(), rails.end(), [&](const Rail* rail) { return host.AnswersForOthers(rail->interface); });
  if (interfaces.size() < 2 || !flux) return;
  const std::string neighbour = Neighbour(network, rails);
  const auto leaves_by_itself = [&](const Rail* rail) { return host.RouteInterface(rail->address, neighbour) == rail->ifindex; };
  for (Rail* const rail : rails) rail->any_route = leaves_by_itself(rail);
  const auto used = std::find_if(rails.begin(), rails.end(), [](const Rail* rail) { return rail->any_route; });
  Rail* const first = used == rails.end() ? rails.front() : *used;
  first->any_route = true;
  std::string unused;
  const Rail* example = nullptr;
  for (Rail* const rail : rails) {
    if (rail->any_route) continue;
    rail->unused = true;
    rail->up = false;
    example = rail;
    unused += (unused.empty() ? "" : ", ") + rail->name;
  }
  if (example == nullptr) return;
  const std::string shared = Text(network.first) + "/" + std::to_string(network.second);
  warnings->push_back("R2CC: not used: " + unused + ", in one network (" + shared + ") with " + first->name +
                      ", while each interface answers ARP for the others' addresses and their packets leave by another: set " +
                      kArpSysctls + " and a routing table for each, as \"ip rule add from " + example->address.text +
                      " table N; ip route add " + shared + " dev " + example->interface + " table N\"");
}

}  // namespace

void SettleArpFlux(HostNetwork& host, std::vector<Rail>* rails, std::vector<std::string>* warnings) {
  std::map<Network, std::vector<Rail*>> by_network;
  for (Rail& rail : *rails)
    if (const auto network = NetworkOf(rail)) by_network[*network].push_back(&rail);
  for (const auto& [network, sharing] : by_network)
    if (sharing.size() > 1) Settle(host, network, sharing, warnings);
}

}  // namespace r2cc::net
