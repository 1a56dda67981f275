// What NCCL's threads and the I/O thread share about one flow: a few atomics, nothing else.
#ifndef R2CC_NETPLUGIN_TRANSPORT_COMM_H_
#define R2CC_NETPLUGIN_TRANSPORT_COMM_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>

#include "netplugin/flow/types.h"

namespace r2cc::net {

// Outstanding requests of one communicator; NCCL itself stays below 32.
constexpr uint64_t kRequestsMax = 64;

constexpr char kCalledAfterTheEnd[] = "R2CC: called after the end of the process began";

// Requests are numbered like the flow's messages. NCCL's progress thread counts them as it posts; the I/O thread publishes how far they
// are done.
struct Comm {
  enum class State { kOpening, kOpen, kFailed };

  // Written by NCCL's progress thread only.
  uint64_t posted = 0;

  // Written by the I/O thread only.
  std::atomic<uint64_t> done_through{0};
  std::atomic<State> state{State::kOpening};
  // Actual sizes of received messages, by number modulo the array; valid once done_through has passed.
  std::array<uint64_t, kRequestsMax> sizes{};

  // The first call wins. `told`: the line is in the log already.
  void Fail(const std::string& line, bool told) {
    const std::lock_guard lock(mutex_);
    if (error_.empty()) {
      error_ = line;
      told_ = told;
    }
    state.store(State::kFailed, std::memory_order_release);
  }
  // Why it failed, whether it was told or not.
  std::string error() const {
    const std::lock_guard lock(mutex_);
    return error_;
  }
  // Why it failed; empty if the log has it already. The next calls return nothing.
  std::string TakeError() {
    const std::lock_guard lock(mutex_);
    return std::exchange(told_, true) ? std::string() : error_;
  }

 private:
  mutable std::mutex mutex_;
  std::string error_;
  bool told_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_COMM_H_
