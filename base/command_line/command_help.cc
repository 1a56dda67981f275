#include "base/command_line/command_help.h"

#include <CLI/CLI.hpp>

#include <cstdio>
#include <string_view>

namespace r2cc {
namespace {

std::string Quoted(std::string_view text) {
  std::string quoted = "\"";
  for (const char letter : text) {
    if (letter == '"' || letter == '\\') quoted += '\\';
    if (static_cast<unsigned char>(letter) >= 0x20) {
      quoted += letter;
    } else {
      char escaped[8];
      std::snprintf(escaped, sizeof(escaped), "\\u%04x", letter);
      quoted += escaped;
    }
  }
  return quoted + "\"";
}

template <typename Values, typename ToText>
std::string Array(const Values& values, ToText to_text) {
  std::string text = "[";
  for (const auto& value : values) text += (text.size() > 1 ? "," : "") + to_text(value);
  return text + "]";
}

std::string ToJson(const OptionHelp& option) {
  return "{\"names\":" + Array(option.names, Quoted) + ",\"value\":" + Quoted(option.value) + ",\"text\":" + Quoted(option.text) +
         ",\"default\":" + Quoted(option.default_text) + ",\"choices\":" + Array(option.choices, Quoted) +
         ",\"positional\":" + (option.positional ? "true" : "false") + ",\"required\":" + (option.required ? "true" : "false") + "}";
}

std::string ToJson(const CommandHelp& command) {
  return "{\"name\":" + Quoted(command.name) + ",\"text\":" + Quoted(command.text) +
         ",\"options\":" + Array(command.options, [](const OptionHelp& option) { return ToJson(option); }) +
         ",\"commands\":" + Array(command.commands, [](const CommandHelp& inner) { return ToJson(inner); }) + "}";
}

// CLI11 writes the choices behind the type: "TEXT:{table,json}".
std::vector<std::string> ChoicesOf(const std::string& type) {
  std::vector<std::string> choices;
  const size_t begin = type.find('{'), end = type.find('}');
  if (begin == std::string::npos || end == std::string::npos) return choices;
  for (size_t at = begin + 1; at < end;) {
    const size_t comma = std::min(type.find(',', at), end);
    choices.push_back(type.substr(at, comma - at));
    at = comma + 1;
  }
  return choices;
}

// A path such as DIR or FILE is worth a word of its own; CLI11's "TEXT:INT in [0 - 5]" is not.
std::string ValueOf(const CLI::Option& option, const std::vector<std::string>& choices) {
  if (option.get_type_size_max() == 0) return "";
  // Its default may be behind it.
  if (const std::string word = option.get_option_text(); !word.empty()) return word.substr(0, word.find(" ["));
  const std::string type = option.get_type_name();
  if (!choices.empty()) return type.substr(type.find('{') + 1, type.find('}') - type.find('{') - 1);
  return type.substr(0, type.find(':'));
}

OptionHelp DescribeOption(const CLI::Option& option) {
  OptionHelp help;
  help.positional = !option.nonpositional();
  if (help.positional) {
    help.names.push_back(option.get_name(true));
  } else {
    for (const std::string& name : option.get_snames()) help.names.push_back("-" + name);
    for (const std::string& name : option.get_lnames()) help.names.push_back("--" + name);
  }
  help.choices = ChoicesOf(option.get_type_name());
  help.value = help.positional ? "" : ValueOf(option, help.choices);
  help.text = option.get_description();
  help.default_text = option.get_default_str();
  help.required = option.get_required();
  return help;
}

}  // namespace

CommandHelp Describe(const CLI::App& app) {
  CommandHelp help = {app.get_name(), app.get_description(), {}, {}};
  for (const CLI::Option* option : app.get_options())
    if (!option->get_group().empty()) help.options.push_back(DescribeOption(*option));
  for (const CLI::App* command : app.get_subcommands([](const CLI::App* of) { return !of->get_group().empty(); }))
    help.commands.push_back(Describe(*command));
  return help;
}

void AddHelpJson(CLI::App* app) {
  app->add_flag_callback("--help_json", [app] { throw CLI::CallForVersion(ToJson(Describe(*app)), 0); })->group("");
}

}  // namespace r2cc
