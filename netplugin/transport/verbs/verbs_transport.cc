#include "netplugin/transport/verbs/verbs_transport.h"

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "netplugin/transport/verbs/verbs_port.h"

namespace r2cc::net::verbs {

VerbsTransport::VerbsTransport(const Options& options) : options_(options) {
  shared_.clock = options.clock;
  shared_.random = options.random;
  shared_.log = options.log;
  shared_.keys_revoked = options.keys_revoked;
  shared_.adaptive_routing = options.adaptive_routing;
}

VerbsTransport::~VerbsTransport() {
  for (const auto& [name, device] : devices_)
    if (device != nullptr) device->control()->Stop();
}

std::shared_ptr<Device> VerbsTransport::DeviceNamed(const std::string& name, std::string* error) {
  std::shared_ptr<Device>& device = devices_[name];
  if (device != nullptr && !device->gone()) return device;
  std::vector<DeviceInfo> all;
  options_.verbs->Devices(&all);
  for (const DeviceInfo& info : all)
    if (info.name == name) return device = Device::Open(options_.verbs, info, options_.make_control(name), error);
  *error = "R2CC: there is no RDMA device " + name;
  return nullptr;
}

bool VerbsTransport::Listen(const Rail& rail, Endpoint* own, std::string* error) {
  own->clear();
  VerbsShared::RailDevice found;
  const std::string name = options_.device_of(rail, &found.port);
  if (name.empty()) {
    *error = "R2CC: rail " + rail.name + " has no RDMA device";
    return false;
  }
  found.device = DeviceNamed(name, error);
  if (found.device == nullptr) return false;
  found.gid = {.interface_index = static_cast<uint32_t>(rail.ifindex), .address = rail.address};
  PortInfo port;
  GidEntry gid;
  const int failed = found.device->LookAt(found.port, found.gid, &port, &gid);
  if (failed != 0 && failed != ENETUNREACH) {
    *error = "R2CC: cannot look at port " + std::to_string(found.port) + " of the RDMA device " + name + ": " + std::strerror(failed);
    return false;
  }
  // Without a GID the rail is there and cannot be reached.
  if (failed == 0) *own = Encode(RailAddress{port.link_layer, gid.gid, port.lid});
  const std::lock_guard lock(shared_.mutex);
  const auto index = static_cast<size_t>(rail.index);
  if (shared_.rails.size() <= index) shared_.rails.resize(index + 1);
  shared_.rails[index] = found;
  return true;
}

bool VerbsTransport::Register(const Memory& memory, uint16_t rail, Endpoint* key, std::string* error) {
  const auto found = shared_.Of(rail);
  if (found.device == nullptr || found.device->gone()) {
    *error = "R2CC: rail " + std::to_string(rail) + " has no RDMA device now";
    return false;
  }
  uint32_t remote_key = 0;
  if (!shared_.regions.Register(found.device, rail, memory, &remote_key, error)) return false;
  *key = EncodeKey(remote_key);
  return true;
}

std::unique_ptr<Port> VerbsTransport::NewPort(const SessionKey& key, const PeerState*) {
  return std::make_unique<VerbsPort>(&shared_, key);
}

void VerbsTransport::Tick(Nanos) {
  // That a rail is up again, and where, the link monitor tells: Listen() follows.
  for (const auto& [name, device] : devices_)
    if (device != nullptr) device->ReadEvents([](uint8_t) {});
}

}  // namespace r2cc::net::verbs
