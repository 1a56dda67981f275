// The traffic of a contract test and its judge. Each message has contents of its own. As soon as a send is reported done its buffer is
// overwritten, as soon as a receive is, it is checked and poisoned: what is read or written after that shows.
#ifndef R2CC_TESTS_CONTRACT_JOB_H_
#define R2CC_TESTS_CONTRACT_JOB_H_

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "tests/contract/world.h"

namespace r2cc::contract {

class Job {
 public:
  // The world outlives the job.
  explicit Job(World* world) : world_(world) {}

  int Open(End from, int rail);
  void Send(int flow, size_t bytes);
  void Receive(int flow, size_t capacity);
  void Exchange(int flow, size_t bytes) {
    Receive(flow, bytes);
    Send(flow, bytes);
  }

  // Lets time pass until `condition`; false if it does not come within `limit`. Everything is checked all the time.
  bool RunUntil(const std::function<bool()>& condition, Nanos limit);
  void RunFor(Nanos time) {
    RunUntil([] { return false; }, time);
  }
  // Until both sides of the flow, or of all flows, are open.
  bool RunUntilOpen(Nanos limit);
  // Until everything that was posted is done on both sides.
  bool RunUntilDone(Nanos limit) {
    return RunUntil([this] { return done(); }, limit);
  }
  // Keeps `outstanding` messages of `bytes` on their way on every flow in `flows` until `condition`.
  bool Stream(const std::vector<int>& flows, size_t bytes, int outstanding, const std::function<bool()>& condition, Nanos limit);

  bool done() const;
  // Both sides of every flow wait for something.
  bool busy() const;
  uint64_t received_messages() const { return received_messages_; }
  uint64_t received_bytes() const { return received_bytes_; }
  // The longest time without a completion, while something was outstanding, since ResetGap().
  Nanos longest_gap() const { return longest_gap_; }
  void ResetGap();

  // Both sides of the flow were closed, or will be: what is outstanding is not waited for any more. Its receive buffers are the job's own
  // again if that side is closed: writes into them show.
  void Reset(int flow);
  // The side is gone: its requests are not waited for, and its buffers not looked at.
  void Forget(End end) { gone_[end] = true; }

  // Nothing was written into a buffer after its receive was reported done, nor beside one.
  void CheckPoison();

  World& world() { return *world_; }

 private:
  struct Buffer {
    std::byte* data = nullptr;
    size_t capacity = 0;
  };
  struct Outgoing {
    Buffer buffer;
    size_t bytes = 0;
  };
  struct Flow {
    End from = 0;
    std::vector<Outgoing> sends;
    std::vector<Buffer> receives;
    bool abandoned = false;
    uint64_t sent = 0;      // seen, and overwritten
    uint64_t received = 0;  // seen, checked and poisoned
  };

  using Pool = std::map<std::pair<End, size_t>, std::deque<Buffer>>;  // by end and capacity, in the order in which they were used
  Buffer Take(Pool* pool, End end, size_t capacity);
  void Check();
  void CheckReceived(int number, Flow* flow);
  bool Waits(const Flow& flow) const;

  World* const world_;
  std::vector<Flow> flows_;
  Pool poisoned_;  // were received into
  Pool spent_;     // were sent from
  bool gone_[2] = {false, false};
  uint64_t received_messages_ = 0;
  uint64_t received_bytes_ = 0;
  uint64_t completions_ = 0;
  Nanos completed_at_ = 0;
  Nanos longest_gap_ = 0;
};

}  // namespace r2cc::contract

#endif  // R2CC_TESTS_CONTRACT_JOB_H_
