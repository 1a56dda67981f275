// What NCCL's thread of a flow and whoever holds the lock of its peer (peer.h) share: a few atomics, nothing else. That may be any thread
// of NCCL's, the I/O thread or a transport's, one after another.
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

// Requests are numbered like the flow's messages. NCCL's progress thread counts them as it posts; who holds the lock publishes how far they
// are done. Who asks for both reads the state before done_through: what was done before the flow failed is done.
struct Comm {
  enum class State { kOpening, kOpen, kFailed };

  // NCCL's progress thread alone.
  uint64_t posted = 0;
  // The same thread's. Null: buffers that are not registered are posted as they are.
  std::shared_ptr<Bounce> bounce;

  // NCCL's commId; 0: not known. Set before any peer knows the comm.
  uint64_t communicator = 0;

  // With the lock. Its release store publishes the sizes.
  std::atomic<uint64_t> done_through{0};
  // With the lock. Actual sizes of received messages, by number modulo the array; a place may be read from when done_through has passed
  // its number until a request with that number plus kRequestsMax is posted.
  std::array<uint64_t, kRequestsMax> sizes{};
  // kOpen with the lock, and only from kOpening; kFailed by anybody, for good.
  std::atomic<State> state{State::kOpening};
  // The peer accepted the flow, whatever became of it since. With the lock, set before the state, and read after it.
  std::atomic<bool> opened{false};

  // Any thread. The first call wins. `told`: the line is in the log already.
  void Fail(const std::string& line, bool told) {
    const MutexLock lock(mutex_);
    if (state.load(std::memory_order_relaxed) != State::kFailed) {
      error_ = line;
      told_ = told;
    }
    state.store(State::kFailed, std::memory_order_release);
  }
  // Any thread. Without a line: who calls it logs why. Takes no memory.
  void Break() noexcept {
    const MutexLock lock(mutex_);
    told_ = true;
    state.store(State::kFailed, std::memory_order_release);
  }
  // Any thread. Why it failed; empty once it was taken.
  std::string error() const {
    const MutexLock lock(mutex_);
    return error_;
  }
  // Any thread. Why it failed; empty if the log has it already. The next calls return nothing. Takes no memory.
  std::string TakeError() {
    const MutexLock lock(mutex_);
    return std::exchange(told_, true) ? std::string() : std::move(error_);
  }

 private:
  mutable Mutex mutex_;
  std::string error_ R2CC_GUARDED_BY(mutex_);
  bool told_ R2CC_GUARDED_BY(mutex_) = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_COMM_H_
