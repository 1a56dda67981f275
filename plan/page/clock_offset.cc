#include "plan/page/clock_offset.h"

#include <fcntl.h>
#include <unistd.h>

#include <cinttypes>
#include <cstdio>

namespace r2cc::plan {
namespace {

constexpr int64_t kSecondsMax = 10LL * 365 * 86'400;

std::string ReadLink(const char* path) {
  char text[64];
  const ssize_t got = readlink(path, text, sizeof(text));
  return got <= 0 ? "" : std::string(text, static_cast<size_t>(got));
}

}  // namespace

Nanos ParseMonotonicOffset(const std::string& timens_offsets) {
  const size_t at = timens_offsets.find("monotonic");
  int64_t seconds = 0, nanos = 0;
  if (at == std::string::npos || std::sscanf(timens_offsets.c_str() + at, "monotonic %" SCNd64 " %" SCNd64, &seconds, &nanos) != 2)
    return 0;
  if (seconds < -kSecondsMax || seconds > kSecondsMax || nanos < 0 || nanos >= kNanosPerSecond) return 0;
  return seconds * kNanosPerSecond + nanos;
}

Nanos OwnMonotonicOffset() {
  // The file speaks of the namespace of this process's children, which is another one between unshare() and fork().
  if (ReadLink("/proc/self/ns/time") != ReadLink("/proc/self/ns/time_for_children")) return 0;
  const int fd = open("/proc/self/timens_offsets", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return 0;
  char text[256];
  const ssize_t got = read(fd, text, sizeof(text));
  close(fd);
  return got <= 0 ? 0 : ParseMonotonicOffset(std::string(text, static_cast<size_t>(got)));
}

}  // namespace r2cc::plan
