// Identifies the sender of a message about a node, by the way on which it came.
#ifndef R2CC_DAEMON_CORE_SPEAKER_H_
#define R2CC_DAEMON_CORE_SPEAKER_H_

#include <atomic>
#include <cstdint>
#include <string>

namespace r2cc::daemon {

// Views of one node that are looked at. A node sends one each second, and one for each change.
constexpr int kViewsPerSecond = 20;
constexpr int kViewsBurst = 60;

struct Speaker {
  uint64_t stream = 0;  // NextStream(); of one stream from its beginning to its end
  std::string from;     // an address, for people
};

// A number for a stream between daemons; no two of this process have the same. Thread-safe.
inline uint64_t NextStream() {
  static std::atomic<uint64_t> last{0};
  return ++last;
}

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_SPEAKER_H_
