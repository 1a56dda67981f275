#include "client/format/format.h"

#include <algorithm>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "client/core/table.h"
#include "client/core/texts.h"
#include "client/core/units.h"
#include "client/format/format_parts.h"

namespace r2cc::client {
namespace {

// NODE_HEALTHY -> "Healthy"
std::string NodeHealthName(v1::NodeStatus status) {
  if (status == v1::NODE_WORD_UNSPECIFIED || !v1::NodeStatus_IsValid(status)) return "?";
  std::string name = absl::AsciiStrToLower(v1::NodeStatus_Name(status).substr(absl::string_view("NODE_").size()));
  name[0] = absl::ascii_toupper(name[0]);
  return name;
}

Colour NodeHealthColour(v1::NodeStatus status) {
  switch (status) {
    case v1::NODE_HEALTHY: return Colour::kGreen;
    case v1::NODE_UNHEALTHY:
    case v1::NODE_UNREACHABLE: return Colour::kRed;
    default: return Colour::kYellow;
  }
}

// "3 healthy, 1 failed"
std::string StateCounts(const v1::NodeView& node) {
  std::vector<std::string> parts;
  for (const v1::NicState state :
       {v1::HEALTHY, v1::DEGRADED, v1::SUSPECT, v1::PROVING, v1::DRAINED, v1::FAILED, v1::UNCABLED, v1::NIC_STATE_UNSPECIFIED}) {
    int count = 0;
    for (const v1::NicView& nic : node.nics()) count += nic.state() == state ? 1 : 0;
    if (count > 0)
      parts.push_back(absl::StrCat(count, " ", state == v1::NIC_STATE_UNSPECIFIED ? "unknown" : absl::AsciiStrToLower(StateName(state))));
  }
  return parts.empty() ? "none" : absl::StrJoin(parts, ", ");
}

// "9990 Healthy, 10 Degraded"
std::string NodeCounts(const v1::ClusterSummary& summary) {
  std::vector<std::string> parts;
  for (const auto& count : summary.nodes()) parts.push_back(absl::StrCat(count.nodes(), " ", NodeHealthName(count.word())));
  return absl::StrJoin(parts, ", ");
}

std::string NicCounts(const v1::ClusterSummary& summary) {
  std::vector<std::string> parts;
  for (const auto& count : summary.nics())
    parts.push_back(absl::StrCat(count.nics(), " ", absl::AsciiStrToLower(StateName(count.state()))));
  return absl::StrJoin(parts, ", ");
}

// "r2ccd 0.2.0 on 3 nodes, 0.1.0 on 1 (n2)", where there are several, and jobs' plugins that are of another.
std::string Skew(const v1::ClusterSummary& summary) {
  std::vector<std::string> parts;
  if (summary.releases_size() > 1)
    for (const auto& of : summary.releases())
      parts.push_back(absl::StrCat(parts.empty() ? "r2ccd " : "", of.release(), " on ", of.nodes(), parts.empty() ? " nodes" : "",
                                   of.nodes() == 1 ? absl::StrCat(" (", of.node(), ")") : ""));
  if (const uint32_t jobs = summary.jobs_of_other_releases(); jobs > 0)
    parts.push_back(absl::StrCat(jobs, jobs == 1 ? " process has a plugin" : " processes have plugins", " of another release than r2ccd (",
                                 summary.jobs_of_other_releases_on(), ": r2ccctl jobs)"));
  return absl::StrJoin(parts, ", ");
}

// "12 processes of 3 users, 1 of them with trouble", where it is known and there are any.
std::string JobCounts(const v1::ListJobsReply& reply) {
  if (reply.summary().processes() == 0) return "";
  const auto [processes, users, bad] = std::tuple(reply.summary().processes(), reply.summary().users(), reply.summary().bad());
  return absl::StrCat(processes, processes == 1 ? " process" : " processes", " of ", users, users == 1 ? " user" : " users",
                      bad > 0 ? absl::StrCat(", ", bad, " of them with trouble") : "",
                      static_cast<uint32_t>(reply.jobs_size()) < processes ? absl::StrCat("; ", reply.jobs_size(), " of them fit") : "",
                      "\n\n");
}

// "24 h: 2 faults masked, 1 restart avoided, 0.5 to 3.0 GPU hours; 30 days: ..."; empty: nothing was saved, or a daemon of 0.2.0 does not
// report it.
std::string SavedText(const v1::StatusReply& reply) {
  std::vector<std::string> parts;
  for (const v1::Saved& saved : reply.saved()) {
    uint32_t died = 0;
    for (const v1::Saved::Died& cause : saved.died()) died += cause.jobs();
    if (saved.faults_masked() + died == 0) continue;
    std::string part = absl::StrCat(&saved == &reply.saved(0) ? "24 h: " : "30 days: ", saved.faults_masked(),
                                    saved.faults_masked() == 1 ? " fault" : " faults", " masked, ", saved.restarts(),
                                    saved.restarts() == 1 ? " restart" : " restarts", " avoided");
    if (saved.gpu_hours_high() > 0) absl::StrAppendFormat(&part, ", %.1f to %.1f GPU hours", saved.gpu_hours_low(), saved.gpu_hours_high());
    if (died > 0) absl::StrAppend(&part, ", ", died, died == 1 ? " job died" : " jobs died");
    parts.push_back(std::move(part));
  }
  return parts.empty() ? "" : absl::StrCat(absl::StrJoin(parts, "; "), " (r2ccctl report)");
}

std::string UserOf(const v1::Job& job, const Style& style) {
  const std::string name = style.user_name(job.uid());
  return name.empty() ? absl::StrCat(job.uid()) : name;
}

// How the daemon that was asked reaches `node`.
Cell Reach(const v1::StatusReply& reply, const std::string& node) {
  if (node == reply.node()) return {"this daemon", Colour::kDim};
  for (const v1::PeerStatus& peer : reply.peers()) {
    if (peer.node() != node) continue;
    if (peer.connected()) return {absl::StrCat("connected, ", peer.address())};
    return {absl::StrCat("not connected, ", peer.address(), peer.error().empty() ? "" : ": ", peer.error()), Colour::kRed};
  }
  // Without a store it calls the daemon that was asked, which has no address of it.
  return {reply.store().empty() ? "it calls here" : "through the store", Colour::kDim};
}

// Without a connection the shown state of `node` is its daemon's last report.
Cell Health(const v1::StatusReply& reply, const v1::NodeView& node) {
  for (const v1::PeerStatus& peer : reply.peers())
    if (peer.node() == node.node() && !peer.connected() && node.word() != v1::NODE_UNREACHABLE)
      return {absl::StrCat(NodeHealthName(node.word()), ", stale"), Colour::kYellow};
  return {NodeHealthName(node.word()), NodeHealthColour(node.word())};
}

}  // namespace

std::string FormatStatus(const v1::StatusReply& reply, const Style& style, bool epochs) {
  std::string text;
  const auto add = [&](absl::string_view name, const Cell& value) {
    absl::StrAppend(&text, Paint(absl::StrFormat("%-8s", name), Colour::kDim, style.colour), Paint(value.text, value.colour, style.colour),
                    "\n");
  };
  add("node", absl::StrCat(reply.node(), reply.release().empty() ? "" : absl::StrCat("  (r2ccd ", reply.release(), ")")));
  add("health", {NodeHealthName(reply.word()), NodeHealthColour(reply.word())});
  add("uptime", FormatDuration(reply.uptime_ns()));
  add("store", reply.store().empty() ? "none" : reply.store());
  add("jobs", absl::StrCat(reply.jobs()));
  if (const std::string saved = SavedText(reply); !saved.empty()) add("saved", saved);
  if (reply.has_summary()) {
    add("nodes", NodeCounts(reply.summary()));
    add("NICs", NicCounts(reply.summary()));
    if (const std::string skew = Skew(reply.summary()); !skew.empty()) add("skew", {Printable(skew), Colour::kYellow});
  }
  for (const std::string& alarm : reply.alarms()) add("alarm", {alarm, Colour::kRed});
  for (const v1::NodeView& node : reply.nodes())
    for (const v1::NicView& nic : node.nics())
      if (nic.drill_failed())
        add("drill", {Printable(absl::StrCat(NicName(node.node(), nic.name()), ": ", Drill(nic, style))), Colour::kBlue});
  if (reply.insecure())
    add("peers", {"INSECURE: everybody who can reach the daemons' port may command this node (insecure: true)", Colour::kRed});
  for (const v1::Refusal& refusal : reply.refusals())
    add("refused", {Printable(absl::StrCat(refusal.times(), " on ", refusal.listener(), ": ", refusal.reason(), "; the last ",
                                           Ago(refusal.last_ns(), style), ": ", refusal.last())),
                    Colour::kYellow});
  // Last, because it is no state.
  if (epochs) {
    add("view", EpochText(reply.epoch()));
    add("plan", EpochText(reply.plan_epoch()));
  }

  Table table({"NODE", "HEALTH", "NICS", "DAEMON"});
  for (const v1::NodeView& node : reply.nodes())
    table.AddRow({node.node(), Health(reply, node), StateCounts(node), Reach(reply, node.node())});
  // A peer of the configuration that never sent anything has no view.
  for (const v1::PeerStatus& peer : reply.peers()) {
    bool seen = false;
    for (const v1::NodeView& node : reply.nodes()) seen = seen || node.node() == peer.node();
    if (!seen && !peer.known()) table.AddRow({peer.node(), {"?", Colour::kYellow}, "no view yet", Reach(reply, peer.node())});
  }
  if (!table.empty()) absl::StrAppend(&text, "\n", table.Render(style.colour, style.width));
  if (reply.left_out() > 0) absl::StrAppend(&text, "and ", reply.left_out(), " more that are not well: `r2ccctl nic list --bad`\n");
  return text;
}

std::string FormatNics(const v1::ListNicsReply& reply, const Style& style, bool only_bad) {
  Table table({"NIC", "STATE", "LINK", Spare(3, Right("RATE")), Spare(2, Right("LIMIT")), "OPERATOR", Spare(4, Right("FLAPS")),
               Spare(1, Right("SINCE")), Spare(5, "ADDRESS"), Spare(6, "PCI"), "REASON"});
  for (const v1::NodeView& node : reply.nodes()) {
    for (const v1::NicView& nic : node.nics()) {
      table.AddRow({NicName(node.node(), nic.name()),
                    {StateName(nic.state()), StateColour(nic.state())},
                    {nic.link_up() ? "up" : "down", nic.link_up() ? Colour::kNone : Colour::kRed},
                    FormatRate(nic.rate_bits_per_s()),
                    FormatPermille(nic.operator_weight_permille()),
                    {OperatorSettings(nic, style), Colour::kBlue},
                    absl::StrCat(nic.flaps_total()),
                    Ago(nic.since_ns(), style),
                    nic.address(),
                    nic.pci(),
                    absl::StrCat(nic.reason(), nic.reason().empty() || nic.probe_trouble().empty() ? "" : "; ", nic.probe_trouble())});
    }
  }
  std::string text;
  if (reply.has_summary()) text = absl::StrCat("nodes: ", NodeCounts(reply.summary()), "; NICs: ", NicCounts(reply.summary()), "\n\n");
  return text + (!table.empty() ? table.Render(style.colour, style.width) : only_bad ? "none is bad\n" : "no NICs\n");
}

// An operator has to know this before the daemon ends.
static std::string NotKept(const v1::NicActionReply& reply) {
  if (reply.not_kept().empty()) return "";
  return Printable(absl::StrCat("NOT KEPT over a restart of r2ccd yet: ", reply.not_kept(), "; r2ccd tries again each 5 s")) + "\n";
}

std::string FormatNicAction(const v1::NicActionRequest& request, const v1::NicActionReply& reply, const Style& style) {
  const v1::NicView& nic = reply.nic();
  if (!request.job().empty()) {
    const bool drain = request.action() == v1::DRAIN;
    const std::string touched = !drain                 ? ""
                                : reply.jobs().empty() ? absl::StrCat("; no process of it is attached to ", request.node(), " now")
                                                       : absl::StrCat("; touches ", absl::StrJoin(reply.jobs(), ", "));
    return Printable(absl::StrCat(NicName(request.node(), request.nic()), reply.changed() ? ": now " : ": nothing to change, already ",
                                  drain ? "" : "not ", "drained for job ", request.job(), touched)) +
           "\n" + NotKept(reply);
  }
  return Printable(absl::StrCat(NicName(request.node(), request.nic()), reply.changed() ? ": now " : ": nothing to change, already ")) +
         Paint(StateName(nic.state()), StateColour(nic.state()), style.colour) +
         Printable(absl::StrCat(", limit ", FormatPermille(nic.operator_weight_permille()), nic.reason().empty() ? "" : ": ", nic.reason(),
                                reply.jobs().empty() ? "" : "; touches ", absl::StrJoin(reply.jobs(), ", "))) +
         "\n" + NotKept(reply);
}

std::string FormatDisagreement(const v1::DisagreementReply& reply) {
  return Printable(absl::StrCat("r2ccd of node ", reply.node(), " has an event of kind disagreement")) + "\n";
}

std::string FormatForgetNode(const v1::ForgetNodeRequest& request, const v1::ForgetNodeReply& reply) {
  std::string text =
      Printable(absl::StrCat(request.node(), " is forgotten; it had sent nothing for ", FormatDuration(reply.silent_ns()),
                             reply.configured() ? "; it is listed as a peer as long as this daemon's configuration names it" : "",
                             reply.others() > 0 ? absl::StrCat("; ", reply.others(), " other daemons have forgotten it, too") : "",
                             reply.pending() > 0 ? absl::StrCat("; ", reply.pending(), " more are being asked") : "")) +
      "\n";
  for (const auto& refusal : reply.refusals())
    absl::StrAppend(&text, Printable(absl::StrCat("not forgotten on ", refusal.node(), ": ", refusal.why())), "\n");
  const int more = static_cast<int>(reply.refused()) - reply.refusals_size();
  if (more > 0) absl::StrAppend(&text, "nor on ", more, " more\n");
  return text;
}

static std::string PlaceOf(const v1::Event& event) {
  return Printable(event.nic().empty() ? event.node() : NicName(event.node(), event.nic()));
}

void EventColumns::Grow(const v1::Event& event) {
  where = std::max(where, DisplayWidth(PlaceOf(event)));
  kind = std::max(kind, DisplayWidth(Printable(event.kind())));
}

std::string FormatEvent(const v1::Event& event, const Style& style, const EventColumns& columns) {
  const std::string time = absl::FormatTime("%Y-%m-%d %H:%M:%E3S%Ez", absl::FromUnixNanos(event.time_ns()), style.zone);
  const std::string where = PlaceOf(event);
  std::vector<std::string> details;
  // The daemon's line is whole by itself; here the NIC and its states have columns of their own.
  absl::string_view message = event.message();
  if (absl::ConsumePrefix(&message, absl::StrCat(where, " "))) absl::ConsumePrefix(&message, ": ");
  if (event.from_state() != v1::NIC_STATE_UNSPECIFIED || event.to_state() != v1::NIC_STATE_UNSPECIFIED) {
    const std::string from = StateName(event.from_state()), to = StateName(event.to_state());
    if (absl::ConsumePrefix(&message, absl::StrCat(from, " -> ", to))) absl::ConsumePrefix(&message, ": ");
    details.push_back(absl::StrCat(from, " -> ", Paint(to, StateColour(event.to_state()), style.colour)));
  }
  // The message is complete; messages of 0.2.0 had no text for people.
  if (event.kind() == "failover" && message.empty()) {
    if (!event.peer_node().empty()) details.push_back(Printable(absl::StrCat("to ", NicName(event.peer_node(), event.peer_nic()))));
    if (!event.cause().empty()) details.push_back(Printable(CauseText(event.cause())));
    details.push_back(absl::StrCat(FormatBytes(event.replayed_bytes()), " replayed in ", FormatDuration(event.duration_ns())));
  }
  if (!message.empty()) details.push_back(Printable(message));
  const std::string pid = absl::StrCat("pid ", event.pid());
  if (event.pid() != 0 && !absl::StrContains(message, pid)) details.push_back(pid);
  const auto padded = [](const std::string& text, size_t width) {
    return text + std::string(width - std::min(width, DisplayWidth(text)), ' ');
  };
  return absl::StrCat(absl::StrFormat("%6d", event.sequence()), "  ", Paint(time, Colour::kDim, style.colour), "  ",
                      padded(where, columns.where), "  ", padded(Printable(event.kind()), columns.kind), "  ", absl::StrJoin(details, ", "),
                      "\n");
}

// A line for each process that hangs.
static std::string HangLines(const v1::ListJobsReply& reply, const Style& style) {
  std::string lines;
  for (const v1::Job& job : reply.jobs()) {
    if (!job.waiting().hangs()) continue;
    const v1::JobWaiting& waiting = job.waiting();
    const std::string requests = waiting.requests() == 0 ? "" : absl::StrCat(" with ", waiting.requests(), " requests outstanding");
    const std::string name = absl::StrCat(job.job().empty() ? "job" : job.job(), " (pid ", job.pid(), ")");
    absl::StrAppend(&lines, Paint("hangs: ", Colour::kRed, style.colour),
                    Printable(absl::StrCat(name, requests, ", last progress ", Ago(waiting.since_ns(), style), ": ", waiting.text())),
                    "\n");
  }
  return lines.empty() ? lines : lines + "\n";
}

// A line for each communicator that does not go NCCL's own way.
static std::string WayLines(const v1::ListJobsReply& reply, const Style& style) {
  std::string lines;
  for (const v1::Job& job : reply.jobs())
    for (const v1::AllReduceWay& way : job.ways()) {
      if (way.way() == "nccl") continue;
      absl::StrAppend(&lines, Paint("allreduce: ", Colour::kBlue, style.colour),
                      Printable(absl::StrCat(job.job().empty() ? "job" : job.job(), " (pid ", job.pid(), "), ", WayText(way),
                                             ", since call ", way.call(), " ", Ago(way.since_ns(), style))),
                      "\n");
    }
  return lines.empty() ? lines : lines + "\n";
}

std::string FormatJobs(const v1::ListJobsReply& reply, const Style& style) {
  std::vector<Column> columns = {Right("PID"),
                                 Spare(4, "USER"),
                                 "JOB",
                                 Spare(6, "PROCESS"),
                                 Spare(5, Right("ATTACHED")),
                                 "RAIL",
                                 "NIC",
                                 Spare(1, Right("SENT")),
                                 Spare(2, Right("RECEIVED")),
                                 Spare(3, Right("REPLAYED")),
                                 Right("FAILOVERS"),
                                 Right("LOST"),
                                 "PEERS"};
  // Shown if they are not all the daemon's own.
  const bool skewed = !reply.release().empty() && std::any_of(reply.jobs().begin(), reply.jobs().end(),
                                                              [&](const v1::Job& job) { return job.release() != reply.release(); });
  if (skewed) columns.push_back("PLUGIN");
  Table table(std::move(columns));
  for (const v1::Job& job : reply.jobs()) {
    // Its first rail is on the job's own line, the others below it.
    std::vector<Cell> job_cells = {absl::StrCat(job.pid(), job.pid_claimed() ? "?" : ""), UserOf(job, style), job.job(), job.process_id(),
                                   Ago(job.attached_ns(), style)};
    Cell lost(job.evidence_dropped() == 0 ? "" : absl::StrCat(job.evidence_dropped()), Colour::kYellow);
    Cell peers(absl::StrJoin(job.peer_nodes(), " "));
    Cell plugin(job.release().empty() ? "0.1.0" : job.release(), job.release() == reply.release() ? Colour::kNone : Colour::kYellow);
    v1::RailTotals none;
    for (int r = 0; r < std::max(1, job.rails_size()); ++r) {
      const v1::RailTotals& rail = job.rails_size() == 0 ? none : job.rails(r);
      std::vector<Cell> cells = job_cells;
      if (job.rails_size() == 0) {
        cells.insert(cells.end(), {"-", "-", "", "", "", ""});
      } else {
        cells.insert(cells.end(), {rail.rail(),
                                   rail.nic().empty() ? Cell("not matched", Colour::kYellow) : Cell(rail.nic()),
                                   FormatBytes(rail.sent_bytes()),
                                   FormatBytes(rail.received_bytes()),
                                   FormatBytes(rail.replayed_bytes()),
                                   {absl::StrCat(rail.failovers()), rail.failovers() == 0 ? Colour::kNone : Colour::kYellow}});
      }
      cells.push_back(lost);
      cells.push_back(peers);
      if (skewed) cells.push_back(plugin);
      table.AddRow(std::move(cells));
      job_cells.assign(5, Cell(""));
      lost = peers = plugin = Cell("");
    }
  }
  return JobCounts(reply) + HangLines(reply, style) + WayLines(reply, style) +
         (table.empty() ? "no jobs attached\n" : table.Render(style.colour, style.width));
}

std::string FormatEndedJobs(const v1::ListJobsReply& reply, const Style& style) {
  Table table({"ENDED", "USER", "WHY"});
  for (const v1::Job& job : reply.jobs())
    for (const v1::GaveUp& gave_up : job.gave_up()) table.AddRow({Ago(job.ended_ns(), style), UserOf(job, style), gave_up.text()});
  return JobCounts(reply) + (table.empty() ? "no job that ended had given up on a peer\n" : table.Render(style.colour, style.width));
}

std::string FormatPlan(const v1::Plan& plan, const Style& style) {
  Table table({"NIC", "STATE", Right("WEIGHT")});
  for (const v1::PlannedNic& nic : plan.nics())
    table.AddRow({NicName(nic.node(), nic.nic()),
                  {StateName(nic.state()), StateColour(nic.state())},
                  {FormatPermille(nic.weight_permille()), nic.weight_permille() == 0 ? Colour::kRed : Colour::kNone}});
  std::string text = absl::StrCat(Paint("plan ", Colour::kDim, style.colour), EpochText(plan.epoch()), "\n", table.empty() ? "" : "\n",
                                  table.empty() ? "" : table.Render(style.colour, style.width));
  for (const v1::PlannedNic& nic : plan.nics())
    for (const std::string& job : nic.drained_jobs())
      absl::StrAppend(&text, Paint("drained: ", Colour::kBlue, style.colour),
                      Printable(absl::StrCat(NicName(nic.node(), nic.nic()), " for job ", job)), "\n");
  for (const v1::BrokenPath& path : plan.broken_paths())
    absl::StrAppend(
        &text, Paint("forbidden: ", Colour::kRed, style.colour),
        Printable(absl::StrCat("the path between ", NicName(path.node(), path.nic()), " and ", NicName(path.peer_node(), path.peer_nic()))),
        "\n");
  return text;
}

}  // namespace r2cc::client
