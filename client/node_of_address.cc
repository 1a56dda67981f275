#include "client/node_of_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <algorithm>
#include <iterator>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace r2cc::client {
namespace {

constexpr size_t kNodesShown = 16;

// One text for each address: "fd00:0::1" is "fd00::1".
std::string Canonical(const std::string& address) {
  unsigned char bytes[sizeof(in6_addr)];
  char text[INET6_ADDRSTRLEN];
  for (const int family : {AF_INET, AF_INET6})
    if (inet_pton(family, address.c_str(), bytes) == 1 && inet_ntop(family, bytes, text, sizeof(text)) != nullptr) return text;
  return "";
}

// The host of "HOST:PORT" or "[HOST]:PORT".
std::string Host(const std::string& host_port) {
  const size_t colon = host_port.rfind(':');
  const std::string host = host_port.substr(0, colon);
  const bool bracketed = host.size() > 2 && host.front() == '[' && host.back() == ']';
  return Canonical(bracketed ? host.substr(1, host.size() - 2) : host);
}

}  // namespace

bool IsAddress(const std::string& text) { return !Canonical(text).empty(); }

absl::StatusOr<std::string> NodeOfAddress(const v1::StatusReply& status, const std::string& address) {
  const std::string wanted = Canonical(address);
  std::set<std::string> known;
  for (const v1::NodeView& node : status.nodes()) {
    known.insert(node.node());
    if (Host(node.peer_address()) == wanted) return node.node();
    for (const v1::NicView& nic : node.nics())
      if (Canonical(nic.address()) == wanted) return node.node();
  }
  for (const v1::PeerStatus& peer : status.peers()) {
    known.insert(peer.node());
    if (Host(peer.address()) == wanted) return peer.node();
  }
  std::string nodes = absl::StrJoin(known.begin(), std::next(known.begin(), static_cast<long>(std::min(known.size(), kNodesShown))), ", ");
  if (known.size() > kNodesShown) absl::StrAppend(&nodes, ", ...");
  return absl::NotFoundError(absl::StrCat("r2ccd knows no node with the address ", address, ": name the node itself, one of ", nodes,
                                          "; `r2ccctl status` shows them"));
}

}  // namespace r2cc::client
