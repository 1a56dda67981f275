// Where calls of a device are made that may block: to make, change and end queue pairs, to register and to deregister. One such thread per
// device. A device that dies may keep it for long; nobody but its own jobs waits for it.
//
// A job is called in steps, so that a wait blocks no other job. Jobs that close go before those that open: who waits for a fence holds up a
// replay.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_CONTROL_THREAD_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_CONTROL_THREAD_H_

#include <compare>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include "base/core/clock.h"

namespace r2cc::net::verbs {

enum class JobKind : uint8_t { kClose, kOpen };

// One step, at `now`. Nothing: the job is done. Else it is called again, no earlier than after so many nanoseconds; 0: soon.
using ControlJob = std::function<std::optional<Nanos>(Nanos now)>;

class ControlThread {
 public:
  virtual ~ControlThread() = default;
  // Any thread, a job's too. Steps of one job come in order and one at a time.
  virtual void Submit(JobKind kind, ControlJob job) = 0;
  // Waits for the step that is running; jobs that are not done are dropped, and so are those that come later. Not in a job.
  virtual void Stop() = 0;
};

// What is to be done next. Pure; with its owner's lock.
class JobQueue {
 public:
  void Add(JobKind kind, Nanos due, ControlJob job) { jobs_.emplace(Key{due, kind, order_++}, std::move(job)); }
  // Of what is due, a job that closes before one that opens, then the one that has waited longest.
  std::optional<std::pair<JobKind, ControlJob>> Take(Nanos now);
  // When something is due; nothing: there is nothing to do.
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

// A thread of its own, which inherits the signal mask and the processors of whoever makes it.
class RealControlThread final : public ControlThread {
 public:
  // `name` has at most 15 characters. `clock` must outlive it.
  RealControlThread(const Clock* clock, std::string name);
  ~RealControlThread() override { Stop(); }
  void Submit(JobKind kind, ControlJob job) override;
  void Stop() override;

 private:
  void Run();

  const Clock* const clock_;
  const std::string name_;
  std::mutex mutex_;
  std::condition_variable changed_;
  JobQueue jobs_;
  bool stop_ = false;
  std::thread thread_;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_CONTROL_THREAD_H_
