// Makes r2ccd's run directory and control directory (base/run_dirs.h).
#ifndef R2CC_DAEMON_IO_RUN_DIR_H_
#define R2CC_DAEMON_IO_RUN_DIR_H_

#include <string>

#include "absl/status/status.h"

namespace r2cc::daemon {

// Jobs of all users come through it to the attach socket. One that exists keeps its mode: containers may have it mounted. A mode that
// keeps jobs out is a warning.
absl::Status MakeRunDir(const std::string& run_dir);

// Mode 0750. One that exists keeps its mode: a service manager or an operator made it. A mode that lets others in is a warning.
absl::Status MakeControlDir(const std::string& run_dir);

// Makes the link by which r2ccctl of 0.2.0 finds the control socket. In a container that mounts the run directory it leads nowhere.
absl::Status LinkOldControlSocket(const std::string& run_dir);
// The link is there and leads to the control socket.
bool IsOldControlSocketLinked(const std::string& run_dir);
// Removes the link, unless another file has its place.
void UnlinkOldControlSocket(const std::string& run_dir);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_RUN_DIR_H_
