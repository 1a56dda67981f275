// Encodes and decodes packets from one list of fields: passed a PutField the list writes a packet, passed a GetField it reads one.
#ifndef R2CC_NETPLUGIN_LINK_PACKET_FIELDS_H_
#define R2CC_NETPLUGIN_LINK_PACKET_FIELDS_H_

#include <concepts>
#include <string>
#include <type_traits>
#include <vector>

#include "netplugin/link/endpoint.h"
#include "netplugin/link/packet.h"

namespace r2cc::net {

void PutEndpoints(const std::vector<RailEndpoint>& endpoints, PacketWriter* out);
// False: the bytes are no valid endpoints.
bool GetEndpoints(PacketReader* in, std::vector<RailEndpoint>* endpoints);

// T, or const T.
template <typename T, typename Of>
concept Is = std::same_as<std::remove_const_t<T>, Of>;

class PutField {
 public:
  explicit PutField(PacketWriter* out) : out_(out) {}
  void operator()(bool value) { out_->Put(static_cast<uint8_t>(value)); }
  template <typename T>
  void operator()(const T& value) {
    if constexpr (std::is_enum_v<T>)
      out_->Put(static_cast<std::underlying_type_t<T>>(value));
    else
      out_->Put(value);
  }

 private:
  PacketWriter* const out_;
};

// Enumerations of one byte need an IsKnown().
class GetField {
 public:
  explicit GetField(PacketReader* in) : in_(in) {}
  void operator()(bool& value) { value = in_->Get<uint8_t>() != 0; }
  template <typename T>
  requires std::is_enum_v<T>
  void operator()(T& value) {
    static_assert(sizeof(T) == 1);
    value = static_cast<T>(in_->Get<uint8_t>());
    if (!IsKnown(value)) in_->Fail();
  }
  template <std::integral T>
  void operator()(T& value) {
    value = in_->Get<T>();
  }
  void operator()(Bytes& value) { value = in_->GetBytes(); }
  void operator()(std::string& value) { value = in_->GetString(); }

 private:
  PacketReader* const in_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_PACKET_FIELDS_H_
