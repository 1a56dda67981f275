// `completion`: the script of a shell.
#ifndef R2CC_CLIENT_COMMANDS_COMPLETION_COMMANDS_H_
#define R2CC_CLIENT_COMMANDS_COMPLETION_COMMANDS_H_

#include "client/commands/command_tree.h"

namespace r2cc::client {

void AddCompletionCommand(CommandTree* tree);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_COMMANDS_COMPLETION_COMMANDS_H_
