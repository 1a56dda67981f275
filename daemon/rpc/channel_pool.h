// Channels to other daemons: one for each way to an address, however many talk over it, and none that nobody uses.
#ifndef R2CC_DAEMON_RPC_CHANNEL_POOL_H_
#define R2CC_DAEMON_RPC_CHANNEL_POOL_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "grpcpp/grpcpp.h"

namespace r2cc::daemon {

// Thread-safe. Outlives none of its channels: a channel, and its connection, goes with its last holder.
class ChannelPool {
 public:
  using Make = std::function<std::shared_ptr<grpc::Channel>()>;

  // The channel of `way`, by `make` if there is none now.
  std::shared_ptr<grpc::Channel> Get(const std::string& way, const Make& make);
  // How many there are now.
  size_t open() const;

 private:
  mutable absl::Mutex mutex_;
  std::map<std::string, std::weak_ptr<grpc::Channel>> channels_ ABSL_GUARDED_BY(mutex_);
};

// From now on a channel may end on any thread. gRPC ends its callback threads with the last channel, and aborts if that happens on one of
// them: the context of a call, which holds its channel, ends on such a thread, a moment after the call's end was reported. So one channel,
// which leads nowhere and costs nothing, stays until the process ends. Thread-safe; needed once, before the first callback channel.
void LetChannelsEndAnywhere();

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_CHANNEL_POOL_H_
