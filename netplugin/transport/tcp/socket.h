// Wraps the few socket calls that TCP rails need. No call blocks.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_SOCKET_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_SOCKET_H_

#include <sys/socket.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/core/unique_fd.h"

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

// What the local end of a connection is bound to.
struct Source {
  SocketAddress address;                // length 0: any
  std::string interface;                // empty: not bound to a device
  std::string congestion_control = {};  // empty: the system's
};

enum class SocketUse { kOob, kControl, kBulk };

// A listening socket on the source's address and any free port; works while the address's interface is down. On failure an empty one
// and a line in `error`.
UniqueFd Listen(const Source& source, uint16_t* port, std::string* error);

// A socket that is connecting; its end shows as writability. On failure an empty one and errno in `*failure`.
UniqueFd Connect(const Source& source, const SocketAddress& to, SocketUse use, int* failure);

// Makes the kernel look for a neighbour on the way to `to`. A neighbour that still has an outdated hardware address for this host learns
// the new one from the query; otherwise only when the old entry expires. Best effort: no answer is needed.
void GreetNeighbour(const Source& source, const SocketAddress& to);

// A connection that a peer opened, or an empty one if there is none; then `*failure` is an errno, EAGAIN if all is well.
UniqueFd Accept(int listener, int* failure);

// For accepted sockets, once their use is known.
void Prepare(int fd, SocketUse use, const std::string& interface);

// Index of the interface by which an accepted connection came in; 0: the kernel does not report it.
int IncomingInterface(int fd);

// Bytes that the kernel takes beyond its window.
void LimitUnsent(int fd, uint32_t bytes);

// Bytes that the kernel holds, sent or not, until the peer acknowledges them. 0, or more than net.core.wmem_max allows: the kernel decides.
void LimitHeld(int fd, uint64_t bytes);

// Whether the kernel may delay its acknowledgement of a little data until more comes, or some 40 ms have passed. After it has waited that
// long in vain it delays no more, until this is called again.
void DelayAcknowledgements(int fd, bool delay);

// The ports that the kernel gives to sockets which ask for any, the first and the last; nothing if it does not report them.
std::optional<std::pair<uint16_t, uint16_t>> LocalPorts();

// The default congestion control of connections here; empty if the kernel does not report it.
std::string SystemCongestionControl();
// Whether the kernel has it and lets this process use it.
bool HasCongestionControl(const std::string& name);

// Result of a finished connect; 0 or an errno.
int ConnectResult(int fd);

// What the kernel reports of a connection since it began.
struct TcpStats {
  uint64_t delivered_bytes = 0;  // acknowledged by the peer's kernel
  int64_t busy_ns = 0;           // time with something to deliver that the peer accepted
  int64_t round_trip_ns = 0;     // the shortest of late
  bool unsent = false;           // some bytes wait for room on the way
  // See PathFacts.
  bool unacknowledged = false;
  bool window_open = true;
  uint32_t timeouts = 0;
  uint32_t packet_bytes = 0;         // of the largest packet that the kernel sends here
  uint32_t packet_header_bytes = 0;  // the part of a packet that is not payload
};
TcpStats StatsOf(int fd);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_SOCKET_H_
