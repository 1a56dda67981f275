#include "client/commands/completion_commands.h"

#include <memory>
#include <vector>

#include "client/local/completion.h"

namespace r2cc::client {

void AddCompletionCommand(CommandTree* tree) {
  const auto typed = std::make_shared<CompletionCommand>();
  const Command completion =
      tree->Add(tree->root(), "completion", "the script by which a shell completes command lines: source <(r2ccctl completion bash)");
  completion.AddOption("SHELL", &typed->shell, "bash, zsh or fish").Required().OneOf({"bash", "zsh", "fish"});
  tree->Means(completion, [typed] { return Chosen(*typed); });
}

}  // namespace r2cc::client
