#include "client/jobs/job_report.h"

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/core/table.h"
#include "client/core/texts.h"
#include "client/core/units.h"
#include "plan/page/ring.h"

namespace r2cc::client {
namespace {

constexpr double kNanosPerHour = 3600e9;

// Nodes that a line names; the table has all.
constexpr int kNodesNamed = 8;

// The bytes that the job would have moved meanwhile at its mean rate.
v1::Figure GoodputLost(const v1::JobReport& report, int64_t running_ns) {
  v1::Figure figure;
  figure.set_unit("bytes");
  double lost_ns = static_cast<double>(report.stall_ns());
  for (const v1::ReducedTime& reduced : report.reduced())
    lost_ns += static_cast<double>(reduced.time_ns()) * (reduced.rails() - reduced.usable()) / reduced.rails();
  if (report.faults().empty() && lost_ns == 0) {
    figure.set_value(0);
    figure.set_from("no fault");
  } else if (running_ns <= 0 || report.sent_bytes() == 0) {
    figure.set_from("not known: the job has not reported how much it moved");
  } else {
    const double rate = static_cast<double>(report.sent_bytes()) / static_cast<double>(running_ns) * report.processes();
    figure.set_value(rate * lost_ns + static_cast<double>(report.replayed_bytes()));
    figure.set_from("about: the stalls and the missing part of the rails, at the job's mean rate, and what was sent twice");
  }
  return figure;
}

v1::Figure RestartFigure(const v1::JobReport& report) {
  v1::Figure figure;
  figure.set_unit("process hours");
  if (report.restarts_saved() == 0) {
    figure.set_value(0);
    figure.set_from("no fault was masked");
    return figure;
  }
  figure.set_value(static_cast<double>(RestartCost{report.restart_ns(), report.checkpoint_ns()}.each_ns()) * report.restarts_saved() *
                   report.processes() / kNanosPerHour);
  const bool one = report.restarts_saved() == 1;
  figure.set_from(absl::StrCat(report.restarts_saved(), one ? " restart" : " restarts", one ? "" : ", each", " of ",
                               FormatDuration(report.restart_ns()), " and half of ", FormatDuration(report.checkpoint_ns()),
                               " done again, by ", report.processes(), report.processes() == 1 ? " process" : " processes",
                               report.costs_assumed() ? "; assumed: set --restart and --checkpoint" : ""));
  return figure;
}

// Stalls that overlap are one: several rails that were lost at once held up the same messages.
int64_t StallsTogether(const v1::JobReport& report, const v1::JobSums& sums) {
  std::vector<std::pair<int64_t, int64_t>> stalls;
  int64_t sum = 0;
  for (const v1::Job::Fault& fault : sums.faults()) {
    if (fault.stall_end_ns() == 0)
      sum += fault.stall_ns();
    else
      stalls.emplace_back(fault.stall_end_ns() - fault.stall_ns(), fault.stall_end_ns());
  }
  std::sort(stalls.begin(), stalls.end());
  int64_t until = std::numeric_limits<int64_t>::min();
  for (const auto& [begun, ended] : stalls) {
    if (ended > until) sum += ended - std::max(begun, until);
    until = std::max(until, ended);
  }
  return std::max(sum, report.longest_stall_ns());
}

void AddDeath(const v1::JobSums& sums, const JobAccount& account, v1::JobReport* report) {
  for (const std::string& line : sums.gave_up()) report->add_died(line);
  report->set_died_ns(account.died_ns);
  for (const v1::JobFailure* const failure : FailuresByCause(sums)) {
    // The line of the process that gave up has more details.
    if (failure->failure() == static_cast<uint32_t>(plan::Failure::kDeadline) && sums.gave_up_size() > 0) continue;
    const std::string rank = failure->rank_plus_one() > 0 ? absl::StrCat(" (rank ", failure->rank_plus_one() - 1, ")") : "";
    report->add_died(absl::StrCat(failure->node(), rank, " lost ", failure->peer_node(), ": ",
                                  failure->failure() == static_cast<uint32_t>(plan::Failure::kPeerGone) ? "rank lost: " : "",
                                  plan::FailureText(failure->failure())));
  }
  if (report->died_size() > 0 || sums.attached() > 0) return;
  // No process reports a cause, and it ended without progress past a fault.
  for (const v1::ReportedFault& fault : report->faults())
    if (!fault.masked())
      report->add_died(absl::StrCat("it ended without progress after ", absl::StrJoin(fault.nodes(), " "), " lost ", fault.nic(), ": ",
                                    CauseText(fault.cause())));
}

void AddReduced(const v1::ReducedRails& reduced, int64_t ended_ns, v1::JobReport* report) {
  const int64_t time_ns = (reduced.ended_ns() == 0 ? ended_ns : reduced.ended_ns()) - reduced.begun_ns();
  if (time_ns <= 0) return;
  v1::ReducedTime* to = nullptr;
  for (v1::ReducedTime& one : *report->mutable_reduced())
    if (one.usable() == reduced.usable() && one.rails() == reduced.rails()) to = &one;
  if (to == nullptr) {
    to = report->add_reduced();
    to->set_usable(reduced.usable());
    to->set_rails(reduced.rails());
  }
  to->set_time_ns(to->time_ns() + time_ns);
}

v1::JobReport MakeReport(const v1::ReportJobsReply::Whole& whole, const std::string& node, const RestartCost& cost) {
  const v1::JobSums& sums = whole.sums();
  v1::JobReport report;
  report.set_job(sums.job());
  report.set_run(sums.run());
  report.set_watched_since_ns(sums.watched_since_ns());
  report.set_ended_silently(sums.ended_silently());
  report.set_ends_not_seen(sums.ends_not_seen());
  report.set_costs_assumed(cost.restart_ns == 0 || cost.checkpoint_ns == 0);
  report.set_restart_ns(cost.restart_ns == 0 ? kRestartCostHigh.restart_ns : cost.restart_ns);
  report.set_checkpoint_ns(cost.checkpoint_ns == 0 ? kRestartCostHigh.checkpoint_ns : cost.checkpoint_ns);
  for (const v1::ReducedRails& reduced : sums.reduced()) AddReduced(reduced, sums.ended_ns(), &report);
  report.set_node(node);
  report.set_processes(sums.processes());
  report.set_attached(sums.attached());
  report.set_begun_ns(sums.begun_ns());
  report.set_ended_ns(sums.ended_ns());
  report.set_sent_bytes(sums.sent_bytes());
  report.set_received_bytes(sums.received_bytes());
  report.set_replayed_bytes(sums.replayed_bytes());
  report.set_faults_untold(sums.faults_untold());
  *report.mutable_ways() = sums.ways();
  *report.mutable_gave_up() = sums.gave_up();
  report.set_gave_up_more(sums.gave_up_more());
  *report.mutable_nodes() = whole.nodes();
  const JobAccount account = AccountOf(sums, {report.restart_ns(), report.checkpoint_ns()});
  for (const JobAccount::Fault& judged : account.faults) {
    const v1::Job::Fault& fault = *judged.fault;
    v1::ReportedFault& reported = *report.add_faults();
    reported.set_nic(fault.nic());
    reported.set_cause(fault.cause());
    reported.set_time_ns(fault.time_ns());
    reported.set_stall_ns(fault.stall_ns());
    reported.set_replayed_bytes(fault.replayed_bytes());
    *reported.mutable_nodes() = fault.nodes();
    reported.set_nodes_more(fault.nodes_more());
    *reported.mutable_held() = fault.held();
    reported.set_held_more(fault.held_more());
    reported.set_masked(judged.masked);
    reported.set_open(judged.open);
    reported.set_same_restart(judged.same_restart);
    reported.set_on_purpose(fault.on_purpose());
    report.set_longest_stall_ns(std::max(report.longest_stall_ns(), fault.stall_ns()));
  }
  report.set_faults_masked(account.masked);
  report.set_faults_open(account.open);
  report.set_faults_not_masked(account.not_masked);
  report.set_on_purpose(account.on_purpose);
  report.set_restarts_saved(account.restarts);
  report.set_stall_ns(StallsTogether(report, sums));
  AddDeath(sums, account, &report);
  *report.mutable_goodput_lost() = GoodputLost(report, sums.running_ns());
  *report.mutable_restart_cost() = RestartFigure(report);
  return report;
}

std::string NodesText(const std::vector<std::string>& nodes) {
  const size_t named = std::min<size_t>(nodes.size(), kNodesNamed);
  const std::string more = nodes.size() > named ? absl::StrCat(" and ", nodes.size() - named, " more") : "";
  return absl::StrCat(absl::StrJoin(nodes.begin(), nodes.begin() + static_cast<ptrdiff_t>(named), " "), more);
}

std::string OnPurposeText(uint32_t count) {
  return count == 0 ? "" : absl::StrCat("; ", count, " on purpose (fail-nic, drain --now, R2CC_FAIL_RAILS), not counted");
}

std::string OutcomeText(const v1::ReportedFault& fault) {
  if (fault.on_purpose()) return fault.masked() ? "on purpose" : fault.open() ? "on purpose, no progress yet" : "on purpose, not masked";
  if (fault.masked()) return fault.same_restart() ? "masked, same restart" : "masked";
  return fault.open() ? "no progress yet" : "not masked";
}

std::string FigureText(const v1::Figure& figure) {
  if (!figure.has_value()) return figure.from();
  const std::string value = figure.unit() == "bytes" ? FormatBytes(static_cast<uint64_t>(figure.value()))
                                                     : absl::StrFormat("%.1f %s", figure.value(), figure.unit());
  return absl::StrCat(value, " (", figure.from(), ")");
}

}  // namespace

v1::JobReports MakeReports(const v1::ReportJobsReply& gathered, const RestartCost& cost) {
  v1::JobReports all;
  for (const v1::ReportJobsReply::Whole& whole : gathered.jobs()) *all.add_jobs() = MakeReport(whole, gathered.node(), cost);
  std::sort(all.mutable_jobs()->begin(), all.mutable_jobs()->end(),
            [](const v1::JobReport& a, const v1::JobReport& b) { return a.begun_ns() > b.begun_ns(); });
  *all.mutable_missing() = gathered.missing();
  all.set_missing_more(gathered.missing_more());
  all.set_jobs_left_out(gathered.jobs_left_out());
  return all;
}

std::string FormatSaved(const v1::ReportJobsReply& answer, const RestartCost& cost, bool only_here, const Style& style) {
  std::string text;
  const auto time = [&](int64_t ns) { return absl::FormatTime("%Y-%m-%d %H:%M", absl::FromUnixNanos(ns), style.zone); };
  const auto add = [&](const char* name, const std::string& value) {
    absl::StrAppend(&text, Paint(absl::StrFormat("%-12s", name), Colour::kDim, style.colour), Printable(value), "\n");
  };
  const v1::Saved& saved = answer.saved();
  const auto restart = [](const RestartCost& of) {
    return absl::StrCat("a restart of ", FormatDuration(of.restart_ns), " and half of ", FormatDuration(of.checkpoint_ns), " done again");
  };
  const bool stated = cost.restart_ns != 0 && cost.checkpoint_ns != 0;
  add("from", absl::StrCat(time(saved.since_ns()), " to ", time(saved.until_ns()),
                           only_here ? absl::StrCat(", node ", answer.node()) : ", all nodes"));
  add("faults", absl::StrCat(saved.faults_masked(), " masked, ", saved.faults_not_masked(), " not", OnPurposeText(saved.on_purpose())));
  add("restarts", absl::StrCat(saved.restarts(), " avoided, in ", saved.jobs(), saved.jobs() == 1 ? " job" : " jobs"));
  if (stated)
    add("GPU hours", absl::StrFormat("%.1f saved (%s; a process is a GPU)", saved.gpu_hours_high(), restart(cost)));
  else
    add("GPU hours", absl::StrFormat("%.1f to %.1f saved (assumed: %s, to %s; a process is a GPU; set --restart and --checkpoint)",
                                     saved.gpu_hours_low(), saved.gpu_hours_high(), restart(kRestartCostLow), restart(kRestartCostHigh)));
  add("kept alive", absl::StrFormat("%.0f minutes of jobs after a fault", static_cast<double>(saved.alive_ns()) / 60e9));
  add("fewer rails", FormatDuration(saved.reduced_ns()));
  for (const v1::Saved::Died& died : saved.died()) {
    std::string why = died.cause();
    for (const Death death : kDeaths)
      if (died.cause() == DeathName(death)) why = DeathText(death);
    add("died", absl::StrCat(died.jobs(), died.jobs() == 1 ? " job: " : " jobs: ", why));
  }
  for (const v1::ReportJobsReply::Missing& missing : answer.missing()) add("no answer", absl::StrCat(missing.node(), ": ", missing.why()));
  if (answer.missing_more() > 0) add("no answer", absl::StrCat(answer.missing_more(), " nodes more"));
  if (answer.jobs_left_out() > 0) add("left out", absl::StrCat(answer.jobs_left_out(), " jobs, for which there was no place"));
  return text;
}

std::string FormatReports(const v1::JobReports& reports, const Style& style) {
  std::string text;
  const auto time = [&](int64_t ns) { return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixNanos(ns), style.zone); };
  const auto add = [&](const char* name, const std::string& value) {
    absl::StrAppend(&text, Paint(absl::StrFormat("%-15s", name), Colour::kDim, style.colour), Printable(value), "\n");
  };
  for (const v1::JobReport& report : reports.jobs()) {
    if (!text.empty()) text += "\n";
    std::vector<std::string> nodes;
    for (const v1::NodeOfJob& node : report.nodes()) nodes.push_back(node.node());
    add("job", absl::StrCat(report.job(), report.run().empty() ? "" : absl::StrCat(", run ", report.run(), ","), " on ", NodesText(nodes),
                            ": ", report.processes(), report.processes() == 1 ? " process" : " processes",
                            report.attached() > 0 ? absl::StrCat(", ", report.attached(), " still attached") : ""));
    add("ran", absl::StrCat(time(report.begun_ns()), " to ", time(report.ended_ns()), ", ",
                            FormatDuration(report.ended_ns() - report.begun_ns())));
    if (report.watched_since_ns() != 0)
      add("watched since", absl::StrCat(time(report.watched_since_ns()), ": what happened before is missing"));
    for (const std::string& line : report.died()) {
      const bool first = &line == &report.died(0) && report.died_ns() != 0;
      add("died", first ? absl::StrCat(time(report.died_ns()), ": ", line) : line);
    }
    if (report.ended_silently() > 0) add("ended", absl::StrCat(report.ended_silently(), " without exit(): killed, or by _exit()"));
    if (report.ends_not_seen() > 0) add("ended", absl::StrCat(report.ends_not_seen(), " while r2ccd did not run: how is not known"));
    add("moved", absl::StrCat(FormatBytes(report.sent_bytes()), " sent, ", FormatBytes(report.received_bytes()), " received"));
    add("faults", absl::StrCat(report.faults_masked(), " masked, ", report.faults_not_masked(), " not",
                               report.faults_open() > 0 ? absl::StrCat(", ", report.faults_open(), " without progress so far") : "",
                               OnPurposeText(report.on_purpose()),
                               report.faults_untold() > 0 ? absl::StrCat("; ", report.faults_untold(), " more are not listed") : ""));
    add("stalls", absl::StrCat(FormatDuration(report.stall_ns()), " in all, the longest ", FormatDuration(report.longest_stall_ns())));
    for (const v1::ReducedTime& reduced : report.reduced())
      add("fewer rails", absl::StrCat(FormatDuration(reduced.time_ns()), " of ", FormatDuration(report.ended_ns() - report.begun_ns()),
                                      " with ", reduced.usable(), " of ", reduced.rails(), " rails"));
    for (const v1::AllReduceWay& way : report.ways())
      add("all_reduce", absl::StrCat(way.node(), ", ", WayText(way), ", since ", time(way.since_ns()), " (call ", way.call(), ")",
                                     way.changes() > 1 ? absl::StrCat(", change ", way.changes()) : ""));
    add("replayed", FormatBytes(report.replayed_bytes()));
    add("goodput lost", FigureText(report.goodput_lost()));
    add("saved", FigureText(report.restart_cost()));
    if (report.gave_up_more() > 0) add("died", absl::StrCat("and ", report.gave_up_more(), " more processes gave up"));
    Table faults({"TIME", "NIC", "ON", "CAUSE", Right("STALL"), Right("REPLAYED"), ""});
    for (const v1::ReportedFault& fault : report.faults()) {
      std::string on = absl::StrJoin(fault.nodes(), " ");
      if (fault.nodes_more() > 0) absl::StrAppend(&on, " and ", fault.nodes_more(), " more");
      faults.AddRow({time(fault.time_ns()), fault.nic(), on, CauseText(fault.cause()), FormatDuration(fault.stall_ns()),
                     FormatBytes(fault.replayed_bytes()), OutcomeText(fault)});
    }
    if (!faults.empty()) absl::StrAppend(&text, faults.Render(style.colour, style.width));
    Table held({"OPERATION", "COMMUNICATOR", Right("RANK"), "ON", "NIC", "LOST", Right("WAITED")});
    for (const v1::ReportedFault& fault : report.faults()) {
      for (const v1::HeldOperation& one : fault.held())
        held.AddRow({absl::StrCat(one.function(), one.number() > 0 ? absl::StrCat(" ", one.number()) : ""),
                     one.communicator_name().empty() ? absl::StrFormat("%x", one.communicator()) : one.communicator_name(),
                     absl::StrCat(one.rank(), one.ranks() > 0 ? absl::StrCat(" of ", one.ranks()) : ""), one.node(), fault.nic(),
                     time(fault.time_ns()), FormatDuration(one.held_ns())});
      if (fault.held_more() > 0)
        held.AddRow({absl::StrCat("and ", fault.held_more(), " more"), "", "", "", fault.nic(), time(fault.time_ns()), ""});
    }
    if (!held.empty()) absl::StrAppend(&text, held.Render(style.colour, style.width));
    if (report.nodes_size() < 2) continue;
    Table table({"NODE", Right("PROCESSES"), Right("ATTACHED"), Right("SENT"), Right("RECEIVED"), Right("REPLAYED"), Right("FAULTS")});
    for (const v1::NodeOfJob& node : report.nodes())
      table.AddRow({node.node(), absl::StrCat(node.processes()), absl::StrCat(node.attached()), FormatBytes(node.sent_bytes()),
                    FormatBytes(node.received_bytes()), FormatBytes(node.replayed_bytes()), absl::StrCat(node.faults())});
    absl::StrAppend(&text, table.Render(style.colour, style.width));
  }
  if (text.empty()) text = "no job is known\n";
  for (const v1::ReportJobsReply::Missing& missing : reports.missing()) add("no answer", absl::StrCat(missing.node(), ": ", missing.why()));
  if (reports.missing_more() > 0) add("no answer", absl::StrCat(reports.missing_more(), " nodes more"));
  if (reports.jobs_left_out() > 0) add("left out", absl::StrCat(reports.jobs_left_out(), " more jobs: name the one that is meant"));
  return text;
}

}  // namespace r2cc::client
