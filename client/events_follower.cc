#include "client/events_follower.h"

namespace r2cc::client {

bool EventsFollower::IsNews(const v1::Event& event) {
  reached_ = true;
  // Another history, or a daemon that counts again: only time distinguishes them.
  if (again_ && (event.instance() != instance_ || instance_ == 0) && event.time_ns() <= time_ns_) return false;
  sequence_ = event.sequence();
  instance_ = event.instance();
  time_ns_ = event.time_ns();
  again_ = false;
  return true;
}

bool EventsFollower::GoesOn(const absl::Status& status, int64_t lasted_ns) {
  reached_ = reached_ || lasted_ns >= kFirstNs;
  switch (status.code()) {
    case absl::StatusCode::kOk:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled: again_ = true; return reached_;
    default: return false;
  }
}

v1::EventsRequest EventsFollower::Next() const {
  v1::EventsRequest next = request_;
  // A daemon of 0.2.0 counts from 1 at each start.
  if (sequence_ != 0) next.set_after_sequence(instance_ == 0 ? 0 : sequence_);
  next.set_after_instance(instance_);
  next.clear_last();
  return next;
}

}  // namespace r2cc::client
