// Runs one task at a time on a thread, for the main thread, which watches the other ranks meanwhile.
#ifndef R2CC_TOOLS_PERF_WORKER_H_
#define R2CC_TOOLS_PERF_WORKER_H_

#include <functional>
#include <string>
#include <thread>

#include "base/core/mutex.h"
#include "tools/perf/status.h"

namespace r2cc::perf {

class Worker {
 public:
  // name: for debuggers, at most 15 characters.
  explicit Worker(const std::string& name);
  ~Worker();
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  // Starts a task. The previous one must have been taken.
  void Start(std::function<Status()> task);
  // Readable when the task has ended.
  int done_fd() const { return done_fd_; }
  // The result; waits for it.
  Status Take();

 private:
  void Main();

  const int done_fd_;
  Mutex mutex_;
  CondVar wake_;
  std::function<Status()> task_ R2CC_GUARDED_BY(mutex_);
  Status result_ R2CC_GUARDED_BY(mutex_);
  bool stop_ R2CC_GUARDED_BY(mutex_) = false;
  std::thread thread_;
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_WORKER_H_
