// r2cc-setup, for init containers: hands directories to r2ccd, and puts the plugin where a job finds it.
#include <getopt.h>

#include <cstdio>
#include <string>
#include <vector>

#include "deploy/image/setup.h"

namespace r2cc::setup {
namespace {

constexpr int kExitFailed = 1;
constexpr int kExitUsage = 2;
constexpr char kPlugin[] = "/usr/lib/x86_64-linux-gnu/libnccl-net-r2cc.so";
constexpr char kUsage[] =
    "r2cc-setup: prepares a node for r2ccd, and a job's pod for the plugin.\n"
    "  r2cc-setup directories --owner UID:GID PATH:MODE...   gives directories of root's to r2ccd's user, and makes those that are "
    "missing;\n"
    "                                                        for example /run/r2cc:0755\n"
    "  r2cc-setup plugin [--from FILE] DIRECTORY             copies the plugin into a directory that the job mounts\n";

bool HandOverAll(const std::string& owner_text, const std::vector<std::string>& texts, std::string* error) {
  const auto owner = ParseOwner(owner_text, error);
  if (!owner.has_value()) return false;
  for (const std::string& text : texts) {
    const auto directory = ParseDirectory(text, error);
    if (!directory.has_value() || !HandOver(*directory, *owner, error)) return false;
  }
  return true;
}

int WrongUse(const std::string& what) {
  std::fprintf(stderr, "r2cc-setup: %s; see r2cc-setup --help\n", what.c_str());
  return kExitUsage;
}

// Without a library for command lines, for the same reason as setup.h.
int Main(int argc, char** argv) {
  std::string owner, from;
  const option options[] = {{"owner", required_argument, nullptr, 'o'},
                            {"from", required_argument, nullptr, 'f'},
                            {"help", no_argument, nullptr, 'h'},
                            {nullptr, 0, nullptr, 0}};
  opterr = 0;
  for (int flag = 0; (flag = getopt_long(argc, argv, "h", options, nullptr)) != -1;) {
    switch (flag) {
      case 'o': owner = optarg; break;
      case 'f': from = optarg; break;
      case 'h': std::fputs(kUsage, stdout); return 0;
      default: return WrongUse(std::string(argv[optind - 1]) + ": no such flag, or its value is missing");
    }
  }
  const std::vector<std::string> words(argv + optind, argv + argc);
  if (words.empty()) return WrongUse("a command is missing");
  const std::vector<std::string> rest(words.begin() + 1, words.end());
  std::string error;
  bool is_done = false;
  if (words[0] == "directories") {
    if (owner.empty() || rest.empty() || !from.empty()) return WrongUse("directories takes --owner UID:GID, and PATH:MODE at least once");
    is_done = HandOverAll(owner, rest, &error);
  } else if (words[0] == "plugin") {
    if (rest.size() != 1 || !owner.empty()) return WrongUse("plugin takes one directory");
    is_done = CopyInto(from.empty() ? kPlugin : from, rest[0], &error);
  } else {
    return WrongUse("'" + words[0] + "' is no command");
  }
  if (is_done) return 0;
  std::fprintf(stderr, "r2cc-setup: %s\n", error.c_str());
  return kExitFailed;
}

}  // namespace
}  // namespace r2cc::setup

int main(int argc, char** argv) { return r2cc::setup::Main(argc, argv); }
