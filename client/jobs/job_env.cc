#include "client/jobs/job_env.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace r2cc::client {
namespace {

// As the programs know them; what needs no other value is left out.
constexpr char kRunDir[] = "/run/r2cc";
// The path at which the init container of a pod puts the plugin.
constexpr char kPodPlugins[] = "/opt/r2cc";
// As the package installs it.
constexpr char kPlugin[] = "/usr/lib/x86_64-linux-gnu/libnccl-net-r2cc.so";

using Variables = std::vector<std::pair<std::string, std::string>>;

Variables VariablesOf(const JobEnvCommand& command) {
  // NCCL 2.28 and 2.29 forget the plugin's name with the last communicator, and the next one fails. A first reference keeps it.
  Variables variables = {{"NCCL_NET_PLUGIN", "r2cc"}, {"NCCL_NET", "R2CC"}, {"NCCL_NET_PLUGIN_REF_COUNT", "1"}};
  if (!command.library_directory.empty()) variables.emplace_back("LD_LIBRARY_PATH", command.library_directory);
  if (!command.rails.empty()) variables.emplace_back("R2CC_RAILS", command.rails);
  if (!command.job.empty()) variables.emplace_back("R2CC_JOB", command.job);
  if (command.run_dir != kRunDir) variables.emplace_back("R2CC_ATTACH", command.run_dir + "/attach.sock");
  if (command.seat) {
    // The loader looks for it where it finds the plugin.
    variables.emplace_back("LD_PRELOAD", "libr2cc-nccl.so");
    variables.emplace_back("NCCL_TUNER_PLUGIN", "r2cc");
    variables.emplace_back("R2CC_SEAT", "1");
  }
  return variables;
}

// For a shell: a quote ends the quoted text, is written alone, and begins it again.
std::string Quoted(const std::string& value) {
  if (value.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./,:^=-") == std::string::npos) return value;
  std::string text = "'";
  for (const char c : value) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

// The user's own directories follow the plugin's.
std::string Value(const std::string& name, const std::string& value) {
  return name == "LD_LIBRARY_PATH" ? absl::StrCat(Quoted(value), "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}") : Quoted(value);
}

std::string Exports(const Variables& variables, const std::string& before) {
  std::string text;
  for (const auto& [name, value] : variables) absl::StrAppend(&text, before, "export ", name, "=", Value(name, value), "\n");
  return text;
}

std::string Torchrun(const Variables& variables, bool named) {
  return absl::StrCat("# In the script that each node runs, before torchrun: its workers inherit them.\n", Exports(variables, ""),
                      named ? "" : "export R2CC_JOB=${R2CC_JOB:-train}  # the name in `r2ccctl jobs` and `r2ccctl job report`\n",
                      "# With torchrun --rdzv_id=ID each run has a report of its own: r2ccctl job report ID\n");
}

std::string Mpirun(const Variables& variables) {
  std::string open_mpi, mpich;
  for (const auto& [name, value] : variables) {
    absl::StrAppend(&open_mpi, " -x ", name);
    absl::StrAppend(&mpich, mpich.empty() ? " -genvlist " : ",", name);
  }
  return absl::StrCat("# In the shell that calls mpirun, which passes on the variables that it is given.\n", Exports(variables, ""),
                      "# Open MPI:\n#   mpirun", open_mpi, " ...\n# MPICH and Intel MPI:\n#   mpirun", mpich, " ...\n");
}

// Asks this node alone: a Prolog that fails for another node's fault drains the cluster.
std::string Ready(const std::string& run_dir) {
  return absl::StrCat("r2ccctl ready --min-rails 1", run_dir == kRunDir ? "" : absl::StrCat(" --run_dir ", Quoted(run_dir)));
}

std::string Slurm(const JobEnvCommand& command, const Variables& variables) {
  const bool named = !command.job.empty();
  const std::string ready = Ready(command.run_dir);
  const std::string plugin = command.library_directory.empty() ? kPlugin : absl::StrCat(command.library_directory, "/libnccl-net-r2cc.so");
  std::string prolog, names;
  for (const auto& [name, value] : variables) {
    absl::StrAppend(&prolog, "#   echo \"export ", name, "=", Value(name, value), "\"\n");
    if (name != "LD_LIBRARY_PATH") absl::StrAppend(&names, names.empty() ? "" : ",", name);
  }
  return absl::StrCat("# In the batch script, before srun, which passes the environment on.\n", Exports(variables, ""),
                      named ? "" : "export R2CC_JOB=slurm-${SLURM_JOB_ID:-0}\n",
                      "# Or for all jobs, in the TaskProlog of slurm.conf, whose lines `export NAME=VALUE` each task gets:\n", prolog,
                      "# In the Prolog: a node with too few rails gets no job. Exit code 2, r2ccd does not answer, drains no node.\n#   ",
                      ready, "; [ $? -ne 1 ] || exit 1\n",
                      "# In a HealthCheckProgram, which drains the node before a job comes:\n#   why=$(", ready,
                      "); [ $? -ne 1 ] || scontrol update nodename=\"$(hostname -s)\" state=drain reason=\"r2cc: $why\"\n",
                      "# In a container of pyxis and enroot, if the image has no plugin:\n#   srun --container-mounts=",
                      Quoted(absl::StrCat(command.run_dir, ":", command.run_dir, ",", plugin, ":", kPlugin)), " --container-env=", names,
                      named ? "" : ",R2CC_JOB", " ...\n");
}

// A value of YAML in double quotes.
std::string Yaml(const std::string& value) {
  std::string quoted;
  for (const char c : value) quoted += c == '"' || c == '\\' ? std::string("\\") + c : std::string(1, c);
  return absl::StrCat("\"", quoted, "\"");
}

// node-problem-detector makes a condition of the node from this.
std::string ProblemDetector(const std::string& run_dir) {
  std::string arguments = "\"ready\", \"--min-rails\", \"1\"";
  if (run_dir != kRunDir) absl::StrAppend(&arguments, ", \"--run_dir\", ", Yaml(run_dir));
  return absl::StrCat(
      "# For the node: a custom plugin monitor of node-problem-detector. The condition is true while no rail is usable.\n"
      "#   {\"plugin\": \"custom\", \"source\": \"r2cc\", \"pluginConfig\": {\"invoke_interval\": \"30s\", \"timeout\": \"5s\"},\n"
      "#    \"conditions\": [{\"type\": \"RailsMissing\", \"reason\": \"RailsUsable\", \"message\": \"r2ccctl ready\"}],\n"
      "#    \"rules\": [{\"type\": \"permanent\", \"condition\": \"RailsMissing\", \"reason\": \"TooFewRails\",\n"
      "#               \"path\": \"/usr/bin/r2ccctl\", \"args\": [",
      arguments, "]}]}\n");
}

// Unless the image has the plugin, an init container puts it into a volume.
std::string Kubernetes(Variables variables, const JobEnvCommand& command) {
  const bool in_image = !command.library_directory.empty();
  // By its path: LD_LIBRARY_PATH would replace the image's own.
  if (!in_image) variables.front().second = absl::StrCat(kPodPlugins, "/libnccl-net-r2cc.so");
  std::string env;
  for (const auto& [name, value] : variables) absl::StrAppend(&env, "    - {name: ", name, ", value: ", Yaml(value), "}\n");
  const std::string init = absl::StrCat(
      "  initContainers:\n  - name: r2cc-plugin\n    image: r2cc:latest  # where your registry has it: docs/start/kubernetes.md\n"
      "    command: [\"/usr/bin/r2cc-setup\", \"plugin\", \"",
      kPodPlugins, "\"]\n    volumeMounts:\n    - {name: r2cc-plugin, mountPath: ", kPodPlugins, "}\n");
  return absl::StrCat(
      "# In the pod template of the job. The directory is mounted, not the socket, because each start of r2ccd creates the socket again.\n",
      in_image ? "" : "# NCCL before 2.21 accepts no path: set NCCL_NET_PLUGIN=r2cc, and the volume's directory in LD_LIBRARY_PATH.\n",
      "spec:\n  hostNetwork: true  # its rails are the node's NICs\n", in_image ? "" : init, "  containers:\n  - name: worker\n    env:\n",
      env, "    - {name: POD_UID, valueFrom: {fieldRef: {fieldPath: metadata.uid}}}\n    volumeMounts:\n    - {name: r2cc, mountPath: ",
      command.run_dir, ", readOnly: true}\n",
      in_image ? "" : absl::StrCat("    - {name: r2cc-plugin, mountPath: ", kPodPlugins, ", readOnly: true}\n"),
      "  volumes:\n  - name: r2cc\n    hostPath: {path: ", command.run_dir, ", type: Directory}\n",
      in_image ? "" : "  - name: r2cc-plugin\n    emptyDir: {}\n", ProblemDetector(command.run_dir));
}

}  // namespace

std::vector<std::string> Launchers() { return {"torchrun", "mpirun", "slurm", "kubernetes"}; }

std::string FormatJobEnv(const JobEnvCommand& command) {
  const Variables variables = VariablesOf(command);
  if (command.launcher == "mpirun") return Mpirun(variables);
  if (command.launcher == "slurm") return Slurm(command, variables);
  if (command.launcher == "kubernetes") return Kubernetes(variables, command);
  return Torchrun(variables, !command.job.empty());
}

v1::JobEnvironment MakeJobEnvironment(const JobEnvCommand& command) {
  v1::JobEnvironment environment;
  for (const auto& [name, value] : VariablesOf(command)) {
    v1::JobEnvironment::Variable& variable = *environment.add_variables();
    variable.set_name(name);
    variable.set_value(value);
  }
  environment.set_text(FormatJobEnv(command));
  return environment;
}

}  // namespace r2cc::client
