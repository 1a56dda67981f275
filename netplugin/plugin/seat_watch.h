// Finds the communicator that libr2cc-nccl.so makes for a seat among those that begin meanwhile. Any thread.
#ifndef R2CC_NETPLUGIN_PLUGIN_SEAT_WATCH_H_
#define R2CC_NETPLUGIN_PLUGIN_SEAT_WATCH_H_

#include <cstddef>

#include "base/core/mutex.h"

namespace r2cc::net {

template <typename Context>
class SeatWatch {
 public:
  // From now on communicators of so many ranks are noted as they begin. 0: of any number.
  void Begin(size_t ranks) {
    const MutexLock lock(mutex_);
    is_alone_ = ++watchers_ == 1;
    if (!is_alone_) return;  // which communicator is whose is not known: neither is a seat
    ranks_ = ranks;
    begun_ = 0;
    last_ = nullptr;
  }

  // A communicator begins, of so many ranks. `context` lives until Forget().
  void Note(Context* context, size_t ranks) {
    const MutexLock lock(mutex_);
    if (watchers_ == 0 || (ranks_ != 0 && ranks_ != ranks)) return;
    ++begun_;
    last_ = context;
  }

  void Forget(const Context* context) {
    const MutexLock lock(mutex_);
    if (last_ == context) last_ = nullptr;
  }

  // Ends what Begin() began, and marks the one communicator that began. False, and nothing is marked: none began, or several.
  template <typename Mark>
  bool End(Mark mark) {
    const MutexLock lock(mutex_);
    if (watchers_ > 0) --watchers_;
    const bool is_clear = is_alone_ && begun_ == 1 && last_ != nullptr;
    if (is_clear) mark(last_);
    is_alone_ = false;
    last_ = nullptr;
    return is_clear;
  }

 private:
  Mutex mutex_;
  int watchers_ R2CC_GUARDED_BY(mutex_) = 0;       // threads that make a seat
  bool is_alone_ R2CC_GUARDED_BY(mutex_) = false;  // since there is a watcher there was never a second one
  size_t ranks_ R2CC_GUARDED_BY(mutex_) = 0;
  size_t begun_ R2CC_GUARDED_BY(mutex_) = 0;
  Context* last_ R2CC_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_PLUGIN_SEAT_WATCH_H_
