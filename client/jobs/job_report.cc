#include "client/jobs/job_report.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "client/table.h"
#include "client/units.h"

namespace r2cc::client {
namespace {

constexpr double kNanosPerSecond = 1e9;
constexpr double kNanosPerHour = 3600e9;

struct Gathered {
  v1::JobReport report;
  double running_ns = 0;          // of all processes together
  int64_t gave_up_begun_ns = -1;  // when the first loss began that ended it; -1: it did not
};

void AddFault(const v1::Job::Fault& fault, std::vector<v1::ReportedFault>* faults) {
  const auto same = std::find_if(faults->begin(), faults->end(), [&](const v1::ReportedFault& one) {
    return one.nic() == fault.nic() && std::abs(one.time_ns() - fault.time_ns()) <= kOneFaultNs;
  });
  const bool fresh = same == faults->end();
  v1::ReportedFault& merged = fresh ? faults->emplace_back() : *same;
  if (fresh) {
    merged.set_nic(fault.nic());
    merged.set_time_ns(fault.time_ns());
  }
  // The first sign names the cause.
  if (merged.cause().empty() || fault.time_ns() < merged.time_ns()) merged.set_cause(fault.cause());
  merged.set_time_ns(std::min(merged.time_ns(), fault.time_ns()));
  merged.set_stall_ns(std::max(merged.stall_ns(), fault.stall_ns()));
  merged.set_replayed_bytes(merged.replayed_bytes() + fault.replayed_bytes());
}

void AddProcess(const v1::Job& job, int64_t now_ns, Gathered* gathered, std::vector<v1::ReportedFault>* faults) {
  v1::JobReport& report = gathered->report;
  report.set_processes(report.processes() + 1);
  if (job.ended_ns() == 0) report.set_attached(report.attached() + 1);
  const int64_t ended = job.ended_ns() == 0 ? now_ns : job.ended_ns();
  report.set_begun_ns(report.begun_ns() == 0 ? job.attached_ns() : std::min(report.begun_ns(), job.attached_ns()));
  report.set_ended_ns(std::max(report.ended_ns(), ended));
  gathered->running_ns += static_cast<double>(std::max<int64_t>(ended - job.attached_ns(), 0));
  for (const v1::RailTotals& rail : job.rails()) {
    report.set_sent_bytes(report.sent_bytes() + rail.sent_bytes());
    report.set_received_bytes(report.received_bytes() + rail.received_bytes());
    report.set_replayed_bytes(report.replayed_bytes() + rail.replayed_bytes());
  }
  report.set_faults_untold(report.faults_untold() + job.faults_untold());
  for (const v1::Job::Fault& fault : job.faults()) AddFault(fault, faults);
  for (const v1::GaveUp& gave_up : job.gave_up()) {
    report.add_gave_up(gave_up.text());
    const int64_t begun = gave_up.time_ns() - gave_up.lasted_ns();
    gathered->gave_up_begun_ns = gathered->gave_up_begun_ns < 0 ? begun : std::min(gathered->gave_up_begun_ns, begun);
  }
}

// The rails that were left went on meanwhile: so much was lost at most.
v1::Figure GoodputLost(const Gathered& gathered) {
  v1::Figure figure;
  figure.set_unit("bytes");
  const v1::JobReport& report = gathered.report;
  if (report.faults().empty()) {
    figure.set_value(0);
    figure.set_from("no fault");
  } else if (gathered.running_ns <= 0 || report.sent_bytes() == 0) {
    figure.set_from("not known: the job has not told how much it moved");
  } else {
    const double rate = static_cast<double>(report.sent_bytes()) / gathered.running_ns * report.processes();
    figure.set_value(rate * static_cast<double>(report.stall_ns()) + static_cast<double>(report.replayed_bytes()));
    figure.set_from("at most: the stalls at the job's mean rate on this node, and what was sent twice");
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
                                 FormatDuration(cost.checkpoint_ns), " done again, by the ", report.processes(),
                                 " processes of this node"));
  }
  return figure;
}

void Finish(const RestartCost& cost, std::vector<v1::ReportedFault> faults, Gathered* gathered) {
  v1::JobReport& report = gathered->report;
  std::sort(faults.begin(), faults.end(), [](const auto& a, const auto& b) { return a.time_ns() < b.time_ns(); });
  for (v1::ReportedFault& fault : faults) {
    // What began as it lost its peer is what it died of.
    const bool masked = gathered->gave_up_begun_ns < 0 || fault.time_ns() + kOneFaultNs < gathered->gave_up_begun_ns;
    fault.set_masked(masked);
    if (masked)
      report.set_faults_masked(report.faults_masked() + 1);
    else
      report.set_faults_not_masked(report.faults_not_masked() + 1);
    report.set_stall_ns(report.stall_ns() + fault.stall_ns());
    report.set_longest_stall_ns(std::max(report.longest_stall_ns(), fault.stall_ns()));
    *report.add_faults() = std::move(fault);
  }
  *report.mutable_goodput_lost() = GoodputLost(*gathered);
  *report.mutable_restart_cost() = RestartFigure(report, cost);
}

std::string FigureText(const v1::Figure& figure) {
  if (!figure.has_value()) return figure.from();
  const std::string value = figure.unit() == "bytes" ? FormatBytes(static_cast<uint64_t>(figure.value()))
                                                     : absl::StrFormat("%.1f %s", figure.value(), figure.unit());
  return absl::StrCat(value, " (", figure.from(), ")");
}

}  // namespace

v1::JobReports MakeReports(const std::vector<v1::Job>& jobs, const std::string& node, const RestartCost& cost, int64_t now_ns) {
  std::map<std::pair<uint32_t, std::string>, Gathered> by_name;
  std::map<std::pair<uint32_t, std::string>, std::vector<v1::ReportedFault>> faults;
  for (const v1::Job& job : jobs) {
    const std::pair<uint32_t, std::string> name{job.uid(), job.job()};
    AddProcess(job, now_ns, &by_name[name], &faults[name]);
  }
  std::vector<v1::JobReport> reports;
  for (auto& [name, gathered] : by_name) {
    gathered.report.set_job(name.second);
    gathered.report.set_node(node);
    Finish(cost, std::move(faults[name]), &gathered);
    reports.push_back(std::move(gathered.report));
  }
  std::sort(reports.begin(), reports.end(), [](const auto& a, const auto& b) { return a.begun_ns() > b.begun_ns(); });
  v1::JobReports all;
  for (v1::JobReport& report : reports) *all.add_jobs() = std::move(report);
  return all;
}

std::string FormatReports(const v1::JobReports& reports, const Style& style) {
  std::string text;
  const auto time = [&](int64_t ns) { return absl::FormatTime("%Y-%m-%d %H:%M:%S", absl::FromUnixNanos(ns), style.zone); };
  for (const v1::JobReport& report : reports.jobs()) {
    const auto add = [&](const char* name, const std::string& value) {
      absl::StrAppend(&text, Paint(absl::StrFormat("%-15s", name), Colour::kDim, style.colour), Printable(value), "\n");
    };
    if (!text.empty()) text += "\n";
    add("job",
        absl::StrCat(report.job(), " on ", report.node(), ": ", report.processes(), report.processes() == 1 ? " process" : " processes",
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
    Table table({"TIME", "NIC", "CAUSE", Right("STALL"), Right("REPLAYED"), ""});
    for (const v1::ReportedFault& fault : report.faults())
      table.AddRow({time(fault.time_ns()), fault.nic(), fault.cause(), FormatDuration(fault.stall_ns()),
                    FormatBytes(fault.replayed_bytes()), fault.masked() ? "masked" : "not masked"});
    if (!table.empty()) absl::StrAppend(&text, table.Render(style.colour));
  }
  return text.empty() ? "no job is known\n" : text;
}

}  // namespace r2cc::client
