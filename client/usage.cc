#include "client/usage.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/values.h"

namespace r2cc::client {
namespace {

std::vector<std::string> CommandNames(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* sub : app.get_subcommands([](const CLI::App*) { return true; })) names.push_back(sub->get_name());
  return names;
}

// "r2ccctl nic" for the deepest command that was understood.
std::string CommandPath(const CLI::App& app) {
  return app.get_parent() == nullptr ? "r2ccctl" : absl::StrCat(CommandPath(*app.get_parent()), " ", app.get_name());
}

std::vector<std::string> FlagNames(const CLI::App* app) {
  std::vector<std::string> names;
  for (; app != nullptr; app = app->get_parent())
    for (const CLI::Option* option : app->get_options())
      if (option->nonpositional())
        for (const std::string& name : option->get_lnames()) names.push_back(absl::StrCat("--", name));
  return names;
}

std::string DidYouMean(const std::string& typed, const std::vector<std::string>& choices) {
  const std::string nearest = Nearest(typed, choices);
  return nearest.empty() ? "" : absl::StrCat("; did you mean '", nearest, "'?");
}

}  // namespace

std::string ExplainUsage(const CLI::App& root, const CLI::ParseError& error) {
  const CLI::App* deepest = &root;
  while (!deepest->get_subcommands().empty()) deepest = deepest->get_subcommands().front();
  const std::string path = CommandPath(*deepest);
  const std::vector<std::string> commands = CommandNames(*deepest);
  std::vector<std::string> left = root.remaining(true);
  for (const std::string& argument : left) {
    if (!argument.starts_with("-") || argument == "-") continue;
    const std::string name = argument.substr(0, argument.find('='));
    return absl::StrCat("unknown flag '", name, "'", DidYouMean(name, FlagNames(deepest)), " (`", path, " --help` lists the flags)");
  }
  if (!left.empty() && !commands.empty()) {
    const std::string guess = DidYouMean(left.front(), commands);
    return absl::StrCat("unknown command '", path.substr(std::string("r2ccctl").size()).empty() ? "" : path.substr(8) + " ", left.front(),
                        "'", guess, guess.empty() ? absl::StrCat(": one of ", absl::StrJoin(commands, ", ")) : "", " (`", path,
                        " --help` explains)");
  }
  if (!left.empty()) return absl::StrCat("unexpected argument '", left.front(), "' after `", path, "` (see `", path, " --help`)");
  if (!commands.empty()) return absl::StrCat("`", path, "` needs a command: one of ", absl::StrJoin(commands, ", "));
  return absl::StrCat(error.what(), " (see `", path, " --help`)");
}

}  // namespace r2cc::client
