#include "client/jobs/job_env.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace r2cc::client {
namespace {

// As the programs know them; what needs no other value is left out.
constexpr char kRunDir[] = "/run/r2cc";

using Variables = std::vector<std::pair<std::string, std::string>>;

Variables VariablesOf(const JobEnvCommand& command) {
  Variables variables = {{"NCCL_NET_PLUGIN", "r2cc"}, {"NCCL_NET", "R2CC"}};
  if (!command.library_directory.empty()) variables.emplace_back("LD_LIBRARY_PATH", command.library_directory);
  if (!command.rails.empty()) variables.emplace_back("R2CC_RAILS", command.rails);
  if (!command.job.empty()) variables.emplace_back("R2CC_JOB", command.job);
  if (command.run_dir != kRunDir) variables.emplace_back("R2CC_ATTACH", command.run_dir + "/attach.sock");
  return variables;
}

// For a shell: a quote ends the quoted text, stands alone, and begins it again.
std::string Quoted(const std::string& value) {
  if (value.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:^=-") == std::string::npos) return value;
  std::string text = "'";
  for (const char c : value) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// What the user has already stays behind the plugin's directory.
std::string Value(const std::string& name, const std::string& value) {
  return name == "LD_LIBRARY_PATH" ? absl::StrCat(Quoted(value), "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}") : Quoted(value);
}

std::string Exports(const Variables& variables, const std::string& before) {
  std::string text;
  for (const auto& [name, value] : variables) absl::StrAppend(&text, before, "export ", name, "=", Value(name, value), "\n");
  return text;
}

std::string Torchrun(const Variables& variables) {
  return absl::StrCat("# In the script that each node runs, before torchrun: its workers inherit them.\n", Exports(variables, ""));
}

std::string Mpirun(const Variables& variables) {
  std::string open_mpi, mpich;
  for (const auto& [name, value] : variables) {
    absl::StrAppend(&open_mpi, " -x ", name);
    absl::StrAppend(&mpich, mpich.empty() ? " -genvlist " : ",", name);
  }
  return absl::StrCat("# In the shell that calls mpirun, which hands on what it is told to.\n", Exports(variables, ""),
                      "# Open MPI:\n#   mpirun", open_mpi, " ...\n# MPICH and Intel MPI:\n#   mpirun", mpich, " ...\n");
}

std::string Slurm(const Variables& variables, bool named) {
  std::string prolog;
  for (const auto& [name, value] : variables) absl::StrAppend(&prolog, "#   echo \"export ", name, "=", Value(name, value), "\"\n");
  return absl::StrCat("# In the batch script, before srun, which hands on the environment.\n", Exports(variables, ""),
                      named ? "" : "export R2CC_JOB=slurm-${SLURM_JOB_ID:-0}\n",
                      "# Or for all jobs, in the TaskProlog of slurm.conf, whose lines `export NAME=VALUE` each task gets:\n", prolog,
                      "# And in the Prolog, so that a node that is not well gets no job:\n#   r2ccctl doctor --wait 30s || exit 1\n");
}

std::string Kubernetes(const Variables& variables, const std::string& run_dir) {
  std::string env;
  for (const auto& [name, value] : variables) {
    std::string quoted;
    for (const char c : value) quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
    absl::StrAppend(&env, "    - {name: ", name, ", value: \"", quoted, "\"}\n");
  }
  return absl::StrCat(
      "# In the pod template of the job. The directory is mounted, not the socket, which is made anew with each start of r2ccd.\n"
      "spec:\n  containers:\n  - name: worker\n    env:\n",
      env, "    volumeMounts:\n    - {name: r2cc, mountPath: ", run_dir, ", readOnly: true}\n",
      "  volumes:\n  - name: r2cc\n    hostPath: {path: ", run_dir, ", type: Directory}\n");
}

}  // namespace

std::vector<std::string> Launchers() { return {"torchrun", "mpirun", "slurm", "kubernetes"}; }

std::string FormatJobEnv(const JobEnvCommand& command) {
  const Variables variables = VariablesOf(command);
  if (command.launcher == "mpirun") return Mpirun(variables);
  if (command.launcher == "slurm") return Slurm(variables, !command.job.empty());
  if (command.launcher == "kubernetes") return Kubernetes(variables, command.run_dir);
  return Torchrun(variables);
}

}  // namespace r2cc::client
