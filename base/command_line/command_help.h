// What a command line may hold, as values: of --help, the man pages and the shells' completion, so that none of them says anything else.
#ifndef R2CC_BASE_COMMAND_LINE_COMMAND_HELP_H_
#define R2CC_BASE_COMMAND_LINE_COMMAND_HELP_H_

#include <string>
#include <vector>

namespace CLI {
class App;  // its header takes seconds to compile
}

namespace r2cc {

struct OptionHelp {
  std::vector<std::string> names;  // with their dashes, short ones first; of a positional the one word, such as NODE/NIC
  std::string value;               // what stands behind it, such as DIR; empty: nothing
  std::string text;
  std::string default_text;          // empty: none, or the text tells it
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

// Of `app`, a program's own: --help_json, which is not in --help, prints Describe() as one JSON object and ends as --version does.
void AddHelpJson(CLI::App* app);

}  // namespace r2cc

#endif  // R2CC_BASE_COMMAND_LINE_COMMAND_HELP_H_
