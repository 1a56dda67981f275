#include "daemon/nics/local_health.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "daemon/config/config.h"
#include "health/view/nic_state.h"

namespace r2cc::daemon {
namespace {

// However many jobs complain, the links are not asked for again more often than this.
constexpr Nanos kRefreshIntervalMin = 100 * kNanosPerMs;
// A cable that flaps all day is an event so often; the evidence has each second.
constexpr Nanos kFlapsInterval = 60 * kNanosPerSecond;
// In one sample, of about a second. A link that goes down and comes back is two, and is reported as changes of state.
constexpr int64_t kCarrierFlipsMin = 4;

std::array<uint8_t, 6> ParseMac(const std::string& text) {
  std::array<unsigned, 6> parts{};
  std::array<uint8_t, 6> mac{};
  if (std::sscanf(text.c_str(), "%2x:%2x:%2x:%2x:%2x:%2x", &parts[0], &parts[1], &parts[2], &parts[3], &parts[4], &parts[5]) != 6)
    return mac;
  std::transform(parts.begin(), parts.end(), mac.begin(), [](unsigned part) { return static_cast<uint8_t>(part); });
  return mac;
}

// Those that the daemon knows from before, and those whose link the kernel has seen up in this boot.
std::set<std::string> Cabled(std::set<std::string> known, const std::vector<health::NicIdentity>& nics, const health::Sysfs& sysfs) {
  for (const health::NicIdentity& nic : nics) {
    if (nic.interface.empty()) continue;
    const auto text = sysfs.Read(absl::StrCat("class/net/", nic.interface, "/carrier_up_count"));
    uint64_t times = 0;
    if (text.ok() && absl::SimpleAtoi(*text, &times) && times > 0) known.insert(nic.name);
  }
  return known;
}

}  // namespace

LocalHealth::LocalHealth(std::string node, std::vector<health::NicIdentity> nics, const health::OperatorSettings& settings,
                         const std::set<std::string>& cabled, const Seams& seams, EventReporter* reporter, Outputs outputs)
    : node_(std::move(node)),
      nics_(std::move(nics)),
      seams_(seams),
      reporter_(reporter),
      outputs_(std::move(outputs)),
      health_(node_, nics_, {.evidence_max = seams.evidence_max}, settings, seams.executor->Now(), Cabled(cabled, nics_, *seams.sysfs)),
      link_probe_(
          node_, nics_, seams.links, seams.executor, [this](const health::Evidence& evidence) { Handle(evidence); },
          [this](const std::string& nic, const health::LinkFact& fact) { OnLinkFact(nic, fact); }),
      sysfs_probe_(
          node_, nics_, seams.sysfs, seams.executor, [this](const health::Evidence& evidence) { Handle(evidence); },
          [this](const std::string& nic, const health::SysfsPortFacts& facts) { OnPortFacts(nic, facts); }) {}

LocalHealth::~LocalHealth() {
  if (timer_ != 0) seams_.executor->Cancel(timer_);
}

absl::Status LocalHealth::Start() {
  if (auto status = link_probe_.Start(); !status.ok()) return status;
  sysfs_probe_.Start();
  Settle({});
  return absl::OkStatus();
}

void LocalHealth::Handle(const health::Evidence& evidence) {
  Settle(health_.Handle(evidence));
  ReportFlaps(evidence);
}

void LocalHealth::Look(const std::string& nic) {
  link_probe_.Refresh();
  sysfs_probe_.Look(nic);
}

void LocalHealth::SetRate(const std::string& nic, uint64_t rate_bits_per_s) {
  Settle(health_.SetRate(nic, rate_bits_per_s, seams_.executor->Now()));
}

void LocalHealth::Add(const health::NicIdentity& nic, const health::OperatorSetting& setting, bool cabled) {
  nics_.push_back(nic);
  const std::set<std::string> known = cabled ? std::set<std::string>{nic.name} : std::set<std::string>();
  health_.Add(nic, setting, Cabled(known, {nic}, *seams_.sysfs).contains(nic.name), seams_.executor->Now());
  sysfs_probe_.Add(nic);
  link_probe_.Add(nic);
  Settle({});
}

void LocalHealth::Remove(const std::string& nic) {
  std::erase_if(nics_, [&](const health::NicIdentity& one) { return one.name == nic; });
  link_probe_.Remove(nic);
  sysfs_probe_.Remove(nic);
  health_.Remove(nic);
  macs_.erase(nic);
  pcis_.erase(nic);
  guids_.erase(nic);
  flaps_.erase(nic);
  Settle({});
}

void LocalHealth::SetAddress(const std::string& nic, const std::string& address) {
  health_.SetAddress(nic, address);
  Settle({});
}

void LocalHealth::ReportFlaps(const health::Evidence& evidence) {
  const bool bounces = evidence.kind == health::EvidenceKind::kLinkBounces;
  const bool flips = evidence.kind == health::EvidenceKind::kCarrierFlips && evidence.value >= kCarrierFlipsMin;
  if (!bounces && !flips) return;
  Flaps& flaps = flaps_[evidence.subject.nic];
  (bounces ? flaps.bounces : flaps.carrier_flips) += evidence.value;
  const Nanos now = seams_.executor->Now();
  if (flaps.reported_at != 0 && now - flaps.reported_at < kFlapsInterval) return;
  std::string text;
  if (flaps.bounces > 0)
    text = absl::StrCat("came up and did not last for ", health::kLinkUpSettle / kNanosPerMs, " ms, ", flaps.bounces, " times");
  if (flaps.carrier_flips > 0) absl::StrAppend(&text, text.empty() ? "" : "; ", "its carrier changed ", flaps.carrier_flips, " times");
  flaps = {0, 0, now};
  v1::Event event = reporter_->New("link-flaps", absl::StrCat("a cable or port that flaps: ", text));
  event.set_nic(evidence.subject.nic);
  reporter_->Report(std::move(event));
}

void LocalHealth::OnLinkFact(const std::string& nic, const health::LinkFact& fact) {
  if (!fact.mac.empty()) macs_[nic] = fact.mac;
  sysfs_probe_.SetIfindex(nic, fact.ifindex);
  health_.Learn(nic, fact.mac, "");
  health_.SetMtu(nic, fact.mtu);
  Settle({});
}

void LocalHealth::OnPortFacts(const std::string& nic, const health::SysfsPortFacts& facts) {
  if (!facts.pci.empty()) pcis_[nic] = facts.pci;
  if (!facts.rdma_device.empty() && !guids_.contains(nic)) {
    const auto guid = seams_.sysfs->Read(absl::StrCat("class/infiniband/", facts.rdma_device, "/node_guid"));
    if (guid.ok()) guids_[nic] = health::ParseGuid(*guid);
  }
  health_.Learn(nic, facts.mac, facts.pci, facts.port_guid);
  Settle({});
  outputs_.on_port_facts(nic, facts);
}

void LocalHealth::Settle(const std::vector<health::NicChange>& changes) {
  bool suspected = false;
  for (const auto& change : changes) {
    const auto& [from, to, reason] = change.transition;
    reporter_->ReportState({node_, change.nic}, from, to, reason);
    if (to == health::NicState::kSuspect) {
      suspected = true;
      outputs_.on_suspect(change.nic);
    }
  }
  for (const std::string& nic : health_.TakeEndedDrills()) outputs_.on_drill_end(nic);
  const Nanos now = seams_.executor->Now();
  if (suspected && now - refreshed_ >= kRefreshIntervalMin) {
    // A complaint is no proof: ask the kernel itself.
    refreshed_ = now;
    seams_.executor->RunAfter(0, [this] { link_probe_.Refresh(); });
  }
  ArmTimer();
  if (std::exchange(reported_revision_, health_.revision()) != health_.revision()) outputs_.on_state();
}

void LocalHealth::ArmTimer() {
  const Nanos due = health_.next_tick();
  if (timer_ != 0 && due == timer_due_) return;
  if (timer_ != 0) seams_.executor->Cancel(std::exchange(timer_, 0));
  if (due == health::NicMachine::kNever) return;
  timer_due_ = due;
  timer_ = seams_.executor->RunAfter(due - seams_.executor->Now(), [this] {
    timer_ = 0;
    Settle(health_.Tick(seams_.executor->Now()));
  });
}

std::vector<std::string> LocalHealth::nic_names() const {
  std::vector<std::string> names;
  for (const auto& nic : nics_) names.push_back(nic.name);
  return names;
}

std::vector<MatchableNic> LocalHealth::Matchable() const {
  const auto addresses = seams_.addresses->ByInterface();
  std::vector<MatchableNic> matchable;
  for (const auto& nic : nics_) {
    MatchableNic out{nic.name, nic.interface, {}, "", 0, {}};
    if (!nic.address.empty()) out.addresses.push_back(nic.address);
    if (const auto found = addresses.find(nic.interface); !nic.interface.empty() && found != addresses.end())
      out.addresses.insert(out.addresses.end(), found->second.begin(), found->second.end());
    if (const auto found = macs_.find(nic.name); found != macs_.end()) out.mac = ParseMac(found->second);
    if (const auto found = pcis_.find(nic.name); found != pcis_.end()) out.pci = found->second;
    if (const auto found = guids_.find(nic.name); found != guids_.end()) out.guid = found->second;
    matchable.push_back(std::move(out));
  }
  return matchable;
}

}  // namespace r2cc::daemon
