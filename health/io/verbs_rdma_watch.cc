#include "health/io/verbs_rdma_watch.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>
#include <utility>

#include "base/log.h"

namespace r2cc::health {
namespace {

using verbs::AsyncEvent;
using verbs::AsyncKind;
using verbs::ContextId;
using verbs::DeviceInfo;
using verbs::DeviceLimits;
using verbs::Verbs;

// With one call. A port that flaps is not to keep the core from everything else: what is left makes the descriptor readable again.
constexpr int kEventsMost = 16;

bool MeansGone(int error) { return error == EIO || error == ENODEV; }

bool IsOfPort(AsyncKind kind) {
  switch (kind) {
    case AsyncKind::kPortActive:
    case AsyncKind::kPortError:
    case AsyncKind::kGidChange:
    case AsyncKind::kLidChange:
    case AsyncKind::kPkeyChange: return true;
    default: return false;
  }
}

}  // namespace

VerbsRdmaWatch::~VerbsRdmaWatch() {
  *alive_ = false;
  seams_.core->Cancel(timer_);
  for (const auto& [name, device] : devices_) Close(device);
}

void VerbsRdmaWatch::Start(RdmaHandler handler) {
  handler_ = std::move(handler);
  Sweep();
}

void VerbsRdmaWatch::Sweep() {
  timer_ = seams_.core->RunAfter(seams_.core->UntilNext(kRdmaSweepInterval), [this] { Sweep(); });
  // A device that dies may hold up the one before for long.
  if (std::exchange(sweeping_, true)) return;
  std::set<std::string> known;
  for (const auto& [name, device] : devices_) known.insert(name);
  seams_.blocking->Post([this, alive = alive_, verbs = seams_.verbs, core = seams_.core, known = std::move(known)] {
    Found found;
    std::vector<DeviceInfo> all;
    found.error = verbs->Devices(&all);
    for (const DeviceInfo& info : all) {
      found.listed.push_back(info.name);
      if (known.contains(info.name)) continue;
      Device device{.info = info};
      int error = verbs->Open(info.name, &device.context, &device.async_fd);
      DeviceLimits limits;
      if (error == 0) {
        error = verbs->QueryDevice(device.context, &limits);
        if (error != 0) verbs->Close(device.context);
      }
      device.ports = limits.ports;
      if (error == 0)
        found.opened.push_back(device);
      else
        found.errors[info.name] = error;
    }
    core->Post([this, alive, found = std::move(found)] {
      if (*alive) OnFound(found);
    });
  });
}

void VerbsRdmaWatch::OnFound(const Found& found) {
  sweeping_ = false;
  if (found.error == 0) {
    std::vector<std::string> gone;
    for (const auto& [name, device] : devices_)
      if (std::count(found.listed.begin(), found.listed.end(), name) == 0) gone.push_back(name);
    for (const std::string& name : gone) Lose(name, "the kernel no longer lists it");
  }
  for (const auto& [name, error] : found.errors)
    if (std::exchange(refused_[name], error) != error)
      LogInfo("an RDMA device is not watched", {{"device", name}, {"reason", std::strerror(error)}});
  for (const Device& device : found.opened) {
    const std::string& name = device.info.name;
    const auto status = seams_.watch_fd(device.async_fd, [this, name, context = device.context] { ReadEvents(name, context); });
    if (!status.ok()) {
      LogInfo("an RDMA device is not watched", {{"device", name}, {"reason", std::string(status.message())}});
      seams_.blocking->Post([verbs = seams_.verbs, context = device.context] { verbs->Close(context); });
      continue;
    }
    LogInfo("an RDMA device is watched", {{"device", name}, {"driver", device.info.driver}});
    refused_.erase(name);
    devices_[name] = device;
  }
  for (const auto& [name, device] : devices_) Ask(name);
}

VerbsRdmaWatch::Device* VerbsRdmaWatch::Live(const std::string& name, ContextId context) {
  const auto found = devices_.find(name);
  return found != devices_.end() && found->second.context == context ? &found->second : nullptr;
}

void VerbsRdmaWatch::Ask(const std::string& name) {
  Device& device = devices_.at(name);
  if (std::exchange(device.asked, true)) {
    device.again = true;
    return;
  }
  seams_.blocking->Post(
      [this, alive = alive_, verbs = seams_.verbs, core = seams_.core, info = device.info, context = device.context, count = device.ports] {
        int error = 0;
        std::vector<RdmaPort> ports;
        for (uint8_t number = 1; number <= count && error == 0; ++number) {
          RdmaPort port;
          error = verbs->QueryPort(context, number, &port.info);
          port.facts = ReadPortFacts(verbs, context, info, number);
          ports.push_back(std::move(port));
        }
        core->Post([this, alive, name = info.name, context, error, ports = std::move(ports)] {
          if (*alive) OnAnswer(name, context, error, ports);
        });
      });
}

void VerbsRdmaWatch::OnAnswer(const std::string& name, ContextId context, int error, const std::vector<RdmaPort>& ports) {
  Device* const device = Live(name, context);
  if (device == nullptr) return;
  device->asked = false;
  if (MeansGone(error)) return Lose(name, "it cannot be asked any more");
  const bool again = std::exchange(device->again, false);
  if (error == 0) handler_.on_ports(name, ports);
  if (again) Ask(name);
}

void VerbsRdmaWatch::ReadEvents(const std::string& name, ContextId context) {
  bool fatal = false;
  bool changed = false;
  for (int i = 0; i < kEventsMost && !fatal && Live(name, context) != nullptr; ++i) {
    AsyncEvent event;
    const int error = seams_.verbs->ReadAsyncEvent(context, &event);
    if (error == EAGAIN) break;
    if (error != 0) {
      fatal = true;
      break;
    }
    seams_.verbs->AckAsyncEvent(context, event);
    fatal = event.kind == AsyncKind::kDeviceFatal;
    if (!fatal && !IsOfPort(event.kind)) continue;
    changed = true;
    handler_.on_event(name, event.port, event.kind);
  }
  if (Live(name, context) == nullptr) return;
  if (fatal) return Lose(name, "it has died");
  if (changed) Ask(name);
}

void VerbsRdmaWatch::Lose(const std::string& name, const std::string& why) {
  LogInfo("an RDMA device is gone", {{"device", name}, {"reason", why}});
  Close(devices_.at(name));
  devices_.erase(name);
  handler_.on_ports(name, {});
}

void VerbsRdmaWatch::Close(const Device& device) {
  seams_.unwatch_fd(device.async_fd);
  // After the queries that are under way.
  seams_.blocking->Post([verbs = seams_.verbs, context = device.context] { verbs->Close(context); });
}

}  // namespace r2cc::health
