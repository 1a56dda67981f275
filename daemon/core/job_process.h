// A process of a job that is attached to this daemon.
#ifndef R2CC_DAEMON_CORE_JOB_PROCESS_H_
#define R2CC_DAEMON_CORE_JOB_PROCESS_H_

#include <cstdint>
#include <string>

namespace r2cc::daemon {

// The share of the processes of `uid` on the machine itself.
inline std::string ShareOfUser(uint32_t uid) { return "uid " + std::to_string(uid); }

// One attached process, named by its connection.
using JobId = uint64_t;

// The process that attached, from the kernel (SO_PEERCRED).
struct JobProcess {
  int32_t pid = 0;
  uint32_t uid = 0;
  // The kernel shows no pid, because the process is in another pid namespace: `pid` is what the job sent.
  bool pid_claimed = false;
  // The account that bears its cost: its user, or its container, whose root chooses its uids. Empty: its user.
  std::string share = {};
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_JOB_PROCESS_H_
