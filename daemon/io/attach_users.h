// Limits the share of each user of the attach socket, so that no user takes it from the others or fills the log. A share is a user, or a
// container, because root of a container chooses its uids. Pure: time is an argument.
#ifndef R2CC_DAEMON_IO_ATTACH_USERS_H_
#define R2CC_DAEMON_IO_ATTACH_USERS_H_

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "base/core/clock.h"
#include "base/core/token_bucket.h"
#include "daemon/core/job_process.h"

namespace r2cc::daemon {

class AttachUsers {
 public:
  // Connections at a time: a process takes two descriptors of the 32,768 that the unit gives.
  static constexpr size_t kPlacesMax = 4096;
  // The last of them are for root, and for users and shares that have none.
  static constexpr size_t kReserve = kPlacesMax / 4;
  // Processes of one share that are attached at a time. A node has some ten GPUs, and a process each.
  static constexpr size_t kProcessesMax = 64;
  // Records that the daemon takes from the rings of one share. A process writes some each second, and some for each fault.
  static constexpr int kRecordsPerSecond = 10'000;
  static constexpr int kRecordsBurst = 20'000;
  // Connections of one user that have not asked for anything yet.
  static constexpr size_t kGreetingsMax = 128;
  // Those of all users: root of a container has all uids. Beyond that the oldest goes; a plugin asks as soon as it is connected.
  static constexpr size_t kGreetingsInAllMax = 512;
  // One line a second about each user, and some about all; further refusals are counted.
  static constexpr Nanos kLineInterval = kNanosPerSecond;
  static constexpr int kLinesPerSecond = 16;
  static constexpr int kLinesBurst = 64;

  // The share of processes of `uid` on the machine itself.
  static std::string ShareOf(uint32_t uid) { return ShareOfUser(uid); }

  // A connection of `uid` came in. False: it is one too many, and not counted.
  bool Connect(uint32_t uid);
  // It has left, and had not attached.
  void Disconnect(uint32_t uid);
  // Empty if one more process of `share` may attach; else why not.
  std::string WhyNotAttach(const std::string& share) const;
  // A connection of `uid` that came in is attached as one of `share` from now on.
  void Attach(uint32_t uid, const std::string& share);
  // It has left.
  void Leave(const std::string& share);

  // How many records may be taken from a ring of `share` now, of `most`.
  int TakeRecords(const std::string& share, int most, Nanos now);
  // The ring had this many fewer.
  void GiveBack(const std::string& share, int records);

  // Something of `uid` is refused. If this refusal is to be logged: how many were suppressed before it.
  std::optional<uint64_t> Refuse(uint32_t uid, Nanos now);
  uint64_t refused() const { return refused_; }
  size_t places() const { return places_; }

 private:
  struct Logged {
    Nanos when = 0;
    uint64_t suppressed = 0;
  };
  // Whether there is room for a user that has some already, or has none.
  bool HasRoom(bool has_some) const { return places_ < (has_some ? kPlacesMax - kReserve : kPlacesMax); }

  size_t places_ = 0;                       // taken
  std::map<uint32_t, size_t> greetings_;    // by user
  std::map<std::string, size_t> attached_;  // by share
  std::map<uint32_t, Logged> logged_;
  TokenBucket lines_{kLinesPerSecond, kLinesBurst};
  std::map<std::string, TokenBucket> records_;  // also of shares that have left: one that comes again has no more
  uint64_t refused_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_ATTACH_USERS_H_
