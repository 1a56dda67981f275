// Commands about the daemon and the nodes that it knows: `status`, `health`, `node`, `events`, `report-disagreement`, `path`,
// `watch`.
#ifndef R2CC_CLIENT_COMMANDS_NODE_COMMANDS_H_
#define R2CC_CLIENT_COMMANDS_NODE_COMMANDS_H_

#include "client/commands/command_tree.h"

namespace r2cc::client {

void AddStatusCommands(CommandTree* tree);
void AddNodeCommands(CommandTree* tree);
void AddEventsCommand(CommandTree* tree);
void AddDisagreementCommand(CommandTree* tree);
void AddPathCommands(CommandTree* tree);
void AddWatchCommand(CommandTree* tree);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_COMMANDS_NODE_COMMANDS_H_
