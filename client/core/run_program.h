// Runs programs of the system and returns their output.
#ifndef R2CC_CLIENT_CORE_RUN_PROGRAM_H_
#define R2CC_CLIENT_CORE_RUN_PROGRAM_H_

#include <cstddef>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace r2cc::client {

// The end of the program's output on standard output and error, at most `bytes_max`. It is killed after `timeout_ms`. It reads `input`
// from its standard input. NOT_FOUND: there is no such program; the output of one that fails has its own reason.
absl::StatusOr<std::string> RunSystemProgram(const std::vector<std::string>& command, size_t bytes_max, int timeout_ms = 5000,
                                             const std::string& input = "");

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_CORE_RUN_PROGRAM_H_
