// One end of a simulated connection, as a process holds it.
#ifndef R2CC_TESTS_SIM_SOCKET_H_
#define R2CC_TESTS_SIM_SOCKET_H_

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <utility>

#include "base/core/clock.h"

namespace r2cc::sim {

constexpr int kOobRail = -1;

struct Port {
  int host = 0;
  int rail = 0;  // kOobRail: the out-of-band interface
  auto operator<=>(const Port&) const = default;
};

class Network;
class Connection;

class Socket {
 public:
  Socket(Network* network, std::shared_ptr<Connection> connection, int side)
      : network_(network), connection_(std::move(connection)), side_(side) {}

  // The owner sets it; called (from the network's events) when something can be read, written, or is over.
  std::function<void()> on_ready;

  bool connected() const;
  bool refused() const;  // a connect that was answered "nobody listens here"
  bool broken() const;   // refused or reset; bytes that arrived before can still be read
  bool ended() const;    // the other end closed in order, and everything has been read

  size_t Readable() const;
  size_t Read(uint8_t* to, size_t bytes);
  size_t Room() const;
  size_t Write(const uint8_t* from, size_t bytes);  // takes what there is room for
  // Bytes written that the other end's kernel has not acknowledged.
  size_t Unacknowledged() const;
  uint64_t acknowledged_bytes() const;
  // The other end's kernel takes more bytes, or does not answer whether it does.
  bool window_open() const;
  // How often in a row the kernel has waited in vain for an acknowledgement.
  int timeouts() const;
  // For how long there has been something unacknowledged, in all.
  Nanos busy() const;

  void HalfClose();
  // As close(): what was written still travels, unless something was left unread.
  void Close();
  // As close() with a linger time of zero after shutdown(): a reset, unsent bytes lost.
  void Reset();

  Port local() const;
  Port remote() const;

 private:
  friend class Network;
  Network* const network_;
  const std::shared_ptr<Connection> connection_;
  const int side_;
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_SOCKET_H_
