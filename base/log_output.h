// Writes log lines to a descriptor and never waits for its reader. Lines that the reader does not take at once are kept, within a bound.
#ifndef R2CC_BASE_LOG_OUTPUT_H_
#define R2CC_BASE_LOG_OUTPUT_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/core/mutex.h"

namespace r2cc {

// Lines leave whole and in order. Thread-safe. The descriptor stays the caller's, and so do its flags, which other processes share.
class LogOutput {
 public:
  // Bytes of lines that wait for the reader; some 2,000 lines.
  static constexpr size_t kWaitingBytesMax = 262'144;

  explicit LogOutput(int fd);
  LogOutput(const LogOutput&) = delete;
  LogOutput& operator=(const LogOutput&) = delete;

  // `line` ends with a newline. It waits behind those that wait, or is lost if there is no room. A write to a regular file may still wait
  // for its disk.
  void Write(std::string_view line);
  // Writes what waits, as far as the reader takes it.
  void Flush();
  // Lines lost since the last call, once nothing waits any more; else 0.
  uint64_t TakeLost();

 private:
  void FlushLocked() R2CC_REQUIRES(mutex_);
  // The bytes that were taken; 0: none now.
  size_t WriteSome(std::string_view bytes) const;

  const int fd_;
  const bool is_socket_;
  Mutex mutex_;
  std::string waiting_ R2CC_GUARDED_BY(mutex_);
  uint64_t lost_ R2CC_GUARDED_BY(mutex_) = 0;
};

}  // namespace r2cc

#endif  // R2CC_BASE_LOG_OUTPUT_H_
