// The few socket calls that TCP rails need. Nothing here blocks.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_SOCKET_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_SOCKET_H_

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "netplugin/transport/os/unique_fd.h"

namespace r2cc::net {

struct SocketAddress {
  sockaddr_storage storage{};
  socklen_t length = 0;

  uint16_t port() const;
  void set_port(uint16_t port);
  std::string Text() const;  // the address without the port
};

// A numeric IPv4 or IPv6 address. False if `text` is not one.
bool ParseAddress(const std::string& text, uint16_t port, SocketAddress* out);

// Where the local end of a connection is tied to.
struct Source {
  SocketAddress address;                // length 0: any
  std::string interface;                // empty: not tied to a device
  std::string congestion_control = {};  // empty: the system's
};

enum class SocketUse { kOob, kControl, kBulk };

// A listening socket on the source's address and any free port; works while the address's interface is down. On failure an empty one
// and a line in `error`.
UniqueFd Listen(const Source& source, uint16_t* port, std::string* error);

// A socket that is connecting; its end shows as writability. On failure an empty one and errno in `*failure`.
UniqueFd Connect(const Source& source, const SocketAddress& to, SocketUse use, int* failure);

// Has the kernel look for a neighbour that is the way to `to`: one that still knows a hardware address which is not ours any more learns
// the new one by being asked, and no sooner than he gives up the old one otherwise. Best effort: nobody need answer.
void GreetNeighbour(const Source& source, const SocketAddress& to);

// A connection that somebody opened, or an empty one if there is none; then `*failure` is an errno, EAGAIN if all is well.
UniqueFd Accept(int listener, int* failure);

// For accepted sockets, once their use is known.
void Prepare(int fd, SocketUse use, const std::string& interface);

// Index of the interface by which an accepted connection came in; 0: the kernel does not say.
int IncomingInterface(int fd);

// Bytes that the kernel takes beyond its window.
void LimitUnsent(int fd, uint32_t bytes);

// Bytes that the kernel holds, sent or not, until the peer acknowledges them; 0, or more than net.core.wmem_max lets a process ask for: as
// the kernel sees fit.
void LimitHeld(int fd, uint64_t bytes);

// Whether the kernel may keep its acknowledgement of what little has come until more comes, or some 40 ms have passed. Once it has waited
// so long for nothing it waits no more, until it is told again.
void DelayAcknowledgements(int fd, bool delay);

// The ports that the kernel gives to sockets which ask for any, the first and the last; nothing if it does not say.
std::optional<std::pair<uint16_t, uint16_t>> LocalPorts();

// The congestion control that connections have here if nobody asks for another; empty if the kernel does not say.
std::string SystemCongestionControl();
// Whether the kernel has it and lets this process use it.
bool HasCongestionControl(const std::string& name);

// Result of a finished connect; 0 or an errno.
int ConnectResult(int fd);

// What the kernel says of a connection since it began.
struct TcpStats {
  uint64_t delivered_bytes = 0;  // acknowledged by the peer's kernel
  int64_t busy_ns = 0;           // there was something to deliver, and the peer took it
  int64_t round_trip_ns = 0;     // the shortest lately
  bool unsent = false;           // some bytes wait for room on the way
  // See PathFacts.
  bool unacknowledged = false;
  bool window_open = true;
  uint32_t timeouts = 0;
  uint32_t packet_bytes = 0;         // of the largest packet that the kernel sends here
  uint32_t packet_header_bytes = 0;  // what of a packet is not payload
};
TcpStats StatsOf(int fd);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_SOCKET_H_
