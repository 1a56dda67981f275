// A job as NCCL runs one: flows that post requests ahead, poll for their end, and are closed when all is done. Each end of a flow is
// driven by its own process, in that process's turns.
#ifndef R2CC_TESTS_SIM_JOB_H_
#define R2CC_TESTS_SIM_JOB_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/checkers.h"
#include "tests/sim/process.h"

namespace r2cc::sim {

struct FlowPlan {
  int sender = 0;
  int receiver = 0;
  int rail = 0;  // the sender's
  Nanos start = 0;
  int send_window = 8;  // requests outstanding at most
  int receive_window = 8;
  Nanos send_gap_most = 0;  // how long each end takes before its next post
  Nanos receive_gap_most = 0;
  // So many messages are posted, and after this time the next ones; 0: all as soon as there is room.
  uint64_t batch = 0;
  Nanos batch_every = 0;
  Nanos linger_most = 0;                                // from the last request's end to the flow's close
  std::vector<std::pair<uint64_t, uint64_t>> messages;  // bytes, buffer's bytes
};

class Job {
 public:
  // A device that keeps a buffer for longer ends its process, as Engine does.
  static constexpr Nanos kCloseLimit = 30 * kNanosPerSecond;
  // Judges the failure of one end of a flow: true if the contract lets it fail. `awaited`: of a sender, the buffers that its receiver has
  // posted and not received, each by the rails that reach it.
  using Awaited = std::vector<std::vector<int>>;
  using Excused = std::function<bool(int own, int other, const Awaited& awaited)>;
  Job(Checker* checker, std::vector<Process*> processes, Excused excused);

  void Add(const FlowPlan& plan);
  // An abort: `host` closes all its flows as they are, and ends.
  void Abort(int host);
  bool aborted(int host) const { return ends_over_.at(static_cast<size_t>(host)) == kAborted; }

  // A process that has done all it had to does not close while this is true; empty: it closes.
  std::function<bool(const Process& process)> stays;
  // All that is to be sent and received is, or has failed.
  bool done() const;
  // All processes are over, or dead.
  bool over() const;
  // Why not, line by line.
  std::vector<std::string> Unfinished() const;
  // When one of the two first wants something of the other; 0: never.
  Nanos FirstStart(int a, int b) const;
  // How many ends of flows failed (with an excuse).
  int failures() const { return failures_; }
  uint64_t messages_delivered() const { return delivered_; }
  // When the first failure was seen by `host`; 0: none.
  Nanos failed_at(int host) const { return failed_at_.at(static_cast<size_t>(host)); }

 private:
  enum { kRunning, kAborted };
  struct Flow {
    FlowPlan plan;
    int record = 0;
    uint64_t listen_id = 0;
    // The sender's end.
    Process::SendFlow send;
    bool connecting = false, send_over = false, send_failed = false, send_closing = false, send_closed = false;
    uint64_t send_posted = 0, send_done = 0;
    std::vector<const net::Memory*> send_memory;  // by message; null: none, or not any more
    Nanos send_next = 0;
    // The receiver's.
    Process::RecvFlow receive;
    bool accepted = false, receive_over = false, receive_failed = false, receive_closing = false, receive_closed = false;
    uint64_t receive_posted = 0, receive_done = 0;
    std::vector<const net::Memory*> receive_memory;
    Nanos receive_next = 0;
    // A buffer that it posts when it has all, as CollNet does: the flow is closed with a receive posted and nothing on the way.
    std::vector<std::byte> spare;
    const net::Memory* spare_memory = nullptr;
  };

  void Progress(Process* process);
  void Send(Process* process, Flow* flow);
  void Receive(Process* process, Flow* flow);
  void PostSpare(Process* process, Flow* flow);
  void Failed(Process* process, const Flow& flow, const std::string& error, bool sends);
  Awaited AwaitedBy(const Flow& flow) const;
  // True once nothing touches the flow's buffers any more.
  bool CloseSend(Flow* flow);
  bool CloseReceive(Process* process, Flow* flow);
  Nanos Later(Process* process, Nanos most);
  // The next post's batch has begun.
  static bool MayPost(const FlowPlan& plan, uint64_t posted, Nanos now) {
    return plan.batch == 0 || now >= plan.start + static_cast<Nanos>(posted / plan.batch) * plan.batch_every;
  }
  size_t AsIndex(const Process* process) const { return static_cast<size_t>(process->host()); }

  Checker* const checker_;
  const std::vector<Process*> processes_;
  const Excused excused_;
  std::vector<Flow> flows_;
  std::vector<int> ends_over_;    // by host
  std::vector<Nanos> close_at_;   // by host; 0: not all over yet
  std::vector<Nanos> closing_;    // by host: since when its flows are being closed; 0: they are not
  std::vector<Nanos> failed_at_;  // by host
  int failures_ = 0;
  uint64_t delivered_ = 0;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_JOB_H_
