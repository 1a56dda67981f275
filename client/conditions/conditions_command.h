// Holds the arguments of `r2ccctl conditions`.
#ifndef R2CC_CLIENT_CONDITIONS_CONDITIONS_COMMAND_H_
#define R2CC_CLIENT_CONDITIONS_CONDITIONS_COMMAND_H_

#include <string>

namespace r2cc::client {

struct ConditionsCommand {
  std::string socket_path;   // of an r2ccd; or, if `server` is not empty:
  std::string server;        // host:port of one
  std::string certificates;  // for that
  std::string api_server;    // host:port of Kubernetes' API server
  std::string account;       // a directory with `token` and `ca.crt` of a service account
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_CONDITIONS_CONDITIONS_COMMAND_H_
