// Finds out how a missing daemon is started.
#ifndef R2CC_CLIENT_CORE_START_HINT_H_
#define R2CC_CLIENT_CORE_START_HINT_H_

#include <string>

namespace r2cc::client {

// Whether systemd runs this machine and has r2ccd's unit. `root` goes before all paths: empty but in tests.
bool HasUnit(const std::string& root);

// The advice for a daemon that does not listen on `socket_path`. With a unit it is systemctl: a daemon that root starts by hand runs as
// root.
std::string HowToStart(const std::string& socket_path, bool has_unit);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_CORE_START_HINT_H_
