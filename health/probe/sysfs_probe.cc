#include "health/probe/sysfs_probe.h"

#include <utility>

namespace r2cc::health {

PortJudge::PortJudge(std::string node, std::string nic, bool speaks_of_link)
    : node_(std::move(node)), nic_(std::move(nic)), speaks_of_link_(speaks_of_link) {}

Evidence PortJudge::About(EvidenceKind kind, uint64_t value, Nanos now) const {
  Evidence evidence;
  evidence.observer = node_;
  evidence.subject = {node_, nic_};
  evidence.kind = kind;
  evidence.value = value > INT64_MAX ? INT64_MAX : static_cast<int64_t>(value);
  evidence.when = now;
  return evidence;
}

std::vector<Evidence> PortJudge::Judge(const SysfsPortFacts& facts, Nanos now) {
  if (last_.has_value() && last_->ifindex != facts.ifindex) Forget();
  std::vector<Evidence> evidence;
  if (speaks_of_link_ && facts.rdma_active.has_value()) {
    evidence.push_back(About(*facts.rdma_active ? EvidenceKind::kLinkUp : EvidenceKind::kLinkDown, 0, now));
    if (!*facts.rdma_active) evidence.back().detail = "InfiniBand port is " + facts.rdma_state;
  }
  if (facts.rate_bits_per_s != 0) evidence.push_back(About(EvidenceKind::kRate, facts.rate_bits_per_s, now));
  const bool has_past = last_.has_value();
  const CounterWatch::Verdict counters = counters_.Sample(facts.errors, facts.packets, now);
  if (has_past && !facts.errors.empty()) {
    evidence.push_back(About(EvidenceKind::kErrors, counters.permille, now));
    evidence.back().detail = counters.text;
  }
  if (has_past && last_->carrier_changes.has_value() && facts.carrier_changes.has_value()) {
    const uint64_t flips = Growth(*last_->carrier_changes, *facts.carrier_changes);
    if (flips > 0) evidence.push_back(About(EvidenceKind::kCarrierFlips, flips, now));
  }
  last_ = facts;
  return evidence;
}

std::vector<Evidence> PortJudge::Gone(const std::string& why, Nanos now) {
  Forget();
  if (!speaks_of_link_) return {};
  Evidence evidence = About(EvidenceKind::kLinkDown, kLinkGone, now);
  evidence.detail = why;
  return {evidence};
}

void PortJudge::Forget() {
  counters_.Reset();
  last_.reset();
}

SysfsProbe::SysfsProbe(std::string node, const std::vector<NicIdentity>& nics, const Sysfs* sysfs, Executor* executor, EvidenceSink sink,
                       FactSink on_fact, Nanos interval)
    : node_(std::move(node)),
      sysfs_(sysfs),
      executor_(executor),
      sink_(std::move(sink)),
      on_fact_(std::move(on_fact)),
      interval_(interval) {
  for (const NicIdentity& nic : nics) Know(nic);
}

SysfsProbe::Port* SysfsProbe::Know(const NicIdentity& nic) {
  const bool by_guid = nic.interface.empty() && nic.port_guid != 0;
  if (nic.interface.empty() && !by_guid) return nullptr;
  return &ports_.emplace(nic.name, Port{nic.interface, nic.port_guid, 0, {node_, nic.name, by_guid}, KeptSysfs(sysfs_)}).first->second;
}

void SysfsProbe::Add(const NicIdentity& nic) {
  Port* const port = Know(nic);
  if (port != nullptr && timer_ != 0) SamplePort(nic.name, port);
}

SysfsProbe::~SysfsProbe() { executor_->Cancel(timer_); }

void SysfsProbe::Start() { Sample(); }

void SysfsProbe::Look(const std::string& nic) {
  if (const auto port = ports_.find(nic); port != ports_.end()) SamplePort(nic, &port->second);
}

void SysfsProbe::SetIfindex(const std::string& nic, int ifindex) {
  const auto port = ports_.find(nic);
  if (port == ports_.end()) return;
  port->second.files.Drop();
  if (port->second.ifindex == ifindex) return;
  port->second.ifindex = ifindex;
  port->second.judge.Forget();  // another interface: its counters have nothing to do with the old ones
}

void SysfsProbe::Sample() {
  timer_ = executor_->RunAfter(interval_, [this] { Sample(); });
  for (auto& [nic, port] : ports_) SamplePort(nic, &port);
}

void SysfsProbe::SamplePort(const std::string& nic, Port* port) {
  const auto facts =
      port->interface.empty() ? ReadInfinibandFacts(port->files, port->port_guid) : ReadSysfsPortFacts(port->files, port->interface);
  if (port->interface.empty() && absl::IsNotFound(facts.status())) {
    port->files.Drop();
    for (const Evidence& evidence : port->judge.Gone(std::string(facts.status().message()), executor_->Now())) sink_(evidence);
    return;
  }
  if (!facts.ok() || (port->ifindex != 0 && facts->ifindex != port->ifindex)) {
    port->judge.Forget();
    return;
  }
  if (on_fact_) on_fact_(nic, *facts);
  for (const Evidence& evidence : port->judge.Judge(*facts, executor_->Now())) sink_(evidence);
}

}  // namespace r2cc::health
