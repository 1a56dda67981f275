// Calls that other threads want done by the I/O thread.
#ifndef R2CC_NETPLUGIN_TRANSPORT_CALL_QUEUE_H_
#define R2CC_NETPLUGIN_TRANSPORT_CALL_QUEUE_H_

#include <functional>
#include <mutex>
#include <vector>

namespace r2cc::net {

class CallQueue {
 public:
  // `wake` makes the I/O thread come and Run().
  explicit CallQueue(std::function<void()> wake) : wake_(std::move(wake)) {}

  // Any thread: has `call` done and waits for it. After End() it is done at once, by the caller.
  void Do(const std::function<void()>& call);

  // The I/O thread.
  void Run();
  // No call is taken any more; those that wait are done.
  void End();

 private:
  const std::function<void()> wake_;
  std::mutex mutex_;
  std::vector<std::function<void()>> calls_;
  bool ended_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_CALL_QUEUE_H_
