// Shares the state of a flow between its NCCL thread and the holder of its peer's lock (peer.h), in a few atomics. The holder may be any
// thread of NCCL, the I/O thread or a transport's, one at a time.
#ifndef R2CC_NETPLUGIN_TRANSPORT_COMM_H_
#define R2CC_NETPLUGIN_TRANSPORT_COMM_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "base/core/mutex.h"
#include "netplugin/flow/types.h"

namespace r2cc::net {

// Outstanding requests of one communicator; NCCL itself stays below 32.
constexpr uint64_t kRequestsMax = 64;

constexpr char kCalledAfterTheEnd[] = "R2CC: called after the end of the process began";

class Bounce;

// Requests have the numbers of the flow's messages. NCCL's progress thread counts them as it posts; the holder of the lock publishes how
// far they are done. A reader of both reads the state before done_through: a request that was done before the flow failed is done.
struct Comm {
  enum class State { kOpening, kOpen, kFailed };

  // Only NCCL's progress thread.
  uint64_t posted = 0;
  // The same thread. Null: buffers that are not registered are posted as they are.
  std::shared_ptr<Bounce> bounce;

  // NCCL's commId; 0: not known. Set before any peer knows the comm.
  uint64_t communicator = 0;

  // With the lock. Its release store publishes the sizes.
  std::atomic<uint64_t> done_through{0};
  // With the lock. Actual sizes of received messages, by number modulo the array. An entry may be read from when done_through has passed
  // its number until a request with that number plus kRequestsMax is posted.
  std::array<uint64_t, kRequestsMax> sizes{};
  // kOpen: set with the lock, and only from kOpening. kFailed: set by any thread, forever.
  std::atomic<State> state{State::kOpening};
  // The peer accepted the flow, whatever happened since. Set with the lock before the state, and read after it.
  std::atomic<bool> opened{false};

  // Any thread. The first call wins. `logged`: the line is in the log already.
  void Fail(const std::string& line, bool logged) {
    const MutexLock lock(mutex_);
    if (state.load(std::memory_order_relaxed) != State::kFailed) {
      error_ = line;
      logged_ = logged;
    }
    state.store(State::kFailed, std::memory_order_release);
  }
  // Any thread. Sets no line: the caller logs why. Allocates no memory.
  void Break() noexcept {
    const MutexLock lock(mutex_);
    logged_ = true;
    state.store(State::kFailed, std::memory_order_release);
  }
  // Any thread. Why it failed; empty after it was taken.
  std::string error() const {
    const MutexLock lock(mutex_);
    return error_;
  }
  // Any thread. Why it failed; empty if the log has it already. Later calls return an empty line. Allocates no memory.
  std::string TakeError() {
    const MutexLock lock(mutex_);
    return std::exchange(logged_, true) ? std::string() : std::move(error_);
  }

 private:
  mutable Mutex mutex_;
  std::string error_ R2CC_GUARDED_BY(mutex_);
  bool logged_ R2CC_GUARDED_BY(mutex_) = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_COMM_H_
