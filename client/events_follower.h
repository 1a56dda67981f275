// Follows events over restarts of the daemon: what to ask next, and what of the answer is new. Pure.
#ifndef R2CC_CLIENT_EVENTS_FOLLOWER_H_
#define R2CC_CLIENT_EVENTS_FOLLOWER_H_

#include <cstdint>

#include "absl/status/status.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

class EventsFollower {
 public:
  static constexpr int kRetryMs = 500;
  // A first attempt that fails within this time reached no daemon at all: the person gets that message.
  static constexpr int64_t kFirstNs = 1'000'000'000;

  explicit EventsFollower(const v1::EventsRequest& first) : request_(first) {}

  // False: it was in the answer before.
  bool IsNews(const v1::Event& event);
  // The stream ended with `status` after `lasted_ns`: ask again?
  bool GoesOn(const absl::Status& status, int64_t lasted_ns);
  // The next request.
  v1::EventsRequest Next() const;

 private:
  v1::EventsRequest request_;
  bool reached_ = false;   // a daemon answered at some time
  uint64_t sequence_ = 0;  // of the newest event
  uint64_t instance_ = 0;  // of the history that it is in; 0: a daemon of 0.2.0, which begins again at each start
  int64_t time_ns_ = 0;
  bool again_ = false;  // the answer may begin with events that are known
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_EVENTS_FOLLOWER_H_
