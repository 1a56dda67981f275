// Chooses the transport that joins two rails. Pure.
#ifndef R2CC_NETPLUGIN_LINK_TRANSPORT_CHOICE_H_
#define R2CC_NETPLUGIN_LINK_TRANSPORT_CHOICE_H_

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "netplugin/link/frame.h"

namespace r2cc::net {

// A set of transports, one bit each.
using TransportSet = uint8_t;
constexpr TransportSet SetOf(TransportKind kind) { return static_cast<TransportSet>(1u << static_cast<unsigned>(kind)); }
inline TransportSet TransportsOf(const RailInfo& rail) {
  TransportSet all = 0;
  for (const RailEndpoint& endpoint : rail.endpoints) all = static_cast<TransportSet>(all | SetOf(endpoint.transport));
  return all;
}

// Of the transports that both ends have, chooses the one that costs the processors least: verbs, then TCP. Nothing if they have none in
// common: the rails cannot be joined.
constexpr std::optional<TransportKind> ChooseTransport(TransportSet local, TransportSet remote) {
  for (const TransportKind kind : {TransportKind::kVerbs, TransportKind::kTcp})
    if (local & remote & SetOf(kind)) return kind;
  return std::nullopt;
}

// Verbs joins every pair of rails.
inline bool AllByVerbs(std::span<const RailInfo> own, std::span<const RailInfo> peers) {
  const auto have = [](std::span<const RailInfo> rails) {
    return std::all_of(rails.begin(), rails.end(), [](const RailInfo& rail) { return TransportsOf(rail) & SetOf(TransportKind::kVerbs); });
  };
  return have(own) && have(peers);
}

// A line for the log if no rail of ours can be joined to any of the peer's, because their transports differ; empty if some can.
inline std::string NothingInCommon(std::span<const RailInfo> own, std::span<const RailInfo> peers, const std::string& peer) {
  const auto all_of = [](std::span<const RailInfo> rails) {
    TransportSet all = 0;
    for (const RailInfo& rail : rails) all = static_cast<TransportSet>(all | TransportsOf(rail));
    return all;
  };
  const auto words = [](TransportSet kinds) { return kinds & SetOf(TransportKind::kVerbs) ? "RDMA" : "TCP"; };
  const TransportSet ours = all_of(own), theirs = all_of(peers);
  if (ours == 0 || theirs == 0 || ChooseTransport(ours, theirs)) return "";
  return std::string("R2CC: no rail can reach peer ") + peer + ": its rails go by " + words(theirs) + " alone, ours by " + words(ours) +
         " alone; set R2CC_TRANSPORT to the same at both ends";
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_TRANSPORT_CHOICE_H_
