#include "netplugin/link/packet_fields.h"

#include <algorithm>
#include <utility>

namespace r2cc::net {

void PutEndpoints(const std::vector<RailEndpoint>& endpoints, PacketWriter* out) {
  out->Put(static_cast<uint8_t>(endpoints.size()));
  for (const RailEndpoint& endpoint : endpoints) {
    out->Put(static_cast<uint8_t>(endpoint.transport));
    out->Put(endpoint.bytes);
  }
}

bool GetEndpoints(PacketReader* in, std::vector<RailEndpoint>* endpoints) {
  const auto count = in->Get<uint8_t>();
  if (count > kTransportKinds) return false;
  for (uint8_t i = 0; i < count && in->ok(); ++i) {
    RailEndpoint endpoint;
    endpoint.transport = static_cast<TransportKind>(in->Get<uint8_t>());
    if (!IsKnown(endpoint.transport)) return false;
    const auto same = [&](const RailEndpoint& other) { return other.transport == endpoint.transport; };
    if (std::any_of(endpoints->begin(), endpoints->end(), same)) return false;
    endpoint.bytes = in->GetBytes();
    endpoints->push_back(std::move(endpoint));
  }
  return in->ok();
}

}  // namespace r2cc::net
