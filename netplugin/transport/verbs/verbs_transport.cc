#include "netplugin/transport/verbs/verbs_transport.h"

#include <sys/epoll.h>

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include "netplugin/transport/verbs/verbs_port.h"

namespace r2cc::net::verbs {
namespace {

// A device that is gone is looked for so often. It takes a driver seconds to come back.
constexpr Nanos kLostEvery = kNanosPerSecond;
// The end waits so long for the links of a device to be closed. Fences take some milliseconds; one that cannot be proved goes on for ever,
// and the kernel ends its queue pair with the process.
constexpr Nanos kClosingMost = kNanosPerSecond;

}  // namespace

VerbsTransport::VerbsTransport(const Options& options)
    : options_(options), gpu_paths_({options.gpu, options.clock, options.random, options.pause}) {
  shared_.clock = options.clock;
  shared_.random = options.random;
  shared_.log = options.log;
  shared_.keys_revoked = options.keys_revoked;
  shared_.adaptive_routing = options.adaptive_routing;
}

VerbsTransport::~VerbsTransport() {
  for (auto& [name, opened] : devices_) {
    Unwatch(&opened);
    if (opened.device != nullptr) opened.device->control()->Stop();
  }
}

void VerbsTransport::Watch(Opened* opened) {
  opened->async_fd = opened->device->async_fd();
  if (options_.poller == nullptr || opened->async_fd < 0) return;
  opened->token = options_.poller->Add(opened->async_fd, EPOLLIN, [this, device = std::weak_ptr(opened->device)](uint32_t) {
    if (const auto alive = device.lock(); alive != nullptr) ReadEvents(alive);
  });
}

void VerbsTransport::Unwatch(Opened* opened) {
  if (opened->token != 0) options_.poller->Remove(std::exchange(opened->token, 0), opened->async_fd);
}

std::shared_ptr<Device> VerbsTransport::DeviceNamed(const std::string& name, std::string* error) {
  Opened& opened = devices_[name];
  if (opened.device != nullptr && !opened.device->lost()) return opened.device;
  std::vector<DeviceInfo> all;
  options_.verbs->Devices(&all);
  for (const DeviceInfo& info : all) {
    if (info.name != name) continue;
    const auto device = Device::Open(options_.verbs, info, options_.make_control(name), error);
    if (device == nullptr) return nullptr;
    if (const int failed = device->TryRegister(); failed != 0) {
      *error = "R2CC: the RDMA device " + name + " registers no memory: " + std::strerror(failed);
      if (!ToldOfMemoryLimit(failed)) *error += LockedMemoryAdvice(failed);
      return nullptr;
    }
    Unwatch(&opened);
    opened.device = device;
    Watch(&opened);
    if (started_) device->control()->Start();
    return device;
  }
  *error = "R2CC: there is no RDMA device " + name;
  return nullptr;
}

bool VerbsTransport::ToldOfMemoryLimit(int failed) { return failed == ENOMEM && memory_limit_told_.exchange(true); }

bool VerbsTransport::Has(const Rail& rail) {
  uint8_t port = 1;
  return !options_.device_of(rail, &port).empty();
}

bool VerbsTransport::Listen(const Rail& rail, Endpoint* own, std::string* error) {
  own->clear();
  VerbsShared::RailDevice found;
  const std::string name = options_.device_of(rail, &found.port);
  if (name.empty()) {
    *error = "R2CC: rail " + rail.name + " has no RDMA device";
    return false;
  }
  const auto device = DeviceNamed(name, error);
  if (device == nullptr) return false;
  found.gid = {.interface_index = static_cast<uint32_t>(rail.ifindex), .address = rail.address};
  PortInfo port;
  GidEntry gid;
  int failed = device->LookAt(found.port, found.gid, &port, &gid);
  if (failed != 0 && failed != ENETUNREACH) {
    *error = "R2CC: cannot look at port " + std::to_string(found.port) + " of the RDMA device " + name + ": " + std::strerror(failed);
    return false;
  }
  const bool has_gid = failed == 0;
  bool anew = false;
  found.domain = DomainOf(static_cast<uint16_t>(rail.index), device, &failed);
  if (found.domain == nullptr) {
    *error = "R2CC: no protection domain of the RDMA device " + name + ": " + std::strerror(failed);
    return false;
  }
  // Without a GID the rail is there and cannot be reached.
  if (has_gid) *own = Encode(RailAddress{port.link_layer, gid.gid, port.lid});
  {
    const std::lock_guard lock(shared_.mutex);
    const auto index = static_cast<size_t>(rail.index);
    if (shared_.rails.size() <= index) shared_.rails.resize(index + 1);
    VerbsShared::RailDevice& now = shared_.rails[index];
    // A fence may have given it another domain meanwhile.
    if (now.device() == device.get()) found.domain = now.domain;
    anew = now.device() != nullptr && now.device() != device.get();
    now = found;
  }
  // What was registered there is gone.
  if (anew)
    device->control()->Submit(JobKind::kOpen, [this, index = static_cast<uint16_t>(rail.index)](Nanos) -> std::optional<Nanos> {
      options_.keys_revoked(index);
      return std::nullopt;
    });
  return true;
}

std::shared_ptr<Domain> VerbsTransport::DomainOf(uint16_t rail, const std::shared_ptr<Device>& device, int* failed) {
  const auto known = shared_.Of(rail);
  return known.domain != nullptr && known.domain->device() == device ? known.domain : Domain::Allocate(device, failed);
}

std::string VerbsTransport::NameOf(uint16_t rail) {
  const auto found = shared_.Of(rail);
  if (found.device() == nullptr) return "";
  return found.device()->info().name + (found.device()->limits().ports > 1 ? ":" + std::to_string(found.port) : "");
}

bool VerbsTransport::Proved(const VerbsShared::RailDevice& rail, int gpu, MemoryKind kind, std::string* error) {
  return gpu_paths_.Proved(rail.domain->device(), {rail.port, rail.gid, options_.random()}, gpu, kind, error);
}

bool VerbsTransport::Takes(MemoryKind kind, uint16_t rail) {
  const auto found = shared_.Of(rail);
  if (found.device() == nullptr || found.device()->lost()) return false;
  if (kind == MemoryKind::kHost) return true;
  if (options_.gpu == nullptr || (kind == MemoryKind::kDmaBuf && !found.device()->TakesDmaBuf())) return false;
  const std::vector<int> gpus = options_.gpu->InUse();
  for (const int gpu : gpus) {
    std::string error;
    if (Proved(found, gpu, kind, &error)) continue;
    options_.log(LogLevel::kInfo, error);
    return false;
  }
  return !gpus.empty();
}

bool VerbsTransport::Register(const Memory& memory, uint16_t rail, Endpoint* key, std::string* error) {
  const auto found = shared_.Of(rail);
  if (found.device() == nullptr || found.device()->lost()) {
    *error = "R2CC: rail " + std::to_string(rail) + " has no RDMA device now";
    return false;
  }
  Memory as = memory;
  if (memory.kind != MemoryKind::kHost) {
    if (options_.gpu == nullptr) {
      *error = "R2CC: memory of a GPU cannot be registered: there is no CUDA driver";
      return false;
    }
    // Where the dma-buf does not do, peer memory may.
    if (as.kind == MemoryKind::kDmaBuf && !Proved(found, memory.gpu, MemoryKind::kDmaBuf, error)) as.kind = MemoryKind::kCuda;
    if (as.kind == MemoryKind::kCuda && !Proved(found, memory.gpu, MemoryKind::kCuda, error)) return false;
  }
  uint32_t remote_key = 0;
  if (const int failed = shared_.regions.Register(found.domain, rail, as, &remote_key, error); failed != 0) {
    // The message that needs it waits for another rail, if there is one.
    shared_.log(ToldOfMemoryLimit(failed) ? LogLevel::kInfo : LogLevel::kWarn, *error);
    return false;
  }
  *key = EncodeKey(remote_key);
  return true;
}

std::unique_ptr<Port> VerbsTransport::NewPort(const SessionKey& key, const PeerState* state) {
  return std::make_unique<VerbsPort>(&shared_, key, state);
}

void VerbsTransport::StartThreads(int) {
  started_ = true;
  for (const auto& [name, opened] : devices_)
    if (opened.device != nullptr) opened.device->control()->Start();
}

void VerbsTransport::StopThreads() {
  for (const auto& [name, opened] : devices_) {
    if (opened.device == nullptr) continue;
    opened.device->control()->FinishClosing(kClosingMost);
    opened.device->control()->Stop();
  }
}

void VerbsTransport::ReadEvents(const std::shared_ptr<Device>& device) {
  // That a rail is up again the link monitor tells.
  std::vector<uint8_t> ports;
  device->ReadEvents([&](uint8_t port) { ports.push_back(port); });
  for (const uint8_t port : ports)
    for (uint16_t rail = 0; rail < shared_.rails.size(); ++rail)
      if (const auto found = shared_.Of(rail); found.device() == device.get() && found.port == port) options_.rail_changed(rail);
}

void VerbsTransport::TryLost(Nanos now) {
  if (now - tried_lost_ < kLostEvery) return;
  tried_lost_ = now;
  for (uint16_t rail = 0; rail < shared_.rails.size(); ++rail)
    if (const auto found = shared_.Of(rail); found.device() != nullptr && found.device()->lost()) options_.rail_changed(rail);
}

void VerbsTransport::Tick(Nanos now) {
  for (const auto& [name, opened] : devices_)
    if (opened.device != nullptr && opened.token == 0) ReadEvents(std::shared_ptr(opened.device));
  TryLost(now);
}

}  // namespace r2cc::net::verbs
