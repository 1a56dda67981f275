// What `r2ccctl doctor` was told.
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
  bool without_daemon = false;  // the node has none: `job` alone is looked at
  bool all = false;  // also what is ok
  size_t peers_max = 0;
  int64_t wait_ns = 0;  // for so long it looks again, until nothing fails
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_DOCTOR_COMMAND_H_
