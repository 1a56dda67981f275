// This node's newest view, for all streams that push it: latest state wins, so a slow reader never holds a backlog.
#ifndef R2CC_DAEMON_CORE_VIEW_BROADCASTER_H_
#define R2CC_DAEMON_CORE_VIEW_BROADCASTER_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Thread-safe.
class ViewBroadcaster {
 public:
  using View = std::shared_ptr<const v1::NodeView>;

  ViewBroadcaster() : view_(std::make_shared<v1::NodeView>()) {}
  ViewBroadcaster(const ViewBroadcaster&) = delete;
  ViewBroadcaster& operator=(const ViewBroadcaster&) = delete;

  void Set(v1::NodeView view) {
    {
      absl::MutexLock lock(&mutex_);
      view_ = std::make_shared<const v1::NodeView>(std::move(view));
    }
    Ring();
  }

  // Notifies the listeners although nothing changed: a keep-alive.
  void Ring() {
    absl::MutexLock lock(&listeners_mutex_);
    for (const auto& [id, listener] : listeners_) listener();
  }

  View Get() const {
    absl::MutexLock lock(&mutex_);
    return view_;
  }

  // Our own stream to `node` brings it our views, or does not any more (which rings). While it does, the stream that `node` has to us need
  // not bring them too: a view that comes twice costs both ends twice, and what comes behind it waits.
  void SetReached(const std::string& node, bool reached) {
    {
      absl::MutexLock lock(&mutex_);
      if (reached)
        reached_.insert(node);
      else
        reached_.erase(node);
    }
    if (!reached) Ring();
  }
  bool Reaches(const std::string& node) const {
    absl::MutexLock lock(&mutex_);
    return reached_.contains(node);
  }

  // `on_view` is called at each Set and Ring, on the calling thread. When Unlisten returns it is not running and will not run again.
  using ListenerId = uint64_t;
  ListenerId Listen(std::function<void()> on_view) {
    absl::MutexLock lock(&listeners_mutex_);
    const ListenerId id = next_listener_++;
    listeners_.emplace(id, std::move(on_view));
    return id;
  }
  void Unlisten(ListenerId id) {
    absl::MutexLock lock(&listeners_mutex_);
    listeners_.erase(id);
  }

 private:
  mutable absl::Mutex mutex_;
  View view_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> reached_ ABSL_GUARDED_BY(mutex_);
  absl::Mutex listeners_mutex_;
  std::map<ListenerId, std::function<void()>> listeners_ ABSL_GUARDED_BY(listeners_mutex_);
  ListenerId next_listener_ ABSL_GUARDED_BY(listeners_mutex_) = 1;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CORE_VIEW_BROADCASTER_H_
