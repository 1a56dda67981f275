// The answers to "why": of a NIC, of the paths between two nodes, of the plan.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "client/core/table.h"
#include "client/core/texts.h"
#include "client/core/units.h"
#include "client/format/format.h"
#include "client/format/format_parts.h"
#include "client/plan/plan_choices.h"

namespace r2cc::client {
namespace {

Colour PairColour(const std::string& state) {
  if (state == "up") return Colour::kGreen;
  return state == "silent" ? Colour::kRed : Colour::kYellow;
}

std::string Loss(const v1::PairStatus& pair) {
  if (pair.recent() == 0) return "";
  return absl::StrFormat("%.0f%%", 100.0 * std::min(pair.recent_lost(), pair.recent()) / pair.recent());
}

std::string PairTable(const std::string& node, const google::protobuf::RepeatedPtrField<v1::PairStatus>& pairs, const Style& style) {
  Table table({"FROM", "TO", "STATE", Spare(1, Right("SINCE")), Right("LOSS"), Spare(2, Right("ROUND TRIP")), Right("LAST"),
               Spare(4, Right("ANSWERED")), "LARGE", Spare(3, "USE")});
  for (const v1::PairStatus& pair : pairs)
    table.AddRow({NicName(node, pair.nic()),
                  NicName(pair.peer_node(), pair.peer_nic()),
                  {pair.state(), PairColour(pair.state())},
                  Ago(pair.since_ns(), style),
                  Loss(pair),
                  pair.round_trip_ns() == 0 ? "" : FormatDuration(pair.round_trip_ns()),
                  pair.last_answer_ns() == 0 ? "never" : Ago(pair.last_answer_ns(), style),
                  absl::StrCat(pair.answered(), "/", pair.sent()),
                  {pair.large(), pair.large() == "lost" ? Colour::kRed : Colour::kNone},
                  {pair.active() ? "jobs" : "in turn", pair.active() ? Colour::kNone : Colour::kDim}});
  return table.Render(style.colour, style.width);
}

// "mlx5_core, firmware 28.39.1002, slot 4 (0000:81:00.0)"
std::string PartText(const v1::NicView& nic, const v1::NicInventory& part) {
  std::vector<std::string> parts;
  if (!part.driver().empty()) parts.push_back(part.driver());
  if (!part.firmware().empty()) parts.push_back(absl::StrCat("firmware ", part.firmware()));
  if (!part.slot().empty()) parts.push_back(absl::StrCat("slot ", part.slot()));
  if (!part.serial().empty()) parts.push_back(absl::StrCat("serial ", part.serial()));
  if (!part.switch_port().empty()) parts.push_back(absl::StrCat("at ", part.switch_name(), " port ", part.switch_port()));
  if (parts.empty()) return "";
  return absl::StrCat(absl::StrJoin(parts, ", "), nic.pci().empty() ? "" : absl::StrCat(" (", nic.pci(), ")"));
}

std::string Heading(absl::string_view text, const Style& style) {
  return absl::StrCat("\n", Paint(text, Colour::kDim, style.colour), "\n");
}

}  // namespace

std::string FormatExplainNic(const v1::ExplainNicReply& reply, const Style& style) {
  const v1::NicView& nic = reply.nic();
  std::string text = absl::StrCat(
      Printable(NicName(reply.node(), nic.name())), "  ", Paint(StateName(nic.state()), StateColour(nic.state()), style.colour), "  ",
      Printable(absl::StrCat(Ago(nic.since_ns(), style), nic.reason().empty() ? "" : ": ", nic.reason())), "\n");
  const auto add = [&](absl::string_view name, absl::string_view value) {
    if (!value.empty()) absl::StrAppend(&text, Paint(absl::StrFormat("%-8s", name), Colour::kDim, style.colour), Printable(value), "\n");
  };
  add("verdict", reply.verdict_text());
  add("plan", reply.has_planned()
                  ? absl::StrCat(StateName(reply.planned().state()), ", weight ", FormatPermille(reply.planned().weight_permille()))
                  : "");
  add("jobs", reply.has_planned() ? MeaningForJobs(reply.planned()) : "");
  add("link", absl::StrCat(nic.link_up() ? "up" : "down", nic.rate_bits_per_s() == 0 ? "" : ", ",
                           nic.rate_bits_per_s() == 0 ? "" : FormatRate(nic.rate_bits_per_s()), ", ", nic.flaps_total(),
                           nic.flaps_total() == 1 ? " flap" : " flaps"));
  add("part", PartText(nic, reply.inventory()));
  add("set", OperatorSettings(nic, style));
  for (const std::string& advice : reply.advice()) add("do", advice);
  if (reply.pairs_size() > 0) absl::StrAppend(&text, Heading("probes", style), PairTable(reply.node(), reply.pairs(), style));
  if (reply.evidence_size() > 0) {
    Table table(
        {Right("LAST"), Spare(2, Right("FIRST")), Spare(1, Right("TIMES")), Spare(3, "SEEN BY"), "EVIDENCE", "VALUE", "PEER", "DETAIL"});
    for (const v1::EvidenceEntry& entry : reply.evidence())
      table.AddRow({Ago(entry.last_ns(), style), entry.times() > 1 ? Ago(entry.first_ns(), style) : "", absl::StrCat(entry.times()),
                    entry.observer(), EvidenceText(entry.kind()), EvidenceValueText(entry.kind(), entry.value()), entry.peer(),
                    entry.detail()});
    absl::StrAppend(&text, Heading("evidence, newest first", style), table.Render(style.colour, style.width));
  }
  if (reply.done_size() > 0) {
    absl::StrAppend(&text, Heading("what happened, newest first", style));
    EventColumns columns;
    for (const v1::Event& event : reply.done()) columns.Grow(event);
    for (const v1::Event& event : reply.done()) absl::StrAppend(&text, FormatEvent(event, style, columns));
  }
  return text;
}

std::string FormatWideNics(const std::vector<v1::ExplainNicReply>& nics, const Style& style) {
  Table table({"NIC", "STATE", Right("RATE"), "SWITCH", "PORT", "DRIVER", "FIRMWARE", "SLOT", Spare(3, "SERIAL"), "PCI",
               Spare(1, "ADDRESS"), Spare(2, "MAC")});
  std::vector<std::string> missing;
  for (const v1::ExplainNicReply& one : nics) {
    const v1::NicView& nic = one.nic();
    const v1::NicInventory& part = one.inventory();
    table.AddRow({NicName(one.node(), nic.name()),
                  {StateName(nic.state()), StateColour(nic.state())},
                  FormatRate(nic.rate_bits_per_s()),
                  part.switch_name(),
                  part.switch_port(),
                  part.driver(),
                  part.firmware(),
                  part.slot(),
                  part.serial(),
                  nic.pci(),
                  nic.address(),
                  nic.mac()});
    for (const std::string& line : part.missing()) missing.push_back(absl::StrCat(NicName(one.node(), nic.name()), ": no ", line));
  }
  std::string text = table.empty() ? "no NICs\n" : table.Render(style.colour, style.width);
  if (!missing.empty()) text += "\n";
  for (const std::string& line : missing) absl::StrAppend(&text, Printable(line), "\n");
  return text;
}

std::string FormatPaths(const v1::ProbePathsReply& reply, const Style& style) {
  if (reply.pairs_size() == 0)
    return absl::StrCat("no rail of ", Printable(reply.node()), " is probed", reply.peer().empty() ? "" : " towards ",
                        Printable(reply.peer()), ": do both daemons run, and do their NICs have addresses?\n");
  return PairTable(reply.node(), reply.pairs(), style);
}

std::string FormatExplainPlan(const v1::ExplainPlanReply& reply, const Style& style) {
  std::string text = absl::StrCat(Paint("plan ", Colour::kDim, style.colour), EpochText(reply.epoch()), "\n");
  if (!reply.trouble().empty())
    absl::StrAppend(&text, Paint("refused ", Colour::kRed, style.colour), Printable(reply.trouble()), "; the plan before is in force\n");
  Table table({"NIC", "STATE", Right("WEIGHT"), "WHY"});
  for (const v1::PlanReason& reason : reply.reasons()) {
    const v1::PlannedNic& nic = reason.planned();
    table.AddRow({NicName(nic.node(), nic.nic()),
                  {StateName(nic.state()), StateColour(nic.state())},
                  {FormatPermille(nic.weight_permille()), nic.weight_permille() == 0 ? Colour::kRed : Colour::kNone},
                  reason.reason()});
  }
  if (!table.empty()) absl::StrAppend(&text, "\n", table.Render(style.colour, style.width));
  Table routes({"GPU", "NICS, NEAREST FIRST"});
  for (const v1::GpuRoute& route : reply.routes()) {
    std::vector<std::string> hops;
    for (const auto& hop : route.chain())
      hops.push_back(absl::StrCat(hop.nic(), hop.weight_permille() == 0 ? "" : absl::StrCat(" ", FormatPermille(hop.weight_permille())),
                                  " (", hop.distance(), ")"));
    routes.AddRow({route.gpu_pci(), absl::StrJoin(hops, " > ")});
  }
  if (!routes.empty()) absl::StrAppend(&text, "\n", routes.Render(style.colour, style.width));
  if (const std::string choices = FormatAllReduce(reply, style); !choices.empty()) absl::StrAppend(&text, "\n", choices);
  return text;
}

}  // namespace r2cc::client
