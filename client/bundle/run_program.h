// Programs of the system, for what they say.
#ifndef R2CC_CLIENT_BUNDLE_RUN_PROGRAM_H_
#define R2CC_CLIENT_BUNDLE_RUN_PROGRAM_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace r2cc::client {

// The end of what the program writes to standard output and error, at most `bytes_max`. It is killed after `timeout_ms`. It reads `input`
// from its standard input. NOT_FOUND: there is no such program; one that fails says so itself.
absl::StatusOr<std::string> RunSystemProgram(const std::vector<std::string>& command, size_t bytes_max, int timeout_ms = 5000,
                                             const std::string& input = "");

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_BUNDLE_RUN_PROGRAM_H_
