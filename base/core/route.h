// Finds the interface by which packets leave this network namespace, from the kernel's tables.
#ifndef R2CC_BASE_CORE_ROUTE_H_
#define R2CC_BASE_CORE_ROUTE_H_

#include <string>

namespace r2cc {

// The interface by which packets from one address of this node to another node's leave, of a socket that is tied to no device: its ifindex.
// 0 and an errno if there is no such way, or the addresses are not of one family.
int RouteInterface(const std::string& from, const std::string& to, int* failure);

}  // namespace r2cc

#endif  // R2CC_BASE_CORE_ROUTE_H_
