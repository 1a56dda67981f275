// Lets other threads have calls done by the I/O thread.
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
  // `wake` makes the I/O thread call Run().
  explicit CallQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Any thread: has `call` done and waits for it. After End() the caller does it at once. What the call throws is thrown to the caller;
  // nothing else throws, and no memory is allocated.
  void Do(FunctionRef<void()> call);

  // Any thread: has `call` done later, and does not wait. After End() it is dropped.
  void Post(std::function<void()> call);

  // The I/O thread.
  void Run();
  // Takes no more calls; those that wait are done.
  void End();

 private:
  // On the stack of the waiting thread.
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
