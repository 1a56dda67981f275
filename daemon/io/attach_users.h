// What each user has of the attach socket: nobody may take it from the others, nor fill the log. Pure: time is an argument.
#ifndef R2CC_DAEMON_IO_ATTACH_USERS_H_
#define R2CC_DAEMON_IO_ATTACH_USERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>

#include "base/core/clock.h"

namespace r2cc::daemon {

class AttachUsers {
 public:
  // Processes of one user that are attached at a time: a quarter of all. A node has some ten GPUs, and a process each.
  static constexpr size_t kProcessesMax = 1024;
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
  uint64_t refused_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_ATTACH_USERS_H_
