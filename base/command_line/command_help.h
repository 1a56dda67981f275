// Describes a command line as values: --help, the man pages and the shells' completion are made of them, so that all agree.
#ifndef R2CC_BASE_COMMAND_LINE_COMMAND_HELP_H_
#define R2CC_BASE_COMMAND_LINE_COMMAND_HELP_H_

#include <string>
#include <vector>

namespace CLI {
class App;  // its header takes seconds to compile
}

namespace r2cc {

struct OptionHelp {
  std::vector<std::string> names;  // with their dashes, short ones first; for a positional its one name, such as NODE/NIC
  std::string value;               // the name of its value, such as DIR; empty: it takes none
  std::string text;
  std::string default_text;          // empty: there is none, or the text has it
  std::vector<std::string> choices;  // empty: anything
  bool positional = false;
  bool required = false;
};

struct CommandHelp {
  std::string name;
  std::string text;
  std::vector<OptionHelp> options;  // without what is not in --help
  std::vector<CommandHelp> commands;
};

CommandHelp Describe(const CLI::App& app);

// Adds --help_json to `app`, a program's own: it is not in --help, prints Describe() as one JSON object and ends as --version does.
void AddHelpJson(CLI::App* app);

}  // namespace r2cc

#endif  // R2CC_BASE_COMMAND_LINE_COMMAND_HELP_H_
