#include "client/commands/job_commands.h"

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "client/jobs/job_env.h"

namespace r2cc::client {
namespace {

struct JobsTyped {
  bool ended = false;
  bool bad = false;
  std::string job;
  uint32_t uid = 0;
  std::string nic;
  std::string node;
};

struct ReportTyped {
  std::string job;
  std::string restart;
  std::string checkpoint;
  bool json = false;
};

// Nothing typed: 0.
absl::StatusOr<int64_t> ReadTime(const std::string& flag, const std::string& text) {
  if (text.empty()) return 0;
  absl::Duration time;
  if (!absl::ParseDuration(text, &time) || time <= absl::ZeroDuration() || time > absl::Hours(24 * 365))
    return absl::InvalidArgumentError(absl::StrCat(flag, " '", text, "' is not a time such as 10m or 1h30m"));
  return absl::ToInt64Nanoseconds(time);
}

void AddEnv(CommandTree* tree, CLI::App* job) {
  const auto command = std::make_shared<JobEnvCommand>();
  CLI::App* env = tree->Add(job, "env", "the lines that make a job use R2CC, for the way it is started; asks no daemon");
  env->add_option("LAUNCHER", command->launcher, "torchrun, mpirun, slurm or kubernetes")->required()->check(CLI::IsMember(Launchers()));
  env->add_option("--job", command->job, "what `r2ccctl jobs` is to call it")->option_text("JOB");
  env->add_option("--rails", command->rails, "interfaces, addresses or RDMA devices, as R2CC_RAILS takes them")->option_text("LIST");
  env->add_option("--library_dir", command->library_directory, "of the plugin, where the loader does not find it by itself")
      ->option_text("DIR");
  tree->Means(env, [tree, command] {
    command->run_dir = tree->global().run_dir;
    return Chosen(*command);
  });
}

void AddReport(CommandTree* tree, CLI::App* job) {
  const auto typed = std::make_shared<ReportTyped>();
  CLI::App* report = tree->Add(job, "report",
                               "what jobs of this node met, on all nodes that they run on: faults, stalls, bytes sent again, and what "
                               "restarts would have cost");
  report->add_option("JOB", typed->job, "only jobs whose names fit, such as 'train-*'");
  report->add_option("--restart", typed->restart, "what an error costs: until the job computes again")->option_text("TIME");
  report->add_option("--checkpoint", typed->checkpoint, "between two checkpoints: half of it is done again, on average")
      ->option_text("TIME");
  report->add_flag("--json", typed->json, "as -o json");
  tree->Means(report, [tree, typed]() -> absl::StatusOr<Chosen> {
    const auto restart = ReadTime("--restart", typed->restart);
    if (!restart.ok()) return restart.status();
    const auto checkpoint = ReadTime("--checkpoint", typed->checkpoint);
    if (!checkpoint.ok()) return checkpoint.status();
    if (typed->json) tree->SetJson();
    return Request(JobReportCommand{typed->job, *restart, *checkpoint});
  });
}

void AddJobs(CommandTree* tree) {
  const auto typed = std::make_shared<JobsTyped>();
  CLI::App* jobs = tree->Add(tree->root(), "jobs", "the jobs attached to this daemon and their traffic per rail");
  jobs->add_flag("--ended", typed->ended, "those that gave up on a peer and ended: which, by which rails, why, after how long");
  jobs->add_flag("--bad", typed->bad, "only those that gave up a rail or a peer, or whose rails are not this node's NICs");
  jobs->add_option("--job", typed->job, "only jobs whose names fit, such as 'train-*'")->option_text("GLOB");
  CLI::Option* uid = jobs->add_option("--uid", typed->uid, "only this user's")->option_text("UID");
  jobs->add_option("--nic", typed->nic, "only those with a rail on this NIC of the node")->option_text("NIC");
  jobs->add_option("--node", typed->node, "only those that talk to nodes whose names fit, such as 'rack3-*'")->option_text("GLOB");
  tree->Means(jobs, [typed, uid] {
    v1::ListJobsRequest list;
    list.set_ended(typed->ended);
    list.set_bad(typed->bad);
    list.set_job_glob(typed->job);
    if (uid->count() > 0) list.set_uid(typed->uid);
    list.set_nic(typed->nic);
    list.set_node_glob(typed->node);
    return Chosen(Request(list));
  });
}

}  // namespace

void AddJobCommands(CommandTree* tree) {
  AddJobs(tree);
  CLI::App* job = tree->AddGroup(tree->root(), "job", "how a job is started, and what it met");
  AddEnv(tree, job);
  AddReport(tree, job);
}

}  // namespace r2cc::client
