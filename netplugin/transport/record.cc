#include "netplugin/transport/record.h"

#include <time.h>

#include <array>
#include <cstdio>
#include <utility>

#include "netplugin/flow/tuning.h"
#include "plan/page/attach.h"
#include "plan/page/gave_up.h"

namespace r2cc::net {
namespace {

plan::EvidenceRecord MakeRecord(const Host& host, plan::EvidenceRecordKind kind, const SessionAction& action, const LinkEnds& ends) {
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(kind);
  record.cause = static_cast<uint32_t>(action.report.cause);
  record.time_ns = host.Now();
  record.local_rail = ends.local_rail;
  record.incarnation = action.incarnation;
  record.bytes = action.report.detail;
  record.replayed_bytes = action.report.replayed_bytes;
  record.duration_ns = static_cast<uint64_t>(std::max<Nanos>(action.report.duration, 0));
  CopyText(ends.peer_node, record.peer_node, sizeof(record.peer_node));
  CopyText(ends.peer_nic, record.peer_nic, sizeof(record.peer_nic));
  return record;
}

int64_t RealtimeNow() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * kNanosPerSecond + now.tv_nsec;
}

// What nobody but the plugin sees: the operator should hear of it.
bool IsSickPath(plan::EvidenceCause cause) { return cause == plan::EvidenceCause::kStalled || cause == plan::EvidenceCause::kLargeLost; }

std::string Describe(const Host& host, const LinkEnds& ends) {
  return host.node + "/" + host.rails[ends.local_rail].nic + " -> " + ends.peer_node + "/" + ShownName(ends.peer_nic);
}

// Of one stall: a process has few operations outstanding on one communicator.
constexpr size_t kHeldMost = 4;

// The operations that waited in the gap that `action` reports.
void RecordHeld(Host* host, const SessionAction& action, const LinkEnds& ends, uint64_t communicator) {
  if (!host->held_operations || action.report.duration <= 0) return;
  std::array<abi::HeldOperationV1, kHeldMost> held{};
  const Nanos until = action.report.until;
  const size_t count = std::min(host->held_operations(communicator, until - action.report.duration, until, held), held.size());
  for (const abi::HeldOperationV1& operation : std::span(held).first(count)) {
    plan::EvidenceRecord record{};
    record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kOperationHeld);
    record.time_ns = action.report.since;
    record.local_rail = ends.local_rail;
    record.number = operation.number;
    record.bytes = operation.communicator;
    record.replayed_bytes = plan::HeldRank(operation.rank, operation.ranks);
    record.duration_ns = static_cast<uint64_t>(std::max<int64_t>(operation.held_ns, 0));
    std::copy_n(operation.communicator_name, sizeof(record.peer_node) - 1, record.peer_node);
    std::copy_n(operation.function, sizeof(record.peer_nic) - 1, record.peer_nic);
    host->report(record);
    host->log(LogLevel::kInfo, "R2CC: link " + Describe(*host, ends) + " held up " + plan::HeldText(record));
  }
}

}  // namespace

void RecordRelease(Host* host, const std::string& peer, const std::string& release, uint32_t wire_version, std::string* logged) {
  if (release == host->release) return;
  const std::string line = "R2CC: the plugin on " + peer + " is of release " + release + ", this one of " + host->release +
                           ": they use wire version " + std::to_string(wire_version);
  if (std::exchange(*logged, line) != line) host->log(LogLevel::kInfo, line);
}

void RecordUp(Host* host, const SessionAction& action, const LinkEnds& ends) {
  if (host->link_observer) host->link_observer(action, ends);
  host->report(MakeRecord(*host, plan::EvidenceRecordKind::kLinkUp, action, ends));
  const LinkFault fault = host->rails[ends.local_rail].fault.Take();
  if (fault.cause != plan::EvidenceCause::kNone) host->log(LogLevel::kInfo, "R2CC: link " + Describe(*host, ends) + " carries data again");
  host->log(LogLevel::kDebug, "R2CC: link " + Describe(*host, ends) + " is up, incarnation " + std::to_string(action.incarnation));
}

void RecordLost(Host* host, const SessionAction& action, const LinkEnds& ends) {
  plan::EvidenceRecord record = MakeRecord(*host, plan::EvidenceRecordKind::kLinkLost, action, ends);
  record.time_ns = action.report.since;
  const LocalRail& rail = host->rails[ends.local_rail];
  plan::EvidenceCause cause = action.report.cause;
  if (cause == plan::EvidenceCause::kLinkDown && rail.lost_on_purpose) cause = plan::EvidenceCause::kSimulated;
  record.cause = static_cast<uint32_t>(cause);
  host->tally.Lost({ends.local_rail, cause, action.report.since, host->node, rail.page_name(), ends.peer_node, ends.peer_nic}, host->Now());
  host->tally.Judge(*host->page(), host->Now());
  host->report(record);
}

void RecordPassed(Host* host, const SessionAction& action, const LinkEnds& ends, uint64_t communicator) {
  plan::EvidenceRecord record = MakeRecord(*host, plan::EvidenceRecordKind::kLinkPassed, action, ends);
  record.time_ns = action.report.until;
  record.bytes = static_cast<uint64_t>(std::max<Nanos>(action.report.until - action.report.since, 0));
  host->tally.Passed(ends.local_rail, action.report.since, action.report.duration);
  host->report(record);
  RecordHeld(host, action, ends, communicator);
}

void RecordFailed(Host* host, const std::string& peer, uint64_t failure) {
  if (!host->tally.Failed(peer, failure)) return;
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kFailed);
  record.time_ns = host->Now();
  record.bytes = failure;
  CopyText(peer, record.peer_node, sizeof(record.peer_node));
  host->report(record);
}

void RecordUse(Host* host, uint32_t usable, Nanos when) {
  const auto rails = static_cast<uint32_t>(host->rails.size());
  host->tally.Use(usable, rails, when);
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kRailUse);
  record.time_ns = when;
  record.bytes = usable;
  record.replayed_bytes = rails;
  host->report(record);
}

plan::EvidenceRecord RunRecord(const Host& host, Nanos started) {
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kRun);
  record.time_ns = started;
  record.bytes = host.rank.has_value() ? uint64_t{*host.rank} + 1 : 0;
  record.replayed_bytes = host.run_is_shared ? 1 : 0;
  CopyText(host.run, record.peer_node, sizeof(record.peer_node));
  return record;
}

plan::EvidenceRecord WayRecord(Nanos now, uint32_t communicator, uint64_t call, uint64_t bytes_min, uint32_t way,
                               uint32_t expected_permille) {
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kWay);
  record.time_ns = now;
  record.incarnation = communicator;
  record.bytes = call;
  record.duration_ns = bytes_min;
  record.replayed_bytes = plan::WayDetail(way, expected_permille);
  return record;
}

plan::EvidenceRecord WaitRecord(Nanos now, uint64_t requests, Nanos waited, const JobWait& wait, const LinkEnds& ends) {
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kWaiting);
  record.time_ns = now;
  record.duration_ns = static_cast<uint64_t>(std::max<Nanos>(waited, 0));
  record.bytes = requests;
  record.replayed_bytes = static_cast<uint64_t>(wait.what);
  if (requests == 0) return record;
  record.local_rail = ends.local_rail;
  CopyText(ends.peer_node, record.peer_node, sizeof(record.peer_node));
  CopyText(ends.peer_nic, record.peer_nic, sizeof(record.peer_nic));
  return record;
}

void RecordFenced(Host* host, const SessionAction& action, const LinkEnds& ends) {
  if (host->link_observer) host->link_observer(action, ends);
  if (action.report.cause == plan::EvidenceCause::kRetired) {
    host->log(LogLevel::kDebug, "R2CC: cross-rail link " + Describe(*host, ends) + " is not needed any more");
    return;
  }
  host->report(MakeRecord(*host, plan::EvidenceRecordKind::kLinkFenced, action, ends));
  LocalRail& rail = host->rails[ends.local_rail];
  rail.replayed_bytes += action.report.replayed_bytes;
  rail.failovers += 1;
  const LogLevel level = IsSickPath(action.report.cause) ? LogLevel::kWarn : LogLevel::kInfo;
  host->log(level, "R2CC: link " + Describe(*host, ends) + " given up (" + plan::CauseText(action.report.cause, action.report.detail) +
                       "), " + std::to_string(action.report.replayed_bytes) + " bytes replayed after " +
                       std::to_string(action.report.duration / 1000) + " us");
}

void RecordRefused(Host* host, const SessionAction& action, const LinkEnds& ends) {
  if (host->link_observer) host->link_observer(action, ends);
  host->report(MakeRecord(*host, plan::EvidenceRecordKind::kProofFailed, action, ends));
  const LinkFault fault{action.report.cause, action.report.detail};
  if (host->rails[ends.local_rail].fault.Set(fault)) return;
  // The rail's own end, and attempts that a peer which is starting or ending does not answer, are no news.
  host->log(IsSickPath(fault.cause) ? LogLevel::kWarn : LogLevel::kInfo,
            "R2CC: link " + Describe(*host, ends) + " is not used (" + plan::CauseText(fault.cause, fault.detail) +
                "): it is tried again, and other rails carry its data meanwhile");
}

void RecordSlow(Host* host, const SessionAction& action, const LinkEnds& ends) {
  if (host->link_observer) host->link_observer(action, ends);
  const bool slow = action.number < plan::kFullWeightPermille;
  auto record = MakeRecord(*host, slow ? plan::EvidenceRecordKind::kRailSlow : plan::EvidenceRecordKind::kRailSteady, action, ends);
  record.share_permille = static_cast<uint32_t>(action.number);
  host->report(record);
  if (action.again) return;
  host->log(LogLevel::kInfo, "R2CC: link " + Describe(*host, ends) +
                                 (slow ? " moves " + std::to_string(action.number / 10) + " % of what the others do: its share follows"
                                       : " is as good as the others again"));
}

std::string RecordGaveUp(Host* host, const std::string& peer, std::span<const RailInfo> peer_rails, const NamesOnPage& peer_names,
                         std::span<const LinkFate> fates, Nanos lasted) {
  const Nanos now = host->Now();
  const int64_t realtime = RealtimeNow();
  const PageView::Judgement judged = host->page()->Judge(host->names, peer_names);
  plan::GaveUp gave_up{host->job, host->pid, host->node, peer, lasted, {}};
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kGaveUp);
  record.time_ns = now;
  record.duration_ns = static_cast<uint64_t>(std::max<Nanos>(lasted, 0));
  CopyText(peer, record.peer_node, sizeof(record.peer_node));
  for (const LinkFate& fate : fates) {
    const LocalRail& rail = host->rails[fate.local_rail];
    std::string peer_nic = fate.remote_rail < peer_rails.size() ? peer_rails[fate.remote_rail].nic : "";
    if (!IsMatched(peer_nic)) peer_nic.clear();  // nobody can be asked about it
    plan::DeadPort dead_port = plan::DeadPort::kNone;
    if (fate.local_rail < judged.local.size() && judged.local[fate.local_rail].failed) dead_port = plan::DeadPort::kOwn;
    if (fate.remote_rail < judged.remote.size() && judged.remote[fate.remote_rail].failed) dead_port = plan::DeadPort::kPeer;
    const Nanos since = fate.since == 0 ? now : fate.since;
    gave_up.rails.push_back(
        {rail.nic, rail.matched ? rail.nic : "", peer_nic, fate.cause, plan::TimeOfDay(realtime - (now - since)), dead_port});
    record.cause = static_cast<uint32_t>(fate.cause);
    record.time_ns = since;
    record.local_rail = fate.local_rail;
    record.bytes = static_cast<uint64_t>(dead_port);
    CopyText(peer_nic, record.peer_nic, sizeof(record.peer_nic));
    host->report(record);
  }
  record.bytes = plan::kNoRail;
  record.local_rail = plan::kAttachRailsMax - 1;  // 0.2.0 does not know kNoRail, but few jobs have that rail
  if (fates.empty()) host->report(record);
  return "R2CC: " + plan::GaveUpText(gave_up);
}

std::vector<RailEnd> EndsOf(const Host& host, std::span<const RailInfo> rails) {
  std::vector<RailEnd> ends;
  for (const RailInfo& rail : rails) {
    RailEnd& end = ends.emplace_back();
    end.rail = ShownName(rail.nic);
    for (const RailEndpoint& endpoint : rail.endpoints)
      for (const Transport* const transport : host.transports) {
        if (transport->kind() != endpoint.transport) continue;
        const Transport::EndText text = transport->Describe(endpoint.bytes);
        if (!text.address.empty()) end = {end.rail, text.address, text.port, text.family};
      }
    // Where two transports lead there, one may reach what the other does not.
    if (rail.endpoints.size() > 1) end.family.clear();
  }
  return ends;
}

std::string TriedWays(const Host& host, const OobAddress* oob, std::span<const RailInfo> from, std::span<const RailInfo> to) {
  std::string ways;
  if (oob != nullptr) ways = "out-of-band " + host.oob.host + " to " + oob->host + ":" + std::to_string(oob->port);
  const auto add = [&ways](const char* join, const std::string& text) {
    if (!text.empty()) ways += (ways.empty() ? "" : join) + text;
  };
  add(", ", TriedRails(EndsOf(host, from), EndsOf(host, to)));
  add("; ", host.oob_transport->Needs());
  add("; ", host.oob_transport->Trouble());
  return ways;
}

void WarnNotReached(Host* host, ReachWatch::Missing missing, const std::string& peer, const std::string& ways) {
  const std::string what = missing == ReachWatch::Missing::kRail ? "no rail reaches " : "no answer from ";
  host->log(LogLevel::kWarn, "R2CC: " + what + peer + " for " + std::to_string(tuning::kReachEarly / kNanosPerSecond) +
                                 " s, trying on until R2CC_DEADLINE_MS: tried " + ways + "; r2ccctl path probe " + host->node + " " + peer);
}

std::vector<std::string> RailTotals(const Host& host) {
  std::vector<std::string> lines;
  for (const LocalRail& rail : host.rails) {
    char line[384];
    const LinkFault fault = rail.fault.Get();
    const std::string state = !rail.up                                    ? "down"
                              : fault.cause == plan::EvidenceCause::kNone ? "up"
                                                                          : "not used: " + plan::CauseText(fault.cause, fault.detail);
    std::snprintf(line, sizeof(line), "R2CC: rail %s/%s sent %.3f GB, received %.3f GB, replayed %.3f MB, %llu failovers, %s",
                  host.node.c_str(), rail.nic.c_str(), static_cast<double>(rail.sent_bytes.value()) * 1e-9,
                  static_cast<double>(rail.received_bytes.value()) * 1e-9, static_cast<double>(rail.replayed_bytes.value()) * 1e-6,
                  static_cast<unsigned long long>(rail.failovers.value()), state.c_str());
    lines.push_back(line);
  }
  return lines;
}

}  // namespace r2cc::net
