// Holds the arguments of `r2ccctl doctor`.
#ifndef R2CC_CLIENT_DOCTOR_DOCTOR_COMMAND_H_
#define R2CC_CLIENT_DOCTOR_DOCTOR_COMMAND_H_

#include <cstddef>
#include <cstdint>
#include <string>

namespace r2cc::client {

struct DoctorCommand {
  std::string run_dir;
  std::string socket_path;
  bool json = false;
  bool job = false;
  bool without_daemon = false;  // the node has no daemon: only `job` is checked
  bool all = false;             // also what is ok
  size_t peers_max = 0;
  int64_t wait_ns = 0;  // repeats the checks for this time, until nothing fails
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_DOCTOR_COMMAND_H_
