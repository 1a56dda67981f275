#include "health/probe/rdma_probe.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace r2cc::health {
namespace {

using verbs::AsyncKind;
using verbs::PortState;

const char* Text(AsyncKind kind) {
  switch (kind) {
    case AsyncKind::kPortActive: return "port is active";
    case AsyncKind::kPortError: return "port error";
    case AsyncKind::kGidChange: return "its addresses (GIDs) changed";
    case AsyncKind::kLidChange: return "its LID changed";
    case AsyncKind::kPkeyChange: return "its partition keys changed";
    case AsyncKind::kDeviceFatal: return "device has died";
    default: return "event";
  }
}

const char* Text(PortState state) {
  switch (state) {
    case PortState::kDown: return "down";
    case PortState::kInitializing: return "waiting for the subnet manager";
    case PortState::kArmed: return "armed";
    case PortState::kActive: break;
  }
  return "active";
}

}  // namespace

RdmaProbe::RdmaProbe(std::string node, const std::vector<NicIdentity>& nics, RdmaWatch* watch, Executor* executor, Outputs outputs)
    : node_(std::move(node)), watch_(watch), executor_(executor), outputs_(std::move(outputs)) {
  for (const NicIdentity& nic : nics) nics_[nic.name].interface = nic.interface;
}

RdmaProbe::~RdmaProbe() {
  for (const auto& [name, nic] : nics_) {
    executor_->Cancel(nic.settling);
    executor_->Cancel(nic.report_timer);
  }
}

void RdmaProbe::Remove(const std::string& name) {
  const auto nic = nics_.find(name);
  if (nic == nics_.end()) return;
  executor_->Cancel(nic->second.settling);
  executor_->Cancel(nic->second.report_timer);
  nics_.erase(nic);
}

void RdmaProbe::Start() {
  if (watch_ == nullptr) return;
  watch_->Start({[this](const std::string& device, uint8_t port, AsyncKind kind) { OnEvent(device, port, kind); },
                 [this](const std::string& device, const std::vector<RdmaPort>& ports) { OnPorts(device, ports); }});
}

void RdmaProbe::OnFacts(const std::string& name, const SysfsPortFacts& facts) {
  const auto nic = nics_.find(name);
  if (nic == nics_.end()) return;
  nic->second.facts = facts;
  Judge(name, &nic->second);
}

void RdmaProbe::OnEvent(const std::string& device, uint8_t port, AsyncKind kind) {
  for (auto& [name, nic] : nics_) {
    if (nic.device != device || (port != 0 && nic.port != port)) continue;
    ++nic.events;
    nic.event = absl::StrCat("RDMA port ", nic.device, "/", nic.port, ": ", Text(kind));
    if (nic.report_timer == 0) ReportEvents(name, &nic);
  }
}

void RdmaProbe::OnPorts(const std::string& device, const std::vector<RdmaPort>& ports) {
  if (ports.empty())
    devices_.erase(device);
  else
    devices_[device] = ports;
  for (auto& [name, nic] : nics_) Judge(name, &nic);
}

void RdmaProbe::Match(Nic* nic) const {
  std::vector<verbs::PortFacts> ports;
  for (const auto& [name, of_device] : devices_)
    for (const RdmaPort& port : of_device) ports.push_back(port.facts);
  if (const auto found = PortOfInterface({nic->facts.ifindex, nic->interface, nic->facts.pci}, ports)) {
    nic->device = found->device;
    nic->port = found->port;
    return;
  }
  // InfiniBand without an interface, or two ports of one function: the files know which.
  for (const verbs::PortFacts& port : ports) {
    if (port.device != nic->facts.rdma_device || port.port != nic->facts.rdma_port || !port.interfaces.empty()) continue;
    nic->device = port.device;
    nic->port = port.port;
  }
}

const RdmaPort* RdmaProbe::PortOf(const Nic& nic) const {
  const auto device = devices_.find(nic.device);
  if (device == devices_.end()) return nullptr;
  for (const RdmaPort& port : device->second)
    if (port.facts.port == nic.port) return &port;
  return nullptr;
}

RdmaProbe::State RdmaProbe::StateOf(const Nic& nic) const {
  const RdmaPort* const port = PortOf(nic);
  if (port == nullptr) return {false, absl::StrCat("its RDMA device ", nic.device, " is gone")};
  if (port->info.state == PortState::kActive) return {nic.fault.empty(), nic.fault};
  return {false, absl::StrCat("its RDMA port ", nic.device, "/", nic.port, " is ", Text(port->info.state))};
}

void RdmaProbe::Judge(const std::string& name, Nic* nic) {
  Match(nic);
  if (nic->device.empty()) return;
  ReportPort(name, nic);
  ReportRate(name, nic);
  State state = StateOf(*nic);
  if (!nic->reported) {
    if (state.active) ReportState(name, nic, state);
    return;
  }
  if (state == nic->state) {
    executor_->Cancel(std::exchange(nic->settling, 0));
    return;
  }
  nic->next = std::move(state);
  if (nic->settling != 0) return;
  nic->settling = executor_->RunAfter(kRdmaSettle, [this, name, nic] {
    nic->settling = 0;
    ReportState(name, nic, nic->next);
  });
}

void RdmaProbe::ReportPort(const std::string& name, Nic* nic) {
  const RdmaPort* const port = PortOf(*nic);
  std::optional<RdmaPortName> active;
  if (port != nullptr && port->info.state == PortState::kActive) active = {nic->device, nic->port};
  if (std::exchange(nic->active, active) != active) outputs_.on_port(name, active);
}

void RdmaProbe::SetFault(const std::string& name, const std::string& why) {
  const auto nic = nics_.find(name);
  if (nic == nics_.end() || std::exchange(nic->second.fault, why) == why) return;
  Judge(name, &nic->second);
}

void RdmaProbe::ReportState(const std::string& name, Nic* nic, const State& state) {
  nic->reported = true;
  nic->state = state;
  Emit(name, state.active ? EvidenceKind::kRdmaUp : EvidenceKind::kRdmaDown, 0, state.why);
}

// If the kernel names a rate, that is the NIC's, reported by the sysfs probe.
void RdmaProbe::ReportRate(const std::string& name, Nic* nic) {
  const RdmaPort* const port = PortOf(*nic);
  if (nic->facts.rate_bits_per_s != 0) nic->rate_bits_per_s = 0;
  if (port == nullptr || port->info.state != PortState::kActive || nic->facts.rate_bits_per_s != 0) return;
  const auto rate = static_cast<uint64_t>(port->info.bits_per_second);
  if (rate == 0 || std::exchange(nic->rate_bits_per_s, rate) == rate) return;
  Emit(name, EvidenceKind::kRate, static_cast<int64_t>(rate), "");
}

void RdmaProbe::ReportEvents(const std::string& name, Nic* nic) {
  const int events = std::exchange(nic->events, 0);
  if (events == 0) return;
  Emit(name, EvidenceKind::kRdmaEvent, events, events == 1 ? nic->event : absl::StrCat(nic->event, ", the last of ", events));
  nic->report_timer = executor_->RunAfter(kRdmaEventInterval, [this, name, nic] {
    nic->report_timer = 0;
    ReportEvents(name, nic);
  });
  outputs_.look(name);
}

void RdmaProbe::Emit(const std::string& nic, EvidenceKind kind, int64_t value, const std::string& detail) {
  Evidence evidence;
  evidence.observer = node_;
  evidence.subject = {node_, nic};
  evidence.kind = kind;
  evidence.value = value;
  evidence.when = executor_->Now();
  evidence.detail = detail;
  outputs_.evidence(evidence);
}

}  // namespace r2cc::health
