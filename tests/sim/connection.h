// A simulated connection, as the two kernels know it.
#ifndef R2CC_TESTS_SIM_CONNECTION_H_
#define R2CC_TESTS_SIM_CONNECTION_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <vector>

#include "tests/sim/socket.h"

namespace r2cc::sim {

class Buffer {
 public:
  size_t size() const { return bytes_.size() - head_; }
  void Append(const uint8_t* from, size_t count) {
    if (head_ > 0 && head_ == bytes_.size()) clear();
    bytes_.insert(bytes_.end(), from, from + count);
  }
  size_t Take(uint8_t* to, size_t count) {
    count = std::min(count, size());
    if (count > 0) std::memcpy(to, bytes_.data() + head_, count);
    head_ += count;
    return count;
  }
  void clear() {
    bytes_.clear();
    head_ = 0;
  }

 private:
  std::vector<uint8_t> bytes_;
  size_t head_ = 0;
};

struct Segment {
  std::vector<uint8_t> bytes;
  Nanos arrival = 0;
  bool last = false;
};

class Connection {
 public:
  struct End {
    Port port;
    std::weak_ptr<Socket> socket;
    bool open = false;       // the kernel knows it
    bool connected = false;  // as its process sees it
    bool deaf = false;       // its kernel takes bytes, no process reads them
    bool broken = false;
    bool refused = false;
    // Outgoing.
    Buffer unsent;
    std::deque<Segment> flying;
    size_t unacknowledged = 0;
    uint64_t acknowledged_bytes = 0;
    Nanos busy = 0, busy_since = 0;
    Nanos progressed = 0;   // since then no byte was acknowledged, or nothing waits
    int lost_permille = 0;  // of what this end sends; 1000: this connection is swallowed, whatever else passes
    bool end_wanted = false, end_sent = false;
    bool aborted = false;
    bool arrival_planned = false;
    Nanos last_arrival = 0;
    Nanos retransmit = 0;
    // Incoming.
    Buffer arrived;
    bool end_arrived = false;
    int silences = 0;
  };
  End ends[2];
  bool keep_alive = false;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_CONNECTION_H_
