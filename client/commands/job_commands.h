// `r2ccctl jobs` and `job`.
#ifndef R2CC_CLIENT_COMMANDS_JOB_COMMANDS_H_
#define R2CC_CLIENT_COMMANDS_JOB_COMMANDS_H_

#include "client/commands/command_tree.h"

namespace r2cc::client {

void AddJobCommands(CommandTree* tree);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_COMMANDS_JOB_COMMANDS_H_
