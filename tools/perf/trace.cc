#include "tools/perf/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>

#include "tools/perf/clock.h"

namespace r2cc::perf {
namespace {

constexpr size_t kBufferBytesMax = 256 * 1024;

}  // namespace

Trace::~Trace() {
  if (fd_ < 0) return;
  Flush(NowNs());
  close(fd_);
}

Status Trace::Open(const std::string& prefix, int rank) {
  const std::string path = prefix + "." + std::to_string(rank) + ".csv";
  fd_ = open(path.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
  if (fd_ < 0)
    return Status::Error("cannot write the trace " + path + ": " + strerror(errno) + "; give --trace a prefix in a writable folder");
  rank_ = rank;
  struct stat file;
  if (fstat(fd_, &file) == 0 && file.st_size == 0) buffer_ = "kind,time_ns,rank,flow,bytes,wait_ns\n";
  Flush(NowNs());
  return {};
}

void Trace::Add(std::string_view kind, int64_t time_ns, std::string_view flow, int64_t bytes, int64_t wait_ns) {
  if (fd_ < 0) return;
  char line[192];
  const int length = snprintf(line, sizeof(line), "%.*s,%lld,%d,%.*s,%lld,%lld\n", static_cast<int>(kind.size()), kind.data(),
                              static_cast<long long>(time_ns), rank_, static_cast<int>(flow.size()), flow.data(),
                              static_cast<long long>(bytes), static_cast<long long>(wait_ns));
  if (length > 0 && static_cast<size_t>(length) < sizeof(line)) buffer_.append(line, length);
  if (buffer_.size() > kBufferBytesMax) Flush(time_ns);
}

void Trace::Flush(int64_t now_ns) {
  if (fd_ < 0) return;
  flushed_ns_ = now_ns;
  size_t written = 0;
  while (written < buffer_.size()) {
    const ssize_t n = write(fd_, buffer_.data() + written, buffer_.size() - written);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) break;  // a full disk must not stop the run
    written += n;
  }
  buffer_.clear();
}

}  // namespace r2cc::perf
