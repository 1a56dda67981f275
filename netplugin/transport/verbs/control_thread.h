// Runs the calls of a device that may block: to make, change and end queue pairs, to register and to deregister. A device that dies may
// hold up such a call for long; only the jobs behind it wait for it.
//
// A job is called in steps, so that a wait blocks no other job. Jobs of different kinds do not wait for each other: joining a queue pair
// takes up to a second if the other host does not answer (address resolution, measured on soft-RoCE). A replay waits for a fence, and a
// rail whose peer is alive must not be down for as long as other peers are dead.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_CONTROL_THREAD_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_CONTROL_THREAD_H_

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/core/clock.h"
#include "base/core/mutex.h"

namespace r2cc::net::verbs {

enum class JobKind : uint8_t {
  kClose,
  kOpen,
  kJoin,       // to another host, which may not answer
  kJoinAgain,  // to a host that did not answer the last time: others do not wait for it
};
constexpr size_t kJobKinds = 4;

// One step, at `now`. Nothing: the job is done. Otherwise it is called again, no earlier than after that many nanoseconds; 0: soon.
using ControlJob = std::function<std::optional<Nanos>(Nanos now)>;

class ControlThread {
 public:
  virtual ~ControlThread() = default;
  // Any thread, including a job's. Steps of one job come in order and one at a time.
  virtual void Submit(JobKind kind, ControlJob job) = 0;
  // Jobs run from now on. Call once.
  virtual void Start() {}
  // Waits until all jobs that close are done, at most for `most`. Not in a job.
  virtual void FinishClosing(Nanos /*most*/) {}
  // Waits for running steps, except one that calls it. Jobs that are not done are dropped, and so are later ones.
  virtual void Stop() = 0;
};

// Chooses the next job. Pure; with its owner's lock.
class JobQueue {
 public:
  void Add(JobKind kind, Nanos due, ControlJob job) { jobs_.emplace(Key{due, kind, order_++}, std::move(job)); }
  // Of the due jobs, one that closes before one that opens, then the one that has waited longest.
  std::optional<std::pair<JobKind, ControlJob>> Take(Nanos now);
  // When a job is due; nothing: there is no job.
  std::optional<Nanos> next() const;
  bool empty() const { return jobs_.empty(); }

 private:
  struct Key {
    Nanos due;
    JobKind kind;
    uint64_t order;
    auto operator<=>(const Key&) const = default;
  };
  std::map<Key, ControlJob> jobs_;
  uint64_t order_ = 0;
};

// Runs one thread for each kind of job. The threads inherit the signal mask and the processors of the thread that starts them. Jobs of one
// link that open and close may run at the same time. It may be destroyed in one of its own jobs: that thread then ends after the job, and
// no thread waits for it.
class RealControlThread final : public ControlThread {
 public:
  // `name` has at most 15 characters. `clock` must outlive it.
  RealControlThread(const Clock* clock, std::string name);
  ~RealControlThread() override { Stop(); }
  void Submit(JobKind kind, ControlJob job) override;
  void Start() override;
  void FinishClosing(Nanos most) override;
  void Stop() override;

 private:
  // Shared by the threads; it outlives the object that stops them.
  struct Worker {
    JobQueue jobs;
    int undone = 0;  // jobs that are not done, including the one that is running
  };
  struct State {
    const Clock* clock = nullptr;
    std::string name;
    Mutex mutex;
    CondVar changed;
    std::array<Worker, kJobKinds> workers R2CC_GUARDED_BY(mutex);
    bool started R2CC_GUARDED_BY(mutex) = false;
    bool stop R2CC_GUARDED_BY(mutex) = false;
    std::array<std::thread, kJobKinds> threads;  // used only by the thread that starts and stops them
    Worker& Of(JobKind kind) R2CC_REQUIRES(mutex) { return workers[static_cast<size_t>(kind)]; }
  };
  static void Run(State* state, JobKind own);

  const std::shared_ptr<State> state_ = std::make_shared<State>();
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_CONTROL_THREAD_H_
