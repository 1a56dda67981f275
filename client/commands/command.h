// Defines a command line of sub-commands, options and flags. CLI11 parses it, and only command.cc includes that: it takes seconds to
// compile.
#ifndef R2CC_CLIENT_COMMANDS_COMMAND_H_
#define R2CC_CLIENT_COMMANDS_COMMAND_H_

#include <string>
#include <variant>
#include <vector>

#include "base/command_line/command_help.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace r2cc::client {

// An option, a flag or a positional argument. A handle: its program owns it.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}

  const Option& Required() const;
  // The name of its value in --help, such as FILE. Call it before a default.
  const Option& Value(const std::string& placeholder) const;
  // Takes one value each time that it is given.
  const Option& OneAtATime() const;
  // Shows the present value of its variable in --help as the default; the second one sets the variable.
  const Option& ShowDefault() const;
  const Option& Default(const std::string& value) const;
  const Option& OneOf(const std::vector<std::string>& values) const;
  // For int, size_t and double.
  template <typename T>
  const Option& Range(T least, T most) const;

  // How often the command line has it.
  size_t count() const;

 private:
  void AppendDefault() const;

  CLI::Option* option_;
};

// A (sub-)command. A handle: its program owns it.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}

  // Global flags may come after it.
  Command Add(const std::string& name, const std::string& description) const;
  // It is nothing without a command behind it.
  void NeedCommand() const;
  void SetFooter(const std::string& text) const;
  // `names`: "-o,--output", or a name for a positional argument. `*to` has to outlive the program. For std::string, a vector of them, int,
  // uint32_t, size_t and double.
  template <typename T>
  Option AddOption(const std::string& names, T* to, const std::string& description) const;
  Option AddFlag(const std::string& name, bool* to, const std::string& description) const;

  bool parsed() const;
  CommandHelp Describe() const;

 private:
  CLI::App* app_;
};

// A whole command line: it owns its commands and options.
class Program {
 public:
  // `version`: what --version prints.
  Program(const std::string& name, const std::string& description, const std::string& version);
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  Command root() const { return Command(app_); }

  struct Ok {};
  // The text of --help or --version: the person asked for it.
  struct Help {
    std::string text;
  };
  // One line for a person: what could not be used, and what was probably meant.
  struct Wrong {
    std::string message;
  };
  // `arguments` without the program's name.
  std::variant<Ok, Help, Wrong> Parse(std::vector<std::string> arguments) const;

 private:
  CLI::App* app_;  // owned; an incomplete type here
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_COMMANDS_COMMAND_H_
