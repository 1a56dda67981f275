// Which transport joins two rails. Pure.
#ifndef R2CC_NETPLUGIN_LINK_TRANSPORT_CHOICE_H_
#define R2CC_NETPLUGIN_LINK_TRANSPORT_CHOICE_H_

#include <cstdint>
#include <optional>

#include "netplugin/link/frame.h"

namespace r2cc::net {

// Transports, a bit each.
using TransportSet = uint8_t;
constexpr TransportSet SetOf(TransportKind kind) { return static_cast<TransportSet>(1u << static_cast<unsigned>(kind)); }
inline TransportSet TransportsOf(const RailInfo& rail) {
  TransportSet all = 0;
  for (const RailEndpoint& endpoint : rail.endpoints) all = static_cast<TransportSet>(all | SetOf(endpoint.transport));
  return all;
}

// Of those that both ends have the one that costs the processors least: verbs, then TCP. Nothing if they have none in common: the rails
// cannot be joined.
constexpr std::optional<TransportKind> ChooseTransport(TransportSet local, TransportSet remote) {
  for (const TransportKind kind : {TransportKind::kVerbs, TransportKind::kTcp})
    if (local & remote & SetOf(kind)) return kind;
  return std::nullopt;
}

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_TRANSPORT_CHOICE_H_
