#include "client/commands/job_commands.h"

#include <pwd.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/commands/values.h"
#include "client/jobs/job_env.h"

namespace r2cc::client {
namespace {

struct JobsTyped {
  bool ended = false;
  bool bad = false;
  std::string job;
  std::string uid;
  std::string nic;
  std::string node;
};

struct ReportTyped {
  std::string job;
  std::string restart;
  std::string checkpoint;
  bool json = false;
};

struct SavedTyped {
  std::string since = "30d";
  bool here = false;
  std::string restart;
  std::string checkpoint;
};

// Nothing typed: 0.
absl::StatusOr<int64_t> ReadTime(const std::string& flag, const std::string& text) {
  if (text.empty()) return 0;
  absl::Duration time;
  if (!absl::ParseDuration(text, &time) || time <= absl::ZeroDuration() || time > absl::Hours(24 * 365))
    return absl::InvalidArgumentError(absl::StrCat(flag, " '", text, "' is not a time such as 10m or 1h30m"));
  return absl::ToInt64Nanoseconds(time);
}

// By the users of this machine.
absl::StatusOr<uint32_t> UserNumber(const std::string& user) {
  uint32_t number = 0;
  if (absl::SimpleAtoi(user, &number)) return number;
  passwd entry{};
  passwd* found = nullptr;
  std::vector<char> buffer(16384);
  if (getpwnam_r(user.c_str(), &entry, buffer.data(), buffer.size(), &found) == 0 && found != nullptr) return found->pw_uid;
  return absl::InvalidArgumentError(absl::StrCat("--uid '", user, "' is neither a number nor a user of this machine"));
}

void AddEnv(CommandTree* tree, Command job) {
  const auto command = std::make_shared<JobEnvCommand>();
  const Command env = tree->Add(job, "env", "the lines that make a job use R2CC, for the way it is started; asks no daemon");
  env.AddOption("LAUNCHER", &command->launcher, "torchrun, mpirun, slurm or kubernetes").Required().OneOf(Launchers());
  env.AddOption("--job", &command->job, "the job's name in `r2ccctl jobs`").Value("JOB");
  env.AddOption("--rails", &command->rails, "interfaces, addresses or RDMA devices, as R2CC_RAILS takes them").Value("LIST");
  env.AddOption("--library_dir", &command->library_directory, "directory of the plugin, if the loader does not find it").Value("DIR");
  env.AddFlag("--seat", &command->seat, "also a seat in NCCL's tree for a node that lost rails: it adds floats in another order");
  tree->Means(env, [tree, command] {
    command->run_dir = tree->global().run_dir;
    return Chosen(*command);
  });
}

void AddReport(CommandTree* tree, Command job) {
  const auto typed = std::make_shared<ReportTyped>();
  const Command report = tree->Add(job, "report",
                                   "what jobs of this node met, on all nodes that they run on: faults, stalls, bytes sent again, and what "
                                   "restarts would have cost");
  report.AddOption("JOB", &typed->job, "only jobs whose name or run matches, such as 'train-*' or Slurm's 123");
  report.AddOption("--restart", &typed->restart, "what an error costs: until the job computes again; 15m is assumed").Value("TIME");
  report.AddOption("--checkpoint", &typed->checkpoint, "between two checkpoints: half of it is done again, on average; 1h is assumed")
      .Value("TIME");
  report.AddFlag("--json", &typed->json, "as -o json");
  tree->Means(report, [tree, typed]() -> absl::StatusOr<Chosen> {
    const auto restart = ReadTime("--restart", typed->restart);
    if (!restart.ok()) return restart.status();
    const auto checkpoint = ReadTime("--checkpoint", typed->checkpoint);
    if (!checkpoint.ok()) return checkpoint.status();
    if (typed->json) tree->SetJson();
    return Request(JobReportCommand{typed->job, *restart, *checkpoint});
  });
}

void AddSaved(CommandTree* tree) {
  const auto typed = std::make_shared<SavedTyped>();
  const Command report = tree->Add(
      tree->root(), "report", "what R2CC saved: faults masked, restarts avoided and their cost, time with fewer rails, and jobs that died");
  report.AddOption("--since", &typed->since, "from then on: 24h, 30d, or '2026-11-25 03:12'; at most 30 days").Value("TIME").ShowDefault();
  report.AddFlag("--here", &typed->here, "only this node; without it all nodes are asked");
  report.AddOption("--restart", &typed->restart, "what an error costs: until the job computes again; 5m to 15m are assumed").Value("TIME");
  report.AddOption("--checkpoint", &typed->checkpoint, "between two checkpoints: half of it is done again; 10m to 1h are assumed")
      .Value("TIME");
  tree->Means(report, [tree, typed]() -> absl::StatusOr<Chosen> {
    const absl::StatusOr<absl::Time> since = ParseSince(typed->since, tree->now(), tree->zone());
    if (!since.ok()) return absl::InvalidArgumentError(absl::StrCat("--since ", since.status().message()));
    const auto restart = ReadTime("--restart", typed->restart);
    if (!restart.ok()) return restart.status();
    const auto checkpoint = ReadTime("--checkpoint", typed->checkpoint);
    if (!checkpoint.ok()) return checkpoint.status();
    return Request(SavedCommand{absl::ToUnixNanos(*since), typed->here, *restart, *checkpoint});
  });
}

void AddSeats(CommandTree* tree, Command job) {
  const auto command = std::make_shared<JobSeatsCommand>();
  const Command seats = tree->Add(job, "seats", "the order of hosts for a job that starts while NICs are down: a host a line, and why");
  seats.AddOption("HOST", &command->hosts, "the job's nodes, by their names in `r2ccctl status`; none: all that this daemon knows");
  seats.AddOption("--gpus", &command->gpus, "of each node").Value("N").Range<size_t>(1, kSimulatedGpusMax).ShowDefault();
  tree->Means(seats, [command] { return Chosen(Request(*command)); });
}

void AddJobs(CommandTree* tree) {
  const auto typed = std::make_shared<JobsTyped>();
  const Command jobs = tree->Add(tree->root(), "jobs", "the jobs attached to this daemon and their traffic per rail");
  jobs.AddFlag("--ended", &typed->ended, "jobs that lost a peer and ended: which peer, by which rails, why, after how long");
  jobs.AddFlag("--bad", &typed->bad, "only jobs that lost a rail or a peer, make no progress, or have rails that are not this node's NICs");
  jobs.AddOption("--job", &typed->job, "only jobs whose name matches, such as 'train-*'").Value("GLOB");
  const Option uid = jobs.AddOption("--uid", &typed->uid, "only jobs of this user: a name or a number").Value("USER");
  jobs.AddOption("--nic", &typed->nic, "only jobs with a rail on this NIC of the node").Value("NIC");
  jobs.AddOption("--node", &typed->node, "only jobs with peers on nodes whose name matches, such as 'rack3-*'").Value("GLOB");
  tree->Means(jobs, [typed, uid]() -> absl::StatusOr<Chosen> {
    v1::ListJobsRequest list;
    list.set_ended(typed->ended);
    list.set_bad(typed->bad);
    list.set_job_glob(typed->job);
    if (uid.count() > 0) {
      const absl::StatusOr<uint32_t> number = UserNumber(typed->uid);
      if (!number.ok()) return number.status();
      list.set_uid(*number);
    }
    list.set_nic(typed->nic);
    list.set_node_glob(typed->node);
    return Chosen(Request(list));
  });
}

}  // namespace

void AddJobCommands(CommandTree* tree) {
  AddJobs(tree);
  const Command job = tree->AddGroup(tree->root(), "job", "how a job is started, and what it met");
  AddEnv(tree, job);
  AddSeats(tree, job);
  AddReport(tree, job);
  AddSaved(tree);
}

}  // namespace r2cc::client
