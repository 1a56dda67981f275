// The server's end of a call with one reply, and what clients may leave there untaken.
#ifndef R2CC_DAEMON_RPC_UNARY_CALL_H_
#define R2CC_DAEMON_RPC_UNARY_CALL_H_

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/core/answer.h"
#include "daemon/core/caller.h"
#include "daemon/rpc/channel.h"
#include "grpcpp/grpcpp.h"

namespace r2cc::daemon {

// Limits the memory of replies that clients have not taken yet: a client may open streams, ask for much, and give the streams no window.
// One reply at a time of each caller always passes, as long as there is room for all. Thread-safe.
class PendingReplies {
 public:
  // A smaller reply is not counted: an action is answered also under load by others.
  static constexpr size_t kSmallBytes = 16 << 10;
  static constexpr size_t kPerCallerMax = 4'194'304;
  static constexpr size_t kPendingBytesMax = 33'554'432;

  // False: `who` leaves too much, or all do.
  bool Hold(const std::string& who, size_t bytes) {
    absl::MutexLock lock(&mutex_);
    size_t& of_who = of_.try_emplace(who).first->second;
    const bool fits = (of_who == 0 || of_who + bytes <= kPerCallerMax) && (all_ == 0 || all_ + bytes <= kPendingBytesMax);
    if (fits) {
      of_who += bytes;
      all_ += bytes;
    }
    if (of_who == 0) of_.erase(who);
    return fits;
  }
  void Release(const std::string& who, size_t bytes) {
    absl::MutexLock lock(&mutex_);
    all_ -= bytes;
    if (const auto found = of_.find(who); (found->second -= bytes) == 0) of_.erase(found);
  }

 private:
  absl::Mutex mutex_;
  std::map<std::string, size_t> of_ ABSL_GUARDED_BY(mutex_);
  size_t all_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Ends itself when gRPC is done with it.
class UnaryCall final : public grpc::ServerUnaryReactor {
 public:
  explicit UnaryCall(std::shared_ptr<PendingReplies> replies) : replies_(std::move(replies)) {}

  void Refuse(const absl::Status& why) { Finish(ToGrpc(why)); }
  // Once, before or after the handler returns.
  template <typename T>
  void Reply(const std::string& holder, absl::StatusOr<T> result, T* reply) {
    if (!result.ok()) return Refuse(result.status());
    // In memory it has several times the bytes that it has on the wire.
    if (const size_t bytes = result->SpaceUsedLong(); bytes > PendingReplies::kSmallBytes) {
      if (!replies_->Hold(holder, bytes))
        return Refuse(absl::ResourceExhaustedError(absl::StrCat(holder, " leaves replies untaken, or others do: ask again later")));
      holder_ = holder;
      pending_bytes_ = bytes;
    }
    *reply = *std::move(result);
    Finish(grpc::Status::OK);
  }
  void OnDone() override {
    if (pending_bytes_ > 0) replies_->Release(holder_, pending_bytes_);
    delete this;
  }

 private:
  const std::shared_ptr<PendingReplies> replies_;
  std::string holder_;
  size_t pending_bytes_ = 0;
};

// Ends a call of `caller` with the answer of the core.
template <typename T>
Answer<T> AnswerTo(UnaryCall* call, const Caller& caller, T* reply) {
  return [call, holder = ShareOf(caller), reply](absl::StatusOr<T> result) { call->Reply(holder, std::move(result), reply); };
}

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_UNARY_CALL_H_
