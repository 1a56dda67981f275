#include "client/jobs/job_report.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "client/table.h"
#include "client/units.h"

namespace r2cc::client {
namespace {

constexpr double kNanosPerHour = 3600e9;

// What began so shortly before a peer was given up is what the job died of.
constexpr int64_t kSameFaultNs = 2'000'000'000;
// Nodes that a line names; the table has all.
constexpr int kNodesNamed = 8;

// The rails that were left went on meanwhile: so much was lost at most.
v1::Figure GoodputLost(const v1::JobReport& report, int64_t running_ns) {
  v1::Figure figure;
  figure.set_unit("bytes");
  if (report.faults().empty()) {
    figure.set_value(0);
    figure.set_from("no fault");
  } else if (running_ns <= 0 || report.sent_bytes() == 0) {
    figure.set_from("not known: the job has not told how much it moved");
  } else {
    const double rate = static_cast<double>(report.sent_bytes()) / static_cast<double>(running_ns) * report.processes();
    figure.set_value(rate * static_cast<double>(report.stall_ns()) + static_cast<double>(report.replayed_bytes()));
    figure.set_from("at most: the stalls at the job's mean rate, and what was sent twice");
  }
  return figure;
}

v1::Figure RestartFigure(const v1::JobReport& report, const RestartCost& cost) {
  v1::Figure figure;
  figure.set_unit("process hours");
  if (report.faults_masked() == 0) {
    figure.set_value(0);
    figure.set_from("no fault was masked");
  } else if (cost.restart_ns == 0 || cost.checkpoint_ns == 0) {
    figure.set_from("not known: say --restart (from the error until it computes again) and --checkpoint (the time between two)");
  } else {
    // Half of the time since the last checkpoint is lost, on average.
    const double each = static_cast<double>(cost.restart_ns) + static_cast<double>(cost.checkpoint_ns) / 2;
    figure.set_value(each * report.faults_masked() * report.processes() / kNanosPerHour);
    figure.set_from(absl::StrCat(report.faults_masked(), " restarts, each of ", FormatDuration(cost.restart_ns), " and half of ",
                                 FormatDuration(cost.checkpoint_ns), " done again, by ", report.processes(),
                                 report.processes() == 1 ? " process" : " processes"));
  }
  return figure;
}

v1::JobReport MakeReport(const v1::ReportJobsReply::Whole& whole, const std::string& node, const RestartCost& cost) {
  const v1::JobSums& sums = whole.sums();
  v1::JobReport report;
  report.set_job(sums.job());
  report.set_node(node);
  report.set_processes(sums.processes());
  report.set_attached(sums.attached());
  report.set_begun_ns(sums.begun_ns());
  report.set_ended_ns(sums.ended_ns());
  report.set_sent_bytes(sums.sent_bytes());
  report.set_received_bytes(sums.received_bytes());
  report.set_replayed_bytes(sums.replayed_bytes());
  report.set_faults_untold(sums.faults_untold());
  *report.mutable_gave_up() = sums.gave_up();
  report.set_gave_up_more(sums.gave_up_more());
  *report.mutable_nodes() = whole.nodes();
  std::vector<const v1::Job::Fault*> faults;
  for (const v1::Job::Fault& fault : sums.faults()) faults.push_back(&fault);
  std::sort(faults.begin(), faults.end(), [](const auto* a, const auto* b) { return a->time_ns() < b->time_ns(); });
  for (const v1::Job::Fault* const fault : faults) {
    v1::ReportedFault& told = *report.add_faults();
    told.set_nic(fault->nic());
    told.set_cause(fault->cause());
    told.set_time_ns(fault->time_ns());
    told.set_stall_ns(fault->stall_ns());
    told.set_replayed_bytes(fault->replayed_bytes());
    *told.mutable_nodes() = fault->nodes();
    told.set_nodes_more(fault->nodes_more());
    told.set_masked(!sums.has_gave_up_begun_ns() || fault->time_ns() + kSameFaultNs < sums.gave_up_begun_ns());
    if (told.masked())
      report.set_faults_masked(report.faults_masked() + 1);
    else
      report.set_faults_not_masked(report.faults_not_masked() + 1);
    report.set_stall_ns(report.stall_ns() + fault->stall_ns());
    report.set_longest_stall_ns(std::max(report.longest_stall_ns(), fault->stall_ns()));
  }
  *report.mutable_goodput_lost() = GoodputLost(report, sums.running_ns());
  *report.mutable_restart_cost() = RestartFigure(report, cost);
  return report;
}

std::string NodesText(const std::vector<std::string>& nodes) {
  const size_t named = std::min<size_t>(nodes.size(), kNodesNamed);
  const std::string more = nodes.size() > named ? absl::StrCat(" and ", nodes.size() - named, " more") : "";
  return absl::StrCat(absl::StrJoin(nodes.begin(), nodes.begin() + static_cast<ptrdiff_t>(named), " "), more);
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
    add("job",
        absl::StrCat(report.job(), " on ", NodesText(nodes), ": ", report.processes(), report.processes() == 1 ? " process" : " processes",
                     report.attached() > 0 ? absl::StrCat(", ", report.attached(), " still attached") : ""));
    add("ran", absl::StrCat(time(report.begun_ns()), " to ", time(report.ended_ns()), ", ",
                            FormatDuration(report.ended_ns() - report.begun_ns())));
    add("moved", absl::StrCat(FormatBytes(report.sent_bytes()), " sent, ", FormatBytes(report.received_bytes()), " received"));
    add("faults", absl::StrCat(report.faults_masked(), " masked, ", report.faults_not_masked(), " not",
                               report.faults_untold() > 0 ? absl::StrCat("; ", report.faults_untold(), " more are not told apart") : ""));
    add("stalls", absl::StrCat(FormatDuration(report.stall_ns()), " in all, the longest ", FormatDuration(report.longest_stall_ns())));
    add("replayed", FormatBytes(report.replayed_bytes()));
    add("goodput lost", FigureText(report.goodput_lost()));
    add("a restart each", FigureText(report.restart_cost()));
    for (const std::string& line : report.gave_up()) add("gave up", line);
    if (report.gave_up_more() > 0) add("gave up", absl::StrCat("and ", report.gave_up_more(), " times more"));
    Table faults({"TIME", "NIC", "ON", "CAUSE", Right("STALL"), Right("REPLAYED"), ""});
    for (const v1::ReportedFault& fault : report.faults()) {
      std::string on = absl::StrJoin(fault.nodes(), " ");
      if (fault.nodes_more() > 0) absl::StrAppend(&on, " and ", fault.nodes_more(), " more");
      faults.AddRow({time(fault.time_ns()), fault.nic(), on, fault.cause(), FormatDuration(fault.stall_ns()),
                     FormatBytes(fault.replayed_bytes()), fault.masked() ? "masked" : "not masked"});
    }
    if (!faults.empty()) absl::StrAppend(&text, faults.Render(style.colour));
    if (report.nodes_size() < 2) continue;
    Table table({"NODE", Right("PROCESSES"), Right("ATTACHED"), Right("SENT"), Right("RECEIVED"), Right("REPLAYED"), Right("FAULTS")});
    for (const v1::NodeOfJob& node : report.nodes())
      table.AddRow({node.node(), absl::StrCat(node.processes()), absl::StrCat(node.attached()), FormatBytes(node.sent_bytes()),
                    FormatBytes(node.received_bytes()), FormatBytes(node.replayed_bytes()), absl::StrCat(node.faults())});
    absl::StrAppend(&text, table.Render(style.colour));
  }
  if (text.empty()) text = "no job is known\n";
  for (const v1::ReportJobsReply::Missing& missing : reports.missing())
    add("not told by", absl::StrCat(missing.node(), ": ", missing.why()));
  if (reports.missing_more() > 0) add("not told by", absl::StrCat(reports.missing_more(), " nodes more"));
  if (reports.jobs_left_out() > 0) add("left out", absl::StrCat(reports.jobs_left_out(), " more jobs: name the one that is meant"));
  return text;
}

}  // namespace r2cc::client
