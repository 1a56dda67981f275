// Finds out whether a process runs on the machine itself or in a container, whose uids and gids mean nothing here.
#ifndef R2CC_DAEMON_IO_PROCESS_ORIGIN_H_
#define R2CC_DAEMON_IO_PROCESS_ORIGIN_H_

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

namespace r2cc::daemon {

// The facts that the kernel shows every user about a process: files of /proc/PID. Empty: not shown (the process has ended, or /proc is
// mounted with hidepid).
struct ProcessView {
  std::string status;
  std::string uid_map;
  std::string mountinfo;  // its beginning
};

// `pid`: as this process sees it; 0: of this process itself.
ProcessView ViewProcess(pid_t pid);
std::string CgroupOf(pid_t pid);

// The groups of the process at the other end of a connected Unix socket, without its primary one. Empty: a kernel before 4.13.
std::vector<uint32_t> PeerGroups(int fd);

// Whether the process of `other` is in a container, seen from that of `own`: another pid namespace, another user namespace, another root
// file system, or no view at all. A container that shares all three with the machine cannot be distinguished from it. Pure.
bool IsContained(const ProcessView& own, const ProcessView& other);

// The control group that all processes of one container, or of one person, have in common: of the path in `cgroup`, the text of
// /proc/PID/cgroup, up to the first part that names one. A container may divide the parts below as it likes. Empty: there is no path.
// Pure.
std::string TenantOf(const std::string& cgroup);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_PROCESS_ORIGIN_H_
