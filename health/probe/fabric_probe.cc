#include "health/probe/fabric_probe.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace r2cc::health {
namespace {

std::string Text(const SaNotice& notice, uint64_t more) {
  std::string text = absl::StrCat("subnet manager: ", TrapName(notice.trap), " (trap ", notice.trap);
  if (notice.guid != 0) absl::StrAppend(&text, ", port GUID 0x", absl::Hex(notice.guid, absl::kZeroPad16));
  if (notice.lid != 0) absl::StrAppend(&text, ", LID ", notice.lid);
  if (notice.port != 0) absl::StrAppend(&text, ", port ", notice.port);
  if (more > 0) absl::StrAppend(&text, ", the last of ", more + 1);
  return text + ")";
}

}  // namespace

FabricProbe::FabricProbe(std::string node, MadFabric* fabric, Executor* executor, Resolve resolve, Outputs outputs)
    : node_(std::move(node)), fabric_(fabric), executor_(executor), resolve_(std::move(resolve)), outputs_(std::move(outputs)) {}

FabricProbe::~FabricProbe() { executor_->Cancel(flush_timer_); }

void FabricProbe::OnFacts(const std::string& nic, const SysfsPortFacts& facts) {
  if (!facts.infiniband || facts.rdma_device.empty()) return;
  std::unique_ptr<Port>& entry = ports_[nic];
  if (entry == nullptr) entry = std::make_unique<Port>();
  Port* const port = entry.get();
  port->nic = nic;
  port->facts = facts;
  if (port->lost) {
    port->open.reset();
    port->lost = port->subscribed = false;
  }
  // Without a link nobody answers; the subscription is renewed when it is back.
  if (port->facts.rdma_active != true || port->facts.sm_lid == 0) {
    port->subscribed = false;
    return;
  }
  if (port->open == nullptr) Open(port);
  if (port->open == nullptr) return;
  const FabricAddress manager = {port->facts.sm_lid, port->facts.sm_service_level};
  if (manager != port->manager) port->subscribed = false;
  port->manager = manager;
  const Nanos now = executor_->Now();
  if (port->subscribed && now - port->asked < kResubscribeInterval) return;
  port->transaction = ++transaction_;
  port->asked = now;
  if (const auto status = port->open->Ask(manager, EncodeSubscription(port->transaction)); !status.ok())
    Trouble(port, std::string(status.message()));
}

void FabricProbe::Open(Port* port) {
  auto open = fabric_->Open(port->facts.rdma_device, port->facts.rdma_port,
                            {[this, port](const std::string& mad, const FabricAddress& from) { OnMad(port, mad, from); },
                             [this, port] {
                               port->subscribed = false;
                               Trouble(port, absl::StrCat("LID ", port->manager.lid, " does not answer"));
                             },
                             [this, port](const absl::Status& status) {
                               port->lost = true;
                               Trouble(port, std::string(status.message()));
                             }});
  if (!open.ok()) return Trouble(port, std::string(open.status().message()));
  port->open = *std::move(open);
}

void FabricProbe::Trouble(Port* port, const std::string& what) {
  if (std::exchange(port->trouble, what) != what)
    outputs_.report({node_, port->nic}, absl::StrCat("the subnet manager's reports do not arrive at this port: ", what));
}

void FabricProbe::OnMad(Port* port, const std::string& mad, const FabricAddress& from) {
  const auto message = DecodeSaMessage(mad);
  if (!message.has_value() || from.lid != port->manager.lid) {
    ++foreign_;
    return;
  }
  if (message->kind == SaMessage::Kind::kSubscribed) return OnAnswer(port, *message);
  ++reports_;
  // Unanswered it would be repeated.
  (void)port->open->Answer(from, EncodeReportAnswer(mad));
  Take(message->notice);
}

void FabricProbe::OnAnswer(Port* port, const SaMessage& answer) {
  if (answer.transaction != port->transaction) return;
  port->subscribed = answer.status == 0;
  if (!port->subscribed) return Trouble(port, absl::StrCat("it refuses the subscription with status ", answer.status));
  const bool news = !std::exchange(port->reported, true) || !port->trouble.empty();
  port->trouble.clear();
  if (news) outputs_.report({node_, port->nic}, "the subnet manager's reports arrive at this port");
}

void FabricProbe::Take(const SaNotice& notice) {
  if (*TrapName(notice.trap) == '\0') return;
  // One port's coming and going is one subject.
  const Subject subject = {notice.guid, notice.guid != 0 ? uint16_t{0} : notice.trap, notice.lid, notice.port};
  const Nanos now = executor_->Now();
  if (reported_.size() >= kNoticeSubjectsMax)
    std::erase_if(reported_,
                  [now](const auto& entry) { return !entry.second.pending.has_value() && now - entry.second.when >= kNoticeInterval; });
  const auto found = reported_.find(subject);
  if (found == reported_.end()) {
    if (reported_.size() >= kNoticeSubjectsMax) {
      ++coalesced_;
      return;
    }
    reported_[subject] = {now, notice, std::nullopt, 0};
    return Report(notice, 0);
  }
  Reported& reported = found->second;
  if (now - reported.when >= kNoticeInterval && !reported.pending.has_value()) {
    reported = {now, notice, std::nullopt, 0};
    return Report(notice, 0);
  }
  ++coalesced_;
  if (notice == reported.pending.value_or(reported.last)) return;
  if (reported.pending.has_value()) ++reported.more;
  reported.pending = notice;
  if (flush_timer_ == 0) flush_timer_ = executor_->RunAfter(kNoticeInterval, [this] { Flush(); });
}

void FabricProbe::Flush() {
  flush_timer_ = 0;
  const Nanos now = executor_->Now();
  for (auto& [subject, reported] : reported_) {
    if (!reported.pending.has_value()) continue;
    const Reported due = std::exchange(reported, {now, *reported.pending, std::nullopt, 0});
    if (*due.pending != due.last) Report(*due.pending, due.more);
  }
}

std::optional<NicKey> FabricProbe::OwnNicAt(uint16_t lid) const {
  for (const auto& [nic, port] : ports_)
    if (lid != 0 && port->facts.lid == lid) return NicKey{node_, nic};
  return std::nullopt;
}

void FabricProbe::Report(const SaNotice& notice, uint64_t more) {
  Evidence evidence;
  evidence.observer = node_;
  evidence.when = executor_->Now();
  evidence.detail = Text(notice, more);
  const std::optional<NicKey> nic = notice.guid != 0 ? resolve_(notice.guid) : OwnNicAt(notice.lid);
  outputs_.report(nic.value_or(NicKey()), evidence.detail);
  if (!nic.has_value()) return;
  evidence.subject = *nic;
  switch (notice.trap) {
    case kTrapPortOutOfService: evidence.kind = EvidenceKind::kFabricGone; break;
    case kTrapPortInService: evidence.kind = EvidenceKind::kFabricBack; break;
    case kTrapLinkIntegrity:
    case kTrapBufferOverrun:
    case kTrapFlowControl:
      evidence.kind = EvidenceKind::kErrors;
      evidence.value = kErrorsLimitPermille;
      break;
    default: return;
  }
  outputs_.evidence(evidence);
}

}  // namespace r2cc::health
