#include "client/parts/parts.h"

#include <google/protobuf/struct.pb.h>
#include <google/protobuf/util/json_util.h>

#include <algorithm>
#include <cstdint>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace r2cc::client {
namespace {

using google::protobuf::ListValue;
using google::protobuf::Struct;

constexpr size_t kTextBytesMax = 64;

// Names of switches and of vendors are ASCII.
std::string Clean(std::string text) {
  text.resize(std::min(text.size(), kTextBytesMax));
  for (char& letter : text)
    if (!absl::ascii_isprint(static_cast<unsigned char>(letter))) letter = '?';
  return text;
}

// json0 has a list of everything, also where there is but one.
const ListValue& ListIn(const Struct& object, const std::string& name) {
  const auto found = object.fields().find(name);
  return found == object.fields().end() ? ListValue::default_instance() : found->second.list_value();
}
const Struct& FirstIn(const Struct& object, const std::string& name) {
  const ListValue& list = ListIn(object, name);
  return list.values().empty() ? Struct::default_instance() : list.values(0).struct_value();
}
std::string TextIn(const Struct& object, const std::string& name) {
  const auto found = object.fields().find(name);
  return found == object.fields().end() ? "" : Clean(found->second.string_value());
}

void DropReason(absl::string_view what, v1::NicInventory* inventory) {
  auto* const missing = inventory->mutable_missing();
  missing->erase(std::remove_if(missing->begin(), missing->end(), [&](const std::string& line) { return absl::StartsWith(line, what); }),
                 missing->end());
}

}  // namespace

std::map<std::string, Neighbour> ParseNeighbours(const std::string& json) {
  std::map<std::string, Neighbour> neighbours;
  Struct all;
  if (!google::protobuf::util::JsonStringToMessage(json, &all).ok()) return neighbours;
  for (const auto& lldp : ListIn(all, "lldp").values())
    for (const auto& value : ListIn(lldp.struct_value(), "interface").values()) {
      const Struct& one = value.struct_value();
      const Struct& chassis = FirstIn(one, "chassis");
      const Struct& port = FirstIn(one, "port");
      Neighbour neighbour = {TextIn(FirstIn(chassis, "name"), "value"), TextIn(FirstIn(port, "id"), "value")};
      if (neighbour.name.empty()) neighbour.name = TextIn(FirstIn(chassis, "id"), "value");
      // A port that calls itself by its MAC has its name in the description.
      const std::string description = TextIn(FirstIn(port, "descr"), "value");
      if (TextIn(FirstIn(port, "id"), "type") == "mac" && !description.empty()) neighbour.port = description;
      const std::string interface = TextIn(one, "name");
      // The first one: lldpd lists the nearest bridge first.
      if (!interface.empty() && !neighbour.port.empty()) neighbours.emplace(interface, std::move(neighbour));
    }
  return neighbours;
}

std::string SerialIn(const std::string& vital_data) {
  // Large resources: a tag, two bytes of length, and for VPD-R (0x90) fields of two letters, a byte of length, and their text.
  const auto byte = [&](size_t at) { return static_cast<uint8_t>(vital_data[at]); };
  for (size_t at = 0; at + 3 <= vital_data.size() && (byte(at) & 0x80) != 0;) {
    const size_t begin = at + 3;
    const size_t end = begin + byte(at + 1) + 256u * byte(at + 2);
    if (end > vital_data.size()) return "";
    for (size_t field = begin; byte(at) == 0x90 && field + 3 <= end;) {
      const size_t text = field + 3, size = byte(field + 2);
      if (text + size > end) return "";
      if (vital_data.compare(field, 2, "SN") == 0) {
        std::string serial = Clean(vital_data.substr(text, size));
        serial.erase(serial.find_last_not_of(" .") + 1);
        return serial;
      }
      field = text + size;
    }
    at = end;
  }
  return "";
}

void Parts::AddTo(const v1::NicView& nic, v1::NicInventory* inventory) {
  if (const std::string interface = nic.mac().empty() ? "" : reader_->InterfaceOf(nic.mac()); !interface.empty()) {
    if (!neighbours_.has_value()) {
      const absl::StatusOr<std::string> json = reader_->Neighbours();
      neighbours_ = json.ok() ? ParseNeighbours(*json) : std::map<std::string, Neighbour>();
    }
    if (const auto found = neighbours_->find(interface); found != neighbours_->end()) {
      inventory->set_switch_name(found->second.name);
      inventory->set_switch_port(found->second.port);
      DropReason("switch port: ", inventory);
    }
  }
  if (nic.pci().empty()) return;
  const absl::StatusOr<std::string> vital_data = reader_->VitalData(nic.pci());
  if (!vital_data.ok()) return;
  if (std::string serial = SerialIn(*vital_data); !serial.empty()) {
    inventory->set_serial(std::move(serial));
    DropReason("serial: ", inventory);
  }
}

}  // namespace r2cc::client
