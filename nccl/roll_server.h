// Answers roll calls of the communicators whose IDs this process made: a thread and a listening socket. A connection is one request and one
// reply. Never destroyed: ranks may ask until the process ends. A rank that gets no answer for want of memory asks again.
#ifndef R2CC_NCCL_ROLL_SERVER_H_
#define R2CC_NCCL_ROLL_SERVER_H_

#include <poll.h>
#include <sys/socket.h>

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>

#include "base/core/clock.h"
#include "nccl/roll.h"

namespace r2cc::nccl {

class RollServer {
 public:
  // Each communicator that was begun or split off by an ID of this process, until the process ends.
  static constexpr size_t kRollsMax = 1 << 16;

  // Listens at `address`, whose port is 0 and is set. Null: it cannot.
  static RollServer* Start(sockaddr_storage* address, socklen_t bytes, uint64_t nonce, size_t rolls_max = kRollsMax);
  RollServer(const RollServer&) = delete;
  RollServer& operator=(const RollServer&) = delete;

 private:
  struct Connection {
    int fd = -1;
    Nanos since = 0;
    size_t got = 0;
    std::byte bytes[sizeof(RollRequest)] = {};
  };
  // Each connection is a file of the job's process; a request takes microseconds.
  static constexpr size_t kConnectionsMax = 256;
  static constexpr Nanos kConnectionMax = 5 * kNanosPerSecond;
  // While there are kConnectionsMax: connections that send nothing then keep no rank waiting for longer than its own patience of 2 s.
  static constexpr Nanos kCrowdedMax = 100 * kNanosPerMs;
  // When the process has no file left for a connection.
  static constexpr Nanos kFullPause = 20 * kNanosPerMs;

  RollServer(int listener, uint64_t nonce, size_t rolls_max) : listener_(listener), nonce_(nonce), rolls_max_(rolls_max) {}
  [[noreturn]] void Serve();
  void Accept(Nanos now);
  // False: the connection is over.
  bool Receive(Connection* connection, Nanos now);
  void Answer(const Connection& connection, Nanos now);
  // Nothing: the request cannot belong to its communicator, or there is no memory for it now.
  std::optional<Verdict> Decide(const RollRequest& request, Nanos now);

  const int listener_;
  const uint64_t nonce_;
  const size_t rolls_max_;
  Nanos accepts_from_ = 0;
  // Memory for all of them from the start: this thread has nobody to report to that there is none.
  std::array<Connection, kConnectionsMax> connections_;
  std::array<pollfd, 1 + kConnectionsMax> files_;
  size_t connected_ = 0;
  std::unordered_map<uint64_t, Roll> rolls_;
};

}  // namespace r2cc::nccl

#endif  // R2CC_NCCL_ROLL_SERVER_H_
