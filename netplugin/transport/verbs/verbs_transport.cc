#include "netplugin/transport/verbs/verbs_transport.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "netplugin/flow/tuning.h"
#include "netplugin/transport/verbs/verbs_port.h"

namespace r2cc::net::verbs {
VerbsTransport::VerbsTransport(const Options& options)
    : options_(options), gpu_paths_({options.gpu, options.clock, options.random, options.pause}) {
  shared_.clock = options.clock;
  shared_.random = options.random;
  shared_.log = options.log;
  shared_.keys_revoked = options.keys_revoked;
  shared_.site = options.site;
}

VerbsTransport::~VerbsTransport() {
  for (auto& [name, watched] : watched_) {
    Unwatch(&watched);
    watched.device->control()->Stop();
  }
  for (const auto& device : replaced_) device->control()->Stop();
}

// ---- devices ----

void VerbsTransport::Watch(const std::shared_ptr<Device>& device) {
  Watched& watched = watched_[device->info().name];
  if (watched.device == device) return;
  Unwatch(&watched);
  if (watched.device != nullptr) replaced_.push_back(std::move(watched.device));
  watched = {device, 0, device->async_fd()};
  if (options_.poller != nullptr && watched.async_fd >= 0)
    watched.token = options_.poller->Add(watched.async_fd, EPOLLIN, [this, weak = std::weak_ptr(device)](uint32_t) {
      if (const auto alive = weak.lock(); alive != nullptr) ReadEvents(alive);
    });
  if (started_) device->control()->Start();
}

void VerbsTransport::Unwatch(Watched* watched) {
  if (watched->token != 0) options_.poller->Remove(std::exchange(watched->token, 0), watched->async_fd);
}

// To close one may block: it ends in the control thread of another, and never in its own, which cannot wait for itself.
void VerbsTransport::BuryReplaced() {
  std::erase_if(replaced_, [this](std::shared_ptr<Device>& device) {
    if (device.use_count() > 1) return false;
    watched_[device->info().name].device->control()->Submit(JobKind::kClose, [held = std::move(device)](Nanos) mutable {
      held = nullptr;
      return std::optional<Nanos>();
    });
    return true;
  });
}

std::shared_ptr<Device> VerbsTransport::DeviceNamed(const std::string& name, std::string* error) {
  Slot* slot = nullptr;
  {
    const MutexLock lock(slots_mutex_);
    slot = &slots_[name];
  }
  const MutexLock opening(slot->opening);
  if (slot->device != nullptr && !slot->device->lost()) return slot->device;
  std::vector<DeviceInfo> all;
  options_.verbs->Devices(&all);
  for (const DeviceInfo& info : all) {
    if (info.name != name) continue;
    const auto device = Device::Open(options_.verbs, info, options_.make_control(name), error);
    if (device == nullptr) return nullptr;
    if (const int failed = device->TryRegister(); failed != 0) {
      *error = "R2CC: the RDMA device " + name + " registers no memory: " + std::strerror(failed);
      if (!MemoryLimitLogged(failed)) *error += LockedMemoryAdvice(failed);
      return nullptr;
    }
    slot->device = device;
    return device;
  }
  *error = "R2CC: there is no RDMA device " + name;
  return nullptr;
}

bool VerbsTransport::MemoryLimitLogged(int failed) { return failed == ENOMEM && memory_limit_logged_.exchange(true); }

bool VerbsTransport::Has(const Rail& rail) {
  uint8_t port = 1;
  return !options_.device_of(rail, &port).empty();
}

// ---- looks ----

VerbsTransport::Look VerbsTransport::LookAt(const Rail& rail) {
  Look look;
  const std::string name = options_.device_of(rail, &look.rail.port);
  if (name.empty()) {
    look.error = "R2CC: rail " + rail.name + " has no RDMA device";
    return look;
  }
  const auto device = DeviceNamed(name, &look.error);
  if (device == nullptr) return look;
  look.rail.gid = {.interface_index = static_cast<uint32_t>(rail.ifindex), .address = rail.address, .index = options_.site.gid_index};
  PortInfo port;
  GidEntry gid;
  int failed = device->LookAt(look.rail.port, look.rail.gid, &port, &gid);
  if (failed != 0 && failed != ENETUNREACH) {
    look.error =
        "R2CC: cannot look at port " + std::to_string(look.rail.port) + " of the RDMA device " + name + ": " + std::strerror(failed);
    return look;
  }
  // Without a GID the rail is there and cannot be reached.
  if (failed == 0) look.own = Encode(RailAddress{port.link_layer, gid.gid, port.lid});
  const auto known = shared_.Of(static_cast<uint16_t>(rail.index));
  look.rail.domain = known.device() == device.get() ? known.domain : Domain::Allocate(device, &failed);
  look.ok = look.rail.domain != nullptr;
  if (!look.ok) look.error = "R2CC: no protection domain of the RDMA device " + name + ": " + std::strerror(failed);
  return look;
}

void VerbsTransport::Adopt(uint16_t rail, const Look& look) {
  const std::shared_ptr<Device>& device = look.rail.domain->device();
  bool replaced = false;
  {
    const MutexLock lock(shared_.mutex);
    if (shared_.rails.size() <= rail) shared_.rails.resize(rail + size_t{1});
    VerbsShared::RailDevice& now = shared_.rails[rail];
    replaced = now.device() != nullptr && now.device() != device.get();
    // A fence may have given it another domain meanwhile.
    const auto domain = now.device() == device.get() ? now.domain : look.rail.domain;
    now = look.rail;
    now.domain = domain;
  }
  Watch(device);
  // What was registered with the one before is gone. The links that are opened from now on come after that.
  if (replaced)
    device->control()->Submit(JobKind::kOpen, [this, rail](Nanos) -> std::optional<Nanos> {
      options_.keys_revoked(rail);
      return std::nullopt;
    });
}

bool VerbsTransport::Listen(const Rail& rail, Endpoint* own, std::string* error) {
  const auto index = static_cast<uint16_t>(rail.index);
  own->clear();
  if (!started_) {
    const Look look = LookAt(rail);
    *error = look.error;
    if (!look.ok) return false;
    listened_[index] = {.rail = rail, .own = look.own};
    Adopt(index, look);
    *own = look.own;
    return true;
  }
  const auto it = listened_.find(index);
  if (it == listened_.end()) {
    *error = "R2CC: rail " + rail.name + " had no RDMA device when the process began";
    return false;
  }
  it->second.rail = rail;
  if (!std::exchange(it->second.to_announce, false)) StartLook(index);
  *own = it->second.own;
  return true;
}

void VerbsTransport::StartLook(uint16_t rail) {
  Listened& listened = listened_.at(rail);
  if (listened.looking) {
    listened.look_again = true;
    return;
  }
  listened.looking = true;
  shared_.Of(rail).device()->control()->Submit(JobKind::kOpen, [this, rail, of = listened.rail](Nanos) -> std::optional<Nanos> {
    Look look = LookAt(of);
    const MutexLock lock(looks_mutex_);
    looks_[rail] = std::move(look);
    return std::nullopt;
  });
}

void VerbsTransport::TakeLooks() {
  std::map<uint16_t, Look> looks;
  {
    const MutexLock lock(looks_mutex_);
    looks.swap(looks_);
  }
  for (const auto& [rail, look] : looks) {
    Listened& listened = listened_.at(rail);
    listened.looking = false;
    if (look.ok) {
      Adopt(rail, look);
      listened.retry.Restart();
      // Where it was is still the best guess.
      if (!look.own.empty() && look.own != listened.own) {
        listened.own = look.own;
        listened.to_announce = true;
        options_.rail_changed(rail);
      }
    } else {
      options_.log(LogLevel::kDebug, look.error);
    }
    if (std::exchange(listened.look_again, false)) StartLook(rail);
  }
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
    shared_.log(MemoryLimitLogged(failed) ? LogLevel::kInfo : LogLevel::kWarn, *error);
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
  for (const auto& [name, watched] : watched_) watched.device->control()->Start();
}

void VerbsTransport::StopThreads() {
  std::vector<std::shared_ptr<Device>> all = replaced_;
  for (const auto& [name, watched] : watched_) all.push_back(watched.device);
  for (const auto& device : all) {
    device->control()->FinishClosing(tuning::kClosingMost);
    device->control()->Stop();
  }
}

// A GID table that is rebuilt gives an event of each entry: one look at a port is enough. That a rail is up again the link monitor tells.
void VerbsTransport::ReadEvents(const std::shared_ptr<Device>& device) {
  std::set<uint8_t> ports;
  device->ReadEvents([&](uint8_t port) { ports.insert(port); });
  for (const uint8_t port : ports)
    for (const auto& [rail, listened] : listened_)
      if (const auto found = shared_.Of(rail); found.device() == device.get() && found.port == port) StartLook(rail);
}

void VerbsTransport::TryLost(Nanos now) {
  for (auto& [rail, listened] : listened_) {
    if (!shared_.Of(rail).device()->lost() || !listened.retry.IsDue(now)) continue;
    listened.retry.Failed(now);
    StartLook(rail);
  }
}

void VerbsTransport::Tick(Nanos now) {
  for (const auto& [name, watched] : watched_)
    if (watched.token == 0) ReadEvents(std::shared_ptr(watched.device));
  TakeLooks();
  TryLost(now);
  BuryReplaced();
}

}  // namespace r2cc::net::verbs
