#include "health/probe/sysfs_probe.h"

#include <utility>

namespace r2cc::health {
namespace {

Evidence About(const std::string& node, const std::string& nic, EvidenceKind kind, uint64_t value, Nanos now) {
  Evidence evidence;
  evidence.observer = node;
  evidence.subject = {node, nic};
  evidence.kind = kind;
  evidence.value = value > INT64_MAX ? INT64_MAX : static_cast<int64_t>(value);
  evidence.when = now;
  return evidence;
}

// A counter that went back counts from zero: its device was replaced.
uint64_t Growth(uint64_t before, uint64_t after) { return after >= before ? after - before : after; }

// Errors per second between the samples, and in detail the counter that grew most.
Evidence ErrorRate(const std::string& node, const std::string& nic, const PortFacts& before, const PortFacts& after, Nanos elapsed,
                   Nanos now) {
  uint64_t most = 0;
  std::string worst;
  for (const auto& [name, count] : after.errors) {
    const auto old = before.errors.find(name);
    if (old == before.errors.end()) continue;  // a new counter has no past
    const uint64_t growth = Growth(old->second, count);
    if (growth > most) {
      most = growth;
      worst = name;
    }
  }
  // One broken frame grows several counters (rx_errors sums up others): the largest growth counts, not the sum.
  const double per_second = static_cast<double>(most) * kNanosPerSecond / static_cast<double>(elapsed);
  Evidence evidence = About(node, nic, EvidenceKind::kErrors, per_second < 1e18 ? static_cast<uint64_t>(per_second) : INT64_MAX, now);
  if (evidence.value > 0) evidence.detail = worst;
  return evidence;
}

}  // namespace

std::vector<Evidence> JudgePort(const std::string& node, const std::string& nic, const PortFacts& before, const PortFacts& after,
                                Nanos elapsed, Nanos now) {
  std::vector<Evidence> evidence;
  if (after.rate_bits_per_s != 0) evidence.push_back(About(node, nic, EvidenceKind::kRate, after.rate_bits_per_s, now));
  if (elapsed <= 0) return evidence;
  if (!after.errors.empty()) evidence.push_back(ErrorRate(node, nic, before, after, elapsed, now));
  if (before.carrier_changes.has_value() && after.carrier_changes.has_value()) {
    const uint64_t flips = Growth(*before.carrier_changes, *after.carrier_changes);
    if (flips > 0) evidence.push_back(About(node, nic, EvidenceKind::kCarrierFlips, flips, now));
  }
  return evidence;
}

SysfsProbe::SysfsProbe(std::string node, const std::vector<NicIdentity>& nics, const Sysfs* sysfs, Executor* executor, EvidenceSink sink,
                       FactSink on_fact, Nanos interval)
    : node_(std::move(node)),
      sysfs_(sysfs),
      executor_(executor),
      sink_(std::move(sink)),
      on_fact_(std::move(on_fact)),
      interval_(interval) {
  for (const NicIdentity& nic : nics)
    if (!nic.interface.empty()) ports_.emplace(nic.name, Port{.interface = nic.interface});
}

SysfsProbe::~SysfsProbe() { executor_->Cancel(timer_); }

void SysfsProbe::Start() { Sample(); }

void SysfsProbe::SetIfindex(const std::string& nic, int ifindex) {
  const auto port = ports_.find(nic);
  if (port == ports_.end() || port->second.ifindex == ifindex) return;
  port->second.ifindex = ifindex;
  port->second.sampled = false;  // another interface: its counters have nothing to do with the old ones
}

void SysfsProbe::Sample() {
  timer_ = executor_->RunAfter(interval_, [this] { Sample(); });
  for (auto& [nic, port] : ports_) {
    auto facts = ReadPortFacts(*sysfs_, port.interface);
    const bool usable = facts.ok() && (port.ifindex == 0 || facts->ifindex == port.ifindex);
    if (!usable) {
      port.sampled = false;
      continue;
    }
    const Nanos now = executor_->Now();
    if (on_fact_) on_fact_(nic, *facts);
    const bool same = port.sampled && port.last.ifindex == facts->ifindex;
    for (const Evidence& evidence : JudgePort(node_, nic, same ? port.last : *facts, *facts, same ? now - port.last_when : 0, now))
      sink_(evidence);
    port.last = *std::move(facts);
    port.last_when = now;
    port.sampled = true;
  }
}

}  // namespace r2cc::health
