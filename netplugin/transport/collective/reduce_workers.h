// Reduces host memory on threads of its own, for collectives that the plugin runs itself: the thread of NCCL that polls must go on moving
// bytes while contributions are added up. A reduction is cut into pieces that any of the threads takes, so that they share a large one.
//
// The number of threads never depends on the data, and the result does not depend on the number of threads.
#ifndef R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_REDUCE_WORKERS_H_
#define R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_REDUCE_WORKERS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "base/core/mutex.h"
#include "netplugin/abi/nccl_types.h"
#include "netplugin/transport/os/processors.h"
#include "netplugin/transport/os/workers.h"

namespace r2cc::net {

// See collnet::Reduce(). Until it is done() the sources are read and `out` is written.
class Reduction {
 public:
  Reduction(abi::DataType type, abi::RedOp op, std::vector<const std::byte*> sources, std::byte* out, size_t count);

  // Any thread. A thread that saw true also sees what was written.
  bool done() const { return pieces_left_.load(std::memory_order_acquire) == 0; }
  // Waits until it is done: for as long as the queued reductions take.
  void Wait() const;

 private:
  friend class ReduceWorkers;
  size_t pieces() const;
  void ReducePiece(size_t piece);

  const abi::DataType type_;
  const abi::RedOp op_;
  const std::vector<const std::byte*> sources_;
  std::byte* const out_;
  const size_t count_;
  std::atomic<size_t> pieces_left_;
};

class ReduceWorkers {
 public:
  // For a job that may use `processors` processors. One thread reads and writes some 6 GB/s (tests/bench:reduction); four members'
  // contributions are more than half of that, so a few threads keep up with the rails. With few processors there are none, and Submit()
  // reduces.
  static int ThreadsFor(int processors);

  // Starts threads named "r2cc-reduce" on `processors`, with all signals blocked, whatever the calling thread has. With 0 threads Submit()
  // reduces before it returns. On failure, without descriptors for them, null and one line in `error`.
  static std::unique_ptr<ReduceWorkers> Start(int threads, const Processors& processors, std::string* error);
  // Every reduction must be done.
  ~ReduceWorkers();

  // Any thread. A thread reduces it soon.
  void Submit(std::shared_ptr<Reduction> reduction);

 private:
  struct Task;
  struct Piece {
    std::shared_ptr<Reduction> reduction;
    size_t number = 0;
  };
  ReduceWorkers() = default;
  bool Take(Piece* piece);

  Mutex mutex_;
  std::deque<Piece> pieces_ R2CC_GUARDED_BY(mutex_);
  std::vector<Workers::Token> tokens_;  // a task for each thread
  std::unique_ptr<Workers> workers_;    // null: no threads. The last member: the threads end before what they use
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_REDUCE_WORKERS_H_
