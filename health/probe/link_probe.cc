#include "health/probe/link_probe.h"

#include <utility>

namespace r2cc::health {

LinkProbe::LinkProbe(std::string node, const std::vector<NicIdentity>& nics, LinkWatch* watch, Executor* executor, EvidenceSink sink,
                     FactSink on_fact)
    : node_(std::move(node)), watch_(watch), executor_(executor), sink_(std::move(sink)), on_fact_(std::move(on_fact)) {
  for (const NicIdentity& nic : nics) Know(nic);
}

bool LinkProbe::Know(const NicIdentity& nic) {
  if (!nic.interface.empty())
    nics_of_interface_.emplace(nic.interface, nic.name);
  else if (nic.port_guid == 0)
    addresses_.push_back(nic.name);
  return !nic.interface.empty();
}

void LinkProbe::Add(const NicIdentity& nic) {
  if (!Know(nic)) {
    if (nic.port_guid == 0) Report(nic.name, true, true, "");
    return;
  }
  const auto known = interfaces_.find(nic.interface);
  if (known == interfaces_.end()) return OnLink(nic.name, false, false, "no interface " + nic.interface);
  OnFact(nic.name, known->second);
  OnLink(nic.name, known->second.up, true, "link down");
}

void LinkProbe::Remove(const std::string& nic) {
  std::erase_if(nics_of_interface_, [&](const auto& entry) { return entry.second == nic; });
  std::erase(addresses_, nic);
  const auto link = links_.find(nic);
  if (link == links_.end()) return;
  executor_->Cancel(link->second.settling);
  executor_->Cancel(link->second.report_timer);
  links_.erase(link);
}

LinkProbe::~LinkProbe() {
  for (const auto& [nic, link] : links_) {
    executor_->Cancel(link.settling);
    executor_->Cancel(link.report_timer);
  }
}

absl::Status LinkProbe::Start() {
  for (const std::string& nic : addresses_) Report(nic, true, true, "");
  return watch_->Start([this](const std::vector<LinkFact>& facts, bool complete) { OnFacts(facts, complete); });
}

void LinkProbe::Refresh() { watch_->Refresh(); }

void LinkProbe::OnFacts(const std::vector<LinkFact>& facts, bool complete) {
  if (complete) interfaces_.clear();
  for (const LinkFact& fact : facts) {
    if (fact.present)
      interfaces_[fact.interface] = fact;
    else
      interfaces_.erase(fact.interface);
    const auto [begin, end] = nics_of_interface_.equal_range(fact.interface);
    for (auto nic = begin; nic != end; ++nic) {
      OnFact(nic->second, fact);
      OnLink(nic->second, fact.present && fact.up, fact.present, fact.present ? "link down" : "interface " + fact.interface + " is gone");
    }
  }
  if (!complete) return;
  for (const auto& [interface, nic] : nics_of_interface_)
    if (!interfaces_.contains(interface)) OnLink(nic, false, false, "no interface " + interface);
}

// A port that flaps repeats itself thousands of times a second.
void LinkProbe::OnFact(const std::string& nic, const LinkFact& fact) {
  LinkFact& known = links_[nic].fact;
  const bool news = fact.ifindex != known.ifindex || fact.mac != known.mac || fact.mtu != known.mtu || fact.present != known.present;
  known = fact;
  if (news && on_fact_) on_fact_(nic, fact);
}

void LinkProbe::OnLink(const std::string& nic, bool up, bool present, const std::string& detail) {
  Link& link = links_[nic];
  if (up && link.reported && !link.up) {
    if (link.settling == 0) {
      link.settling = executor_->RunAfter(kLinkUpSettle, [this, nic] {
        links_[nic].settling = 0;
        Report(nic, true, true, "");
      });
    }
    return;
  }
  if (!up && link.settling != 0) {
    executor_->Cancel(std::exchange(link.settling, 0));
    return OnBounce(nic);
  }
  Report(nic, up, present, detail);
}

void LinkProbe::OnBounce(const std::string& nic) {
  ++bounces_;
  Link& link = links_[nic];
  ++link.bounces;
  if (link.report_timer != 0) return;
  link.report_timer = executor_->RunAfter(kBouncesInterval, [this, nic] {
    links_[nic].report_timer = 0;
    Emit(nic, EvidenceKind::kLinkBounces, std::exchange(links_[nic].bounces, 0), "came up and did not last");
  });
}

void LinkProbe::Report(const std::string& nic, bool up, bool present, const std::string& detail) {
  links_[nic].reported = true;
  links_[nic].up = up;
  Emit(nic, up ? EvidenceKind::kLinkUp : EvidenceKind::kLinkDown, present ? 0 : kLinkGone, up ? "" : detail);
}

void LinkProbe::Emit(const std::string& nic, EvidenceKind kind, int64_t value, const std::string& detail) {
  Evidence evidence;
  evidence.observer = node_;
  evidence.subject = {node_, nic};
  evidence.kind = kind;
  evidence.value = value;
  evidence.when = executor_->Now();
  evidence.detail = detail;
  sink_(evidence);
}

}  // namespace r2cc::health
