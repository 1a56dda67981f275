// `r2ccctl config check`: has this machine's r2ccd check files. Asks no daemon.
#ifndef R2CC_CLIENT_LOCAL_CHECK_CONFIG_H_
#define R2CC_CLIENT_LOCAL_CHECK_CONFIG_H_

#include <string>
#include <vector>

#include "absl/status/status.h"

namespace r2cc::client {

struct CheckConfigCommand {
  std::string path;     // a file, or the directory of r2ccd.textproto
  std::string node;     // as r2ccd's --node
  std::string program;  // the r2ccd that checks; empty: the one next to r2ccctl, that of the package, or that of PATH
  bool json = false;
};

// The program and its arguments.
std::vector<std::string> CheckConfigArguments(const CheckConfigCommand& command, const std::string& program);

// Becomes r2ccd, which reports mistakes and ends with its own exit code: returns only if there is no r2ccd. The installed one is the one
// that the files are for.
absl::Status Run(const CheckConfigCommand& command);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_LOCAL_CHECK_CONFIG_H_
