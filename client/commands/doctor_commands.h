// `r2ccctl doctor`, `ready` and `support-bundle`.
#ifndef R2CC_CLIENT_COMMANDS_DOCTOR_COMMANDS_H_
#define R2CC_CLIENT_COMMANDS_DOCTOR_COMMANDS_H_

#include "client/commands/command_tree.h"

namespace r2cc::client {

void AddDoctorCommand(CommandTree* tree);
void AddReadyCommand(CommandTree* tree);
void AddHealthEventsCommand(CommandTree* tree);
void AddConditionsCommand(CommandTree* tree);
void AddBundleCommand(CommandTree* tree);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_COMMANDS_DOCTOR_COMMANDS_H_
