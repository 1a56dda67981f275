// `r2ccctl plan`.
#ifndef R2CC_CLIENT_COMMANDS_PLAN_COMMANDS_H_
#define R2CC_CLIENT_COMMANDS_PLAN_COMMANDS_H_

#include "client/commands/command_tree.h"

namespace r2cc::client {

void AddPlanCommands(CommandTree* tree);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_COMMANDS_PLAN_COMMANDS_H_
