// The NICs of a node whose configuration names none: those that the plugin takes as rails when R2CC_RAILS does not name any.
#ifndef R2CC_DAEMON_IO_DEFAULT_NICS_H_
#define R2CC_DAEMON_IO_DEFAULT_NICS_H_

#include <functional>
#include <string>
#include <vector>

#include "daemon/io/addresses.h"
#include "health/io/sysfs.h"

namespace r2cc::daemon {

// Sorted names. `ifindex`: of an interface by its name, 0 if there is none; /sys is believed of an interface only if it has the same
// number there, as it may be that of another network namespace.
std::vector<std::string> DefaultNics(const Addresses::Map& addresses, const health::Sysfs& sysfs,
                                     const std::function<int(const std::string& interface)>& ifindex);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_DEFAULT_NICS_H_
