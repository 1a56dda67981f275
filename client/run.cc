#include "client/run.h"

#include <chrono>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "client/act_many.h"
#include "client/core/run_program.h"
#include "client/core/table.h"
#include "client/events_follower.h"
#include "client/jobs/job_report.h"
#include "client/jobs/job_seats.h"
#include "client/node_of_address.h"
#include "client/owners.h"
#include "client/parts/parts.h"
#include "client/plan/plot.h"
#include "client/watch.h"
#include "proto/json.h"

namespace r2cc::client {
namespace {

absl::Status WriteText(const absl::StatusOr<std::string>& text, std::ostream& out) {
  if (!text.ok()) return text.status();
  out << *text << std::flush;
  return out ? absl::OkStatus() : absl::UnavailableError("cannot write to standard output");
}

// Sends one kind of request and writes its reply.
struct Runner {
  Output output;
  const Style& style;
  Client& client;
  Owners& owners;
  std::ostream& out;
  const Terminal& terminal;
  // The daemon is this machine's.
  const bool local;

  // Adds what this machine knows more than its daemon may read, for NICs of its own node. NICs of others are not looked up here.
  void AddParts(std::vector<v1::ExplainNicReply*> replies) {
    const absl::StatusOr<v1::StatusReply> own =
        local ? client.Health(std::chrono::seconds(1)) : absl::StatusOr<v1::StatusReply>(absl::NotFoundError(""));
    const std::unique_ptr<PartReader> reader = MakeOsPartReader();
    Parts parts(reader.get());
    for (v1::ExplainNicReply* const reply : replies)
      if (own.ok() && reply->node() == own->node()) parts.AddTo(reply->nic(), reply->mutable_inventory());
  }

  // `format` makes the reply's table.
  template <typename Reply, typename Format>
  absl::Status Write(const absl::StatusOr<Reply>& reply, Format format) {
    if (!reply.ok()) return reply.status();
    return WriteText(output == Output::kJson ? ToJsonDocument(*reply) : format(*reply), out);
  }

  absl::Status operator()(const v1::StatusRequest& request) {
    return Write(client.GetStatus(request), [&](const v1::StatusReply& reply) { return FormatStatus(reply, style); });
  }
  absl::Status operator()(const v1::ListNicsRequest& request) {
    const absl::StatusOr<v1::ListNicsReply> reply = client.ListNics(request);
    if (reply.ok() && !request.node().empty() && reply->nodes().empty())
      return absl::NotFoundError(absl::StrCat("unknown node '", request.node(), "'; `r2ccctl status` shows the nodes"));
    // With --bad or --state a node that fits may have nothing to show.
    if (reply.ok() && !request.node_glob().empty() && reply->nodes().empty()) {
      v1::StatusRequest any;
      any.set_node_glob(request.node_glob());
      const absl::StatusOr<v1::StatusReply> status = client.GetStatus(any);
      if (status.ok() && status->nodes().empty())
        return absl::NotFoundError(absl::StrCat("no node's name fits '", request.node_glob(), "'; `r2ccctl status` shows the nodes"));
    }
    return Write(reply, [&](const v1::ListNicsReply& nics) { return FormatNics(nics, style, request.bad()); });
  }
  // Each NIC's own node is asked: no view has these facts.
  absl::Status operator()(const WideNicsCommand& command) {
    constexpr size_t kNicsMost = 256;
    const absl::StatusOr<v1::ListNicsReply> nics = client.ListNics(command.list);
    if (!nics.ok()) return nics.status();
    std::vector<v1::ExplainNicReply> wide;
    for (const v1::NodeView& node : nics->nodes())
      for (const v1::NicView& nic : node.nics()) {
        if (wide.size() >= kNicsMost)
          return absl::InvalidArgumentError(
              absl::StrCat("these are more than ", kNicsMost, " NICs, and each node is asked: name some with --node"));
        v1::ExplainNicRequest request;
        request.set_node(node.node());
        request.set_nic(nic.name());
        const absl::StatusOr<v1::ExplainNicReply> reply = client.ExplainNic(request);
        v1::ExplainNicReply& one = wide.emplace_back();
        if (reply.ok()) one = *reply;
        one.set_node(node.node());
        *one.mutable_nic() = nic;
        if (!reply.ok()) one.mutable_inventory()->add_missing(std::string(reply.status().message()));
      }
    std::vector<v1::ExplainNicReply*> all;
    for (v1::ExplainNicReply& one : wide) all.push_back(&one);
    AddParts(std::move(all));
    return WriteText(FormatWideNics(wide, style), out);
  }
  absl::Status operator()(const v1::NicActionRequest& request) {
    const absl::StatusOr<v1::NicActionReply> done = owners.Act(request);
    const absl::Status written = Write(done, [&](const v1::NicActionReply& reply) { return FormatNicAction(request, reply, style); });
    if (!written.ok() || done->not_kept().empty()) return written;
    return absl::DataLossError("done, and not kept over a restart of r2ccd yet: look at its state directory");
  }
  absl::Status operator()(const v1::ListJobsRequest& request) {
    return Write(client.ListJobs(request), [&](const v1::ListJobsReply& reply) {
      return request.ended() ? FormatEndedJobs(reply, style) : FormatJobs(reply, style);
    });
  }
  absl::Status operator()(const v1::GetPlanRequest& request) {
    return Write(client.GetPlan(request), [&](const v1::Plan& plan) { return FormatPlan(plan, style); });
  }
  absl::Status operator()(const v1::ExplainNicRequest& request) {
    absl::StatusOr<v1::ExplainNicReply> reply = client.ExplainNic(request);
    if (reply.ok()) AddParts({&*reply});
    return Write(reply, [&](const v1::ExplainNicReply& nic) { return FormatExplainNic(nic, style); });
  }
  absl::Status operator()(v1::ProbePathsRequest request) {
    // A job that never reached its peer knows an address of it alone.
    for (std::string* const node : {request.mutable_node(), request.mutable_peer()}) {
      if (!IsAddress(*node)) continue;
      const absl::StatusOr<v1::StatusReply> status = client.GetStatus({});
      if (!status.ok()) return status.status();
      const absl::StatusOr<std::string> found = NodeOfAddress(*status, *node);
      if (!found.ok()) return found.status();
      *node = *found;
    }
    return Write(client.ProbePaths(request), [&](const v1::ProbePathsReply& reply) { return FormatPaths(reply, style); });
  }
  absl::Status operator()(const v1::ExplainPlanRequest& request) {
    return Write(client.ExplainPlan(request), [&](const v1::ExplainPlanReply& reply) { return FormatExplainPlan(reply, style); });
  }
  absl::Status operator()(const ActCommand& command) {
    const auto act = [this](const v1::NicActionRequest& request) { return owners.Act(request); };
    return ActOnMany(command, output, style, client, act, out, terminal.wait);
  }
  absl::Status operator()(const v1::ForgetNodeRequest& request) {
    const absl::StatusOr<v1::ForgetNodeReply> reply = owners.Forget(request);
    const absl::Status written = Write(reply, [&](const v1::ForgetNodeReply& forgotten) { return FormatForgetNode(request, forgotten); });
    if (!written.ok() || reply->refused() == 0) return written;
    return absl::FailedPreconditionError(absl::StrCat(reply->refused(), " daemons have not forgotten ", request.node()));
  }
  absl::Status operator()(const v1::ConfigRequest& request) {
    return Write(client.GetConfig(request), [&](const v1::ConfigReply& reply) { return FormatConfig(reply, style); });
  }
  absl::Status operator()(const v1::ReloadRequest& request) {
    return Write(client.Reload(request), [&](const v1::ReloadReply& reply) { return FormatReload(reply, style); });
  }
  absl::Status operator()(const v1::DisagreementRequest& request) { return Write(client.ReportDisagreement(request), FormatDisagreement); }
  absl::Status operator()(const JobReportCommand& command) {
    v1::ReportJobsRequest request;
    request.set_job_glob(command.job_glob);
    const absl::StatusOr<v1::ReportJobsReply> gathered = client.ReportJobs(request);
    if (!gathered.ok()) return gathered.status();
    if (gathered->jobs().empty() && !command.job_glob.empty())
      return absl::NotFoundError(
          absl::StrCat("no job of this node has the name or run '", command.job_glob, "'; `r2ccctl job report` shows all that it knows"));
    const v1::JobReports reports = MakeReports(*gathered, {command.restart_ns, command.checkpoint_ns});
    return WriteText(output == Output::kJson ? ToJsonDocument(reports) : FormatReports(reports, style), out);
  }
  absl::Status operator()(const SavedCommand& command) {
    v1::ReportJobsRequest request;
    request.set_since_ns(command.since_ns);
    request.set_only_here(command.only_here);
    request.set_restart_ns(command.restart_ns);
    request.set_checkpoint_ns(command.checkpoint_ns);
    const absl::StatusOr<v1::ReportJobsReply> answer = client.ReportJobs(request);
    if (answer.ok() && !answer->has_saved())
      return absl::UnimplementedError("this r2ccd is of a release before 0.3.0, which does not keep what it saved");
    return Write(answer, [&](const v1::ReportJobsReply& reply) {
      return FormatSaved(reply, {command.restart_ns, command.checkpoint_ns}, command.only_here, style);
    });
  }
  absl::Status operator()(const JobSeatsCommand& command) {
    const absl::StatusOr<v1::ListNicsReply> nics = client.ListNics({});
    if (!nics.ok()) return nics.status();
    return Write(MakeJobSeats(command, *nics), [](const v1::JobSeats& seats) { return FormatJobSeats(seats); });
  }
  absl::Status operator()(const HealthCommand& command) {
    return Write(client.Health(std::chrono::milliseconds(command.within_ms)), [](const v1::StatusReply& reply) {
      return Printable(absl::StrCat("ok: r2ccd of node ", reply.node(), " serves plan ", reply.plan_epoch().counter())) + "\n";
    });
  }
  absl::Status operator()(const WatchCommand& command) {
    int left = command.count;
    const auto wait = [&] { return (command.count == 0 || --left > 0) && terminal.wait(command.interval_ms); };
    return Watch({terminal.now_ns, wait, terminal.is_one, terminal.size}, style, client, out);
  }
  // `each` is called with news alone; what it returns ends the following.
  absl::Status Follow(v1::EventsRequest request, const std::function<absl::Status(const v1::Event&)>& each) {
    EventsFollower follower(request);
    for (;;) {
      absl::Status done;
      const int64_t asked_ns = terminal.now_ns();
      const absl::Status status = client.Events(request, [&](const v1::Event& event) {
        if (follower.IsNews(event)) done = each(event);
        return done.ok();
      });
      if (!done.ok()) return done;
      if (!request.follow() || !follower.GoesOn(status, terminal.now_ns() - asked_ns)) return status;
      // The daemon is restarted: a supervisor does that, or a package's upgrade.
      if (!terminal.wait(EventsFollower::kRetryMs)) return absl::OkStatus();
      request = follower.Next();
    }
  }
  absl::Status operator()(const v1::EventsRequest& request) {
    EventColumns columns;
    return Follow(request, [&](const v1::Event& event) {
      columns.Grow(event);
      return WriteText(output == Output::kJson ? ToJsonLine(event) : FormatEvent(event, style, columns), out);
    });
  }
  // Events that a program is too slow for wait in the daemon's log of events. A failure is reported, and the next event follows.
  absl::Status operator()(const HookCommand& command) {
    constexpr int kRunMs = 30'000;
    constexpr size_t kOutputBytesMax = 4096;
    return Follow(command.request, [&](const v1::Event& event) {
      const absl::StatusOr<std::string> json = ToJsonLine(event);
      if (!json.ok()) return json.status();
      const absl::StatusOr<std::string> hook_output = RunSystemProgram({command.program}, kOutputBytesMax, kRunMs, *json);
      if (!hook_output.ok()) return hook_output.status();
      return hook_output->empty() ? absl::OkStatus() : WriteText(Printable(*hook_output) + "\n", out);
    });
  }
};

}  // namespace

absl::Status Run(const Invocation& invocation, const Style& style, Client& client, std::ostream& out, const Terminal& terminal) {
  Owners owners(&client, invocation.server.empty() ? "" : invocation.certificates);
  return std::visit(Runner{invocation.output, style, client, owners, out, terminal, invocation.server.empty()}, invocation.request);
}

absl::Status Run(const Simulation& simulation, const Style& style, std::ostream& out) {
  const SimulateCommand& command = simulation.command;
  if (!command.plot_path.empty()) {
    std::ofstream plot(command.plot_path);
    plot << PlotSvg(command) << std::flush;
    if (!plot) return absl::UnavailableError(absl::StrCat("cannot write the plot to '", command.plot_path, "'"));
  }
  const v1::PlanSimulation answer = Answer(command);
  return WriteText(simulation.output == Output::kJson ? ToJsonDocument(answer) : FormatSimulation(command, answer, style), out);
}

}  // namespace r2cc::client
