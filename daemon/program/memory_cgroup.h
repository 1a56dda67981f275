// A memory control group for a process under test, with the limit that the unit gives r2ccd.
#ifndef R2CC_DAEMON_PROGRAM_MEMORY_CGROUP_H_
#define R2CC_DAEMON_PROGRAM_MEMORY_CGROUP_H_

#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

namespace r2cc::daemon {

// Only root may make one, and not in every container: made() is true if it is there.
class MemoryCgroup {
 public:
  static constexpr int64_t kBytesMax = int64_t{512} << 20;  // MemoryMax of the unit

  MemoryCgroup() {
    for (const auto& [root, limit] : {std::pair("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), {"/sys/fs/cgroup", "memory.max"}}) {
      path_ = std::string(root) + "/r2cc-test-" + std::to_string(getpid());
      if (geteuid() != 0 || mkdir(path_.c_str(), 0755) != 0) continue;
      if (Write(path_ + "/" + limit, kBytesMax)) return;
      rmdir(path_.c_str());
    }
    path_.clear();
  }
  // After the process has ended.
  ~MemoryCgroup() {
    if (made()) rmdir(path_.c_str());
  }
  MemoryCgroup(const MemoryCgroup&) = delete;
  MemoryCgroup& operator=(const MemoryCgroup&) = delete;

  bool made() const { return !path_.empty(); }
  // False: it stays where it was.
  bool Add(pid_t pid) { return made() && Write(path_ + "/cgroup.procs", pid); }

 private:
  static bool Write(const std::string& path, int64_t value) {
    std::ofstream file(path);
    file << value;
    file.flush();
    return file.good();
  }
  std::string path_;
};

// A line of /proc/PID/status, in KiB: VmRSS, or VmHWM, the most that it was. 0: the process is gone.
inline int64_t MemoryKb(pid_t pid, const std::string& line_name) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/status");
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(line_name + ":")) return std::atoll(line.c_str() + line_name.size() + 1);
  return 0;
}

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_PROGRAM_MEMORY_CGROUP_H_
