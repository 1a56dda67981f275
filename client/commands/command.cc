#include "client/commands/command.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdint>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/commands/values.h"

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

// `root` has been parsed. CLI11 names the text that it could not use; this names the option and the probable intent.
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

}  // namespace

const Option& Option::Required() const {
  option_->required();
  return *this;
}

const Option& Option::Value(const std::string& placeholder) const {
  option_->option_text(placeholder);
  return *this;
}

const Option& Option::OneAtATime() const {
  option_->allow_extra_args(false);
  return *this;
}

const Option& Option::ShowDefault() const {
  option_->capture_default_str();
  AppendDefault();
  return *this;
}

const Option& Option::Default(const std::string& value) const {
  option_->default_val(value);
  AppendDefault();
  return *this;
}

// CLI11 leaves the default out if the value has a placeholder.
void Option::AppendDefault() const {
  const std::string& placeholder = option_->get_option_text();
  if (!placeholder.empty() && !option_->get_default_str().empty())
    option_->option_text(absl::StrCat(placeholder, " [", option_->get_default_str(), "]"));
}

const Option& Option::OneOf(const std::vector<std::string>& values) const {
  option_->check(CLI::IsMember(values));
  return *this;
}

template <typename T>
const Option& Option::Range(T least, T most) const {
  option_->check(CLI::Range(least, most));
  return *this;
}
template const Option& Option::Range(int, int) const;
template const Option& Option::Range(size_t, size_t) const;
template const Option& Option::Range(double, double) const;

size_t Option::count() const { return option_->count(); }

Command Command::Add(const std::string& name, const std::string& description) const {
  CLI::App* const app = app_->add_subcommand(name, description);
  app->fallthrough();
  return Command(app);
}

void Command::NeedCommand() const { app_->require_subcommand(1); }

void Command::SetFooter(const std::string& text) const { app_->footer(text); }

template <typename T>
Option Command::AddOption(const std::string& names, T* to, const std::string& description) const {
  return Option(app_->add_option(names, *to, description));
}
template Option Command::AddOption(const std::string&, std::string*, const std::string&) const;
template Option Command::AddOption(const std::string&, std::vector<std::string>*, const std::string&) const;
template Option Command::AddOption(const std::string&, int*, const std::string&) const;
template Option Command::AddOption(const std::string&, uint32_t*, const std::string&) const;
template Option Command::AddOption(const std::string&, size_t*, const std::string&) const;
template Option Command::AddOption(const std::string&, double*, const std::string&) const;

Option Command::AddFlag(const std::string& name, bool* to, const std::string& description) const {
  return Option(app_->add_flag(name, *to, description));
}

bool Command::parsed() const { return app_->parsed(); }

CommandHelp Command::Describe() const { return r2cc::Describe(*app_); }

Program::Program(const std::string& name, const std::string& description, const std::string& version)
    : app_(new CLI::App(description, name)) {
  app_->set_version_flag("--version", version);
  AddHelpJson(app_);
  app_->require_subcommand(1);
  app_->fallthrough();
}

Program::~Program() { delete app_; }

std::variant<Program::Ok, Program::Help, Program::Wrong> Program::Parse(std::vector<std::string> arguments) const {
  std::reverse(arguments.begin(), arguments.end());  // the order CLI11 wants
  try {
    app_->parse(arguments);
  } catch (const CLI::CallForHelp&) {
    return Help{app_->help()};
  } catch (const CLI::CallForVersion& version) {
    return Help{absl::StrCat(version.what(), "\n")};
  } catch (const CLI::ParseError& error) {
    return Wrong{ExplainUsage(*app_, error)};
  }
  return Ok{};
}

}  // namespace r2cc::client
