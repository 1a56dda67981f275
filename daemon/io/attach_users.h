// What each user has of the attach socket: nobody may take it from the others, nor fill the log. Pure: time is an argument.
#ifndef R2CC_DAEMON_IO_ATTACH_USERS_H_
#define R2CC_DAEMON_IO_ATTACH_USERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "base/core/clock.h"
#include "base/core/token_bucket.h"

namespace r2cc::daemon {

class AttachUsers {
 public:
  // Processes of one user that are attached at a time. A node has some ten GPUs, and a process each.
  static constexpr size_t kProcessesMax = 64;
  // Records that the daemon takes from the rings of one user. A process writes some each second, and some for each fault.
  static constexpr int kRecordsPerSecond = 10'000;
  static constexpr int kRecordsBurst = 20'000;
  // Connections of one user that have not asked for anything yet.
  static constexpr size_t kGreetingsMax = 128;
  // One line a second about each user; what else he is refused is counted.
  static constexpr Nanos kLineInterval = kNanosPerSecond;

  // A connection of `uid` came in. False: it is one too many, and not counted.
  bool Connect(uint32_t uid);
  // Whether one more process of `uid` may attach.
  bool MayAttach(uint32_t uid) const;
  // A connection that came in is attached from now on.
  void Attach(uint32_t uid);
  void Leave(uint32_t uid, bool attached);

  // How many records may be taken from a ring of `uid` now, of `most`.
  int TakeRecords(uint32_t uid, int most, Nanos now);

  // Something of `uid` is refused. How many refusals went untold before, if this one is to be told.
  std::optional<uint64_t> Refuse(uint32_t uid, Nanos now);
  uint64_t refused() const { return refused_; }

 private:
  struct Connections {
    size_t greetings = 0;
    size_t attached = 0;
  };
  struct Told {
    Nanos when = 0;
    uint64_t untold = 0;
  };
  std::map<uint32_t, Connections> connections_;
  std::map<uint32_t, Told> told_;
  std::map<uint32_t, TokenBucket> records_;  // also of users who have left: who comes again has no more
  uint64_t refused_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_ATTACH_USERS_H_
