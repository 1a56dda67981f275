#include "client/commands/completion_commands.h"

#include <memory>
#include <vector>

#include "client/completion.h"

namespace r2cc::client {

void AddCompletionCommand(CommandTree* tree) {
  const auto typed = std::make_shared<CompletionCommand>();
  CLI::App* completion =
      tree->Add(tree->root(), "completion", "the script by which a shell completes command lines: source <(r2ccctl completion bash)");
  completion->add_option("SHELL", typed->shell, "bash, zsh or fish")
      ->required()
      ->check(CLI::IsMember(std::vector<std::string>{"bash", "zsh", "fish"}));
  tree->Means(completion, [typed] { return Chosen(*typed); });
}

}  // namespace r2cc::client
