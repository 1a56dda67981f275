// `r2ccctl nic`, `fail-nic` and `restore-nic`.
#ifndef R2CC_CLIENT_COMMANDS_NIC_COMMANDS_H_
#define R2CC_CLIENT_COMMANDS_NIC_COMMANDS_H_

#include "client/commands/command_tree.h"

namespace r2cc::client {

void AddNicCommands(CommandTree* tree);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_COMMANDS_NIC_COMMANDS_H_
