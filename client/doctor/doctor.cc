#include "client/doctor/doctor.h"

#include <memory>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/core/client.h"
#include "client/core/table.h"
#include "client/doctor/daemon_checks.h"
#include "client/doctor/gather.h"
#include "client/doctor/job_checks.h"
#include "client/doctor/path_checks.h"
#include "client/doctor/whose_fault.h"
#include "proto/json.h"

namespace r2cc::client {
namespace {

constexpr int kLookAgainMs = 1000;

const char* LevelName(Finding::Level level) {
  switch (level) {
    case Finding::Level::kOk: return "ok";
    case Finding::Level::kUnchecked: return "unchecked";
    case Finding::Level::kWarn: return "warn";
    case Finding::Level::kFail: return "FAIL";
  }
  return "?";
}

Colour ColourOf(const std::string& level) {
  if (level == "ok") return Colour::kGreen;
  if (level == "FAIL") return Colour::kRed;
  return level == "warn" ? Colour::kYellow : Colour::kDim;
}

Facts Gather(const DoctorCommand& command, Machine& machine) {
  Facts facts;
  facts.now_ns = machine.NowNs();
  if (command.without_daemon) {
    facts.without_daemon = true;
    facts.daemon.connection = absl::UnavailableError("there is no r2ccd on this node");
    LookAround(machine, {command.run_dir, command.peers_max, /*job=*/true}, &facts);
    return facts;
  }
  const absl::StatusOr<std::unique_ptr<Client>> client = Client::Connect(command.socket_path);
  if (client.ok())
    facts.daemon = AskDaemon(**client, facts.now_ns);
  else
    facts.daemon.connection = client.status();
  LookAround(machine, {command.run_dir, command.peers_max, command.job}, &facts);
  return facts;
}

}  // namespace

Findings CheckAll(const Facts& facts) {
  Findings all;
  const auto add = [&](Findings more) {
    for (Finding& finding : more) all.push_back(std::move(finding));
  };
  if (!facts.without_daemon) add(CheckDaemon(facts.daemon, facts.now_ns));
  if (facts.daemon.connection.ok()) {
    add(CheckNics(facts));
    add(CheckPathsByPeer(facts));
  }
  if (!facts.job.has_value()) return all;
  add(CheckJob(*facts.job));
  if (!facts.without_daemon) add(CheckAttach(*facts.job));
  return all;
}

v1::DoctorReport ToReport(const Findings& findings) {
  v1::DoctorReport report;
  for (const Finding& finding : findings) {
    v1::DoctorFinding* added = report.add_findings();
    added->set_level(LevelName(finding.level));
    added->set_check(finding.check);
    added->set_text(finding.text);
    added->set_fix(finding.fix);
    report.set_failed(report.failed() + (finding.level == Finding::Level::kFail ? 1 : 0));
    report.set_warned(report.warned() + (finding.level == Finding::Level::kWarn ? 1 : 0));
    report.set_unchecked(report.unchecked() + (finding.level == Finding::Level::kUnchecked ? 1 : 0));
  }
  return report;
}

v1::DoctorReport Diagnose(const DoctorCommand& command, Machine& machine) { return ToReport(CheckAll(Gather(command, machine))); }

std::string FormatDoctor(const v1::DoctorReport& report, bool all, const Style& style) {
  std::string text;
  for (const v1::DoctorFinding& finding : report.findings()) {
    if (!all && finding.level() == "ok") continue;
    const std::string line = absl::StrCat(finding.text(), finding.fix().empty() ? "" : " -> ", finding.fix());
    absl::StrAppend(&text, Paint(absl::StrFormat("%-9s", finding.level()), ColourOf(finding.level()), style.colour), " ",
                    absl::StrFormat("%-15s", finding.check()), " ", Printable(line), "\n");
  }
  const uint32_t ok = static_cast<uint32_t>(report.findings_size()) - report.failed() - report.warned() - report.unchecked();
  return absl::StrCat(text, report.failed(), " FAIL, ", report.warned(), " warn, ", report.unchecked(), " unchecked, ", ok, " ok",
                      all || ok == 0 ? "" : " (--all shows them)", "\n");
}

absl::Status Run(const DoctorCommand& command, Machine& machine, const Style& style, std::ostream& out,
                 const std::function<bool(int milliseconds)>& wait) {
  const int64_t end_ns = machine.NowNs() + command.wait_ns;
  v1::DoctorReport report = Diagnose(command, machine);
  while (report.failed() > 0 && machine.NowNs() < end_ns && wait(kLookAgainMs)) report = Diagnose(command, machine);
  const absl::StatusOr<std::string> text = command.json ? ToJsonDocument(report) : FormatDoctor(report, command.all, style);
  if (!text.ok()) return text.status();
  out << *text << std::flush;
  if (report.failed() == 0) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(report.failed(), report.failed() == 1 ? " check failed" : " checks failed"));
}

}  // namespace r2cc::client
