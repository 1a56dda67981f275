#include "client/local/check_config.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

namespace r2cc::client {
namespace {

// As the package installs it.
constexpr char kInstalled[] = "/usr/sbin/r2ccd";

}  // namespace

std::vector<std::string> CheckConfigArguments(const CheckConfigCommand& command, const std::string& program) {
  std::error_code error;
  const bool directory = std::filesystem::is_directory(command.path, error);
  std::vector<std::string> arguments = {program, "--check_config", "--config",
                                        directory ? command.path + "/r2ccd.textproto" : command.path};
  if (command.json) arguments.insert(arguments.end(), {"--log_format", "json"});
  if (!command.node.empty()) arguments.insert(arguments.end(), {"--node", command.node});
  return arguments;
}

absl::Status Run(const CheckConfigCommand& command) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::string> programs = {command.program};
  if (command.program.empty()) programs = {self.parent_path() / "r2ccd", kInstalled, "r2ccd"};
  for (const std::string& program : programs) {
    std::vector<std::string> arguments = CheckConfigArguments(command, program);
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    execvp(pointers[0], pointers.data());
  }
  return absl::NotFoundError(command.program.empty()
                                 ? "there is no r2ccd on this machine to check it: install r2ccd, or name one with --r2ccd"
                                 : "cannot run '" + command.program + "': --r2ccd names the program");
}

}  // namespace r2cc::client
