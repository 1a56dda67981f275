// r2cc-setup, for init containers: hands directories to r2ccd, and puts the plugin where a job finds it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <string>
#include <vector>

#include "deploy/image/setup.h"

namespace r2cc::setup {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr char kPlugin[] = "/usr/lib/x86_64-linux-gnu/libnccl-net-r2cc.so";

absl::Status HandOverAll(const std::string& owner_text, const std::vector<std::string>& texts) {
  const auto owner = ParseOwner(owner_text);
  if (!owner.ok()) return owner.status();
  for (const std::string& text : texts) {
    const auto directory = ParseDirectory(text);
    if (!directory.ok()) return directory.status();
    if (auto status = HandOver(*directory, *owner); !status.ok()) return status;
  }
  return absl::OkStatus();
}

int Main(int argc, char** argv) {
  std::string owner, to, from = kPlugin;
  std::vector<std::string> directories;
  CLI::App app("r2cc-setup: prepares a node for r2ccd, and a job's pod for the plugin.");
  app.name("r2cc-setup");
  app.require_subcommand(1);
  CLI::App* const hand_over =
      app.add_subcommand("directories", "gives directories of root's to r2ccd's user, and makes those that are missing");
  hand_over->add_option("--owner", owner, "UID:GID")->required();
  hand_over->add_option("directory", directories, "PATH:MODE, as /run/r2cc:0755")->required();
  CLI::App* const plugin = app.add_subcommand("plugin", "copies the plugin into a directory that the job mounts");
  plugin->add_option("--from", from, "the plugin's file")->capture_default_str();
  plugin->add_option("directory", to, "where it goes")->required();
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) return app.exit(error);
    std::fprintf(stderr, "r2cc-setup: %s; see r2cc-setup --help\n", error.what());
    return kExitUsage;
  }
  const absl::Status status = hand_over->parsed() ? HandOverAll(owner, directories) : CopyInto(from, to);
  if (status.ok()) return 0;
  std::fprintf(stderr, "r2cc-setup: %s\n", std::string(status.message()).c_str());
  return kExitFailed;
}

}  // namespace
}  // namespace r2cc::setup

int main(int argc, char** argv) { return r2cc::setup::Main(argc, argv); }
