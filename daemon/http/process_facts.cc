#include "daemon/http/process_facts.h"

#include <sys/resource.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

namespace r2cc::daemon {

ProcessFacts ReadProcessFacts() {
  ProcessFacts facts;
  rusage usage{};
  if (getrusage(RUSAGE_SELF, &usage) == 0) {
    const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6; };
    facts.cpu_s = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  }
  uint64_t pages = 0, resident = 0;
  if (std::ifstream("/proc/self/statm") >> pages >> resident)
    facts.resident_bytes = resident * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
  std::error_code error;
  for (std::filesystem::directory_iterator at("/proc/self/fd", error), end; !error && at != end; at.increment(error))
    ++facts.open_descriptors;
  return facts;
}

}  // namespace r2cc::daemon
