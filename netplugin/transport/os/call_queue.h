// Calls that other threads want done by the I/O thread.
#ifndef R2CC_NETPLUGIN_TRANSPORT_OS_CALL_QUEUE_H_
#define R2CC_NETPLUGIN_TRANSPORT_OS_CALL_QUEUE_H_

#include <exception>
#include <functional>
#include <vector>

#include "base/core/function_ref.h"
#include "base/core/mutex.h"

namespace r2cc::net {

class CallQueue {
 public:
  // `wake` makes the I/O thread come and Run().
  explicit CallQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Any thread: has `call` done and waits for it. After End() it is done at once, by the caller. What the call throws is the caller's;
  // beside that nothing is thrown, and no memory is taken.
  void Do(FunctionRef<void()> call);

  // Any thread: has `call` done some time, and waits for nothing. After End() it is not done.
  void Post(std::function<void()> call);

  // The I/O thread.
  void Run();
  // No call is taken any more; those that wait are done.
  void End();

 private:
  // On the stack of whoever waits for it.
  struct Waiting {
    FunctionRef<void()> call;
    std::exception_ptr thrown = nullptr;
    bool done = false;
    Waiting* next = nullptr;
  };
  void RunAll(Waiting* first);

  const std::function<void()> wake_;
  Mutex mutex_;
  CondVar done_;
  Waiting* first_ R2CC_GUARDED_BY(mutex_) = nullptr;
  Waiting** last_ R2CC_GUARDED_BY(mutex_) = &first_;  // where the next one goes
  std::vector<std::function<void()>> posted_ R2CC_GUARDED_BY(mutex_);
  bool ended_ R2CC_GUARDED_BY(mutex_) = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_OS_CALL_QUEUE_H_
