// Chooses the address at which rank 0 waits for the other ranks. Pure.
#ifndef R2CC_TOOLS_PERF_ROOT_ADDRESS_H_
#define R2CC_TOOLS_PERF_ROOT_ADDRESS_H_

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace r2cc::perf {

// The index of one of the numeric addresses that `host` has on rank 0's machine, at least one. Debian's /etc/hosts gives a machine's own
// name 127.0.1.1 there, where no other machine can connect: a loopback address counts only if `host` asks for it. Nothing: listen on all
// addresses.
std::optional<size_t> ChooseListenAddress(const std::string& host, const std::vector<std::string>& addresses);

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_ROOT_ADDRESS_H_
