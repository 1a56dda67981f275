#include "netplugin/transport/record.h"

namespace r2cc::net {
namespace {

plan::EvidenceRecord MakeRecord(const Host& host, plan::EvidenceKind kind, const Action& action, const LinkEnds& ends) {
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(kind);
  record.cause = static_cast<uint32_t>(action.report.cause);
  record.time_ns = host.Now();
  record.local_rail = ends.local_rail;
  record.incarnation = action.incarnation;
  record.replayed_bytes = action.report.replayed_bytes;
  record.duration_ns = static_cast<uint64_t>(std::max<Nanos>(action.report.duration, 0));
  CopyText(ends.peer_node, record.peer_node, sizeof(record.peer_node));
  CopyText(ends.peer_nic, record.peer_nic, sizeof(record.peer_nic));
  return record;
}

std::string Describe(const Host& host, const LinkEnds& ends) {
  return host.node + "/" + host.rails[ends.local_rail].nic + " -> " + ends.peer_node + "/" + ends.peer_nic;
}

}  // namespace

void RecordUp(Host* host, const Action& action, const LinkEnds& ends) {
  if (host->link_observer) host->link_observer(action, ends);
  host->report(MakeRecord(*host, plan::EvidenceKind::kLinkUp, action, ends));
  host->log(LogLevel::kDebug, "R2CC: link " + Describe(*host, ends) + " is up, incarnation " + std::to_string(action.incarnation));
}

void RecordFenced(Host* host, const Action& action, const LinkEnds& ends) {
  if (host->link_observer) host->link_observer(action, ends);
  if (action.report.cause == plan::EvidenceCause::kRetired) {
    host->log(LogLevel::kDebug, "R2CC: detour " + Describe(*host, ends) + " is not needed any more");
    return;
  }
  host->report(MakeRecord(*host, plan::EvidenceKind::kLinkFenced, action, ends));
  LocalRail& rail = host->rails[ends.local_rail];
  rail.replayed_bytes += action.report.replayed_bytes;
  rail.failovers += 1;
  host->log(LogLevel::kInfo, "R2CC: link " + Describe(*host, ends) + " given up (" + plan::CauseName(action.report.cause) + "), " +
                                 std::to_string(action.report.replayed_bytes) + " bytes replayed after " +
                                 std::to_string(action.report.duration / 1000) + " us");
}

void RecordSlow(Host* host, const Action& action, const LinkEnds& ends) {
  if (host->link_observer) host->link_observer(action, ends);
  const bool slow = action.number < plan::kFullWeightPermille;
  auto record = MakeRecord(*host, slow ? plan::EvidenceKind::kRailSlow : plan::EvidenceKind::kRailSteady, action, ends);
  record.share_permille = static_cast<uint32_t>(action.number);
  host->report(record);
  if (action.again) return;
  host->log(LogLevel::kInfo, "R2CC: link " + Describe(*host, ends) +
                                 (slow ? " moves " + std::to_string(action.number / 10) + " % of what the others do: its share follows"
                                       : " is as good as the others again"));
}

}  // namespace r2cc::net
