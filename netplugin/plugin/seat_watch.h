// Identifies one of libr2cc-nccl.so's communicators: the only one of a given size that NCCL reports between two calls. Any thread.
#ifndef R2CC_NETPLUGIN_PLUGIN_SEAT_WATCH_H_
#define R2CC_NETPLUGIN_PLUGIN_SEAT_WATCH_H_

#include <cstddef>

#include "base/core/mutex.h"

namespace r2cc::net {

template <typename Context>
class SeatWatch {
 public:
  // Notes communicators with this size from now on. 0: with any.
  void Begin(size_t size) {
    const MutexLock lock(mutex_);
    is_alone_ = ++watchers_ == 1;
    if (!is_alone_) return;  // it is unknown which communicator belongs to which watcher, so neither is a seat
    size_ = size;
    noted_ = 0;
    last_ = nullptr;
  }

  // A communicator with this size. `context` lives until Forget().
  void Note(Context* context, size_t size) {
    const MutexLock lock(mutex_);
    if (watchers_ == 0 || (size_ != 0 && size_ != size) || last_ == context) return;
    ++noted_;
    last_ = context;
  }

  void Forget(const Context* context) {
    const MutexLock lock(mutex_);
    if (last_ == context) last_ = nullptr;
  }

  // Ends what Begin() began, and marks the one communicator that was noted. False, and nothing is marked: there was none, or several.
  template <typename Mark>
  bool End(Mark mark) {
    const MutexLock lock(mutex_);
    if (watchers_ > 0) --watchers_;
    const bool is_clear = is_alone_ && noted_ == 1 && last_ != nullptr;
    if (is_clear) mark(last_);
    is_alone_ = false;
    last_ = nullptr;
    return is_clear;
  }

 private:
  Mutex mutex_;
  int watchers_ R2CC_GUARDED_BY(mutex_) = 0;       // threads between Begin() and End()
  bool is_alone_ R2CC_GUARDED_BY(mutex_) = false;  // there was never a second watcher since the first one began
  size_t size_ R2CC_GUARDED_BY(mutex_) = 0;
  size_t noted_ R2CC_GUARDED_BY(mutex_) = 0;
  Context* last_ R2CC_GUARDED_BY(mutex_) = nullptr;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_PLUGIN_SEAT_WATCH_H_
