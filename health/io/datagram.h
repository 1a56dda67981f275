// The seam to datagrams on rails, which carry the daemons' rail probes. Real: udp_datagram.h; fake: fake_datagram.h.
//
// A rail probe must go over its rail and no other, so a socket is bound to the rail's interface as well as to its address. The owner of a
// socket judges nothing here: it learns what arrived and when, the contents of an ICMP message, and what the kernel dropped.
#ifndef R2CC_HEALTH_IO_DATAGRAM_H_
#define R2CC_HEALTH_IO_DATAGRAM_H_

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/core/clock.h"

namespace r2cc::health {

// Longer ones are neither sent nor handed on: what fits into a packet of 9216 bytes, the largest that switches commonly take.
constexpr size_t kDatagramBytesMax = 9216 - 28;

struct DatagramAddress {
  std::string address;  // numeric, IPv4 or IPv6, canonical
  uint16_t port = 0;

  friend auto operator<=>(const DatagramAddress&, const DatagramAddress&) = default;
};

struct Datagram {
  std::string bytes;  // from an unauthenticated sender: only the length is checked
  DatagramAddress from;
  // When it arrived, by this node's CLOCK_MONOTONIC: the kernel's own stamp where there is one. So what a busy daemon reads late has not
  // come late, and `Now() - received` at the time of the call is how far behind the daemon is.
  Nanos received = 0;
};

// An error that the network, or this kernel, returned for a datagram that was sent.
struct DatagramError {
  enum class Kind : uint8_t {
    // An ICMP message states that nobody listens at the other end. It comes from that kernel, or from any sender that can guess two
    // addresses and ports.
    kRefused,
    // No route, or nobody answers for the address on this rail.
    kUnreachable,
  };
  Kind kind = Kind::kUnreachable;
  DatagramAddress to;
  Nanos received = 0;  // as of Datagram

  friend bool operator==(const DatagramError&, const DatagramError&) = default;
};

// Neither destroys the socket: post that.
struct DatagramHandler {
  // At least one, in the order of arrival.
  std::function<void(const std::vector<Datagram>&)> on_batch;
  std::function<void(const DatagramError&)> on_error;
};

struct RailSocketCounts {
  uint64_t sent = 0;
  uint64_t send_failed = 0;
  uint64_t received = 0;
  uint64_t too_long = 0;           // arrived, and were longer than kDatagramBytesMax
  uint64_t dropped_by_kernel = 0;  // arrived, and found the socket's buffer full: the daemon was too slow
  uint64_t paused = 0;             // how often it was left unread for a while: what has arrived may be read late
  uint64_t filtered = 0;           // arrived, and were not what DatagramFilter describes, or their sender was kept out
  uint64_t over_rate = 0;          // arrived, and their sender was beyond its rate
};

// Describes the datagrams that a socket accepts: they begin with `head` and have one of `words` at byte `at`. The kernel drops all others
// before they cost the daemon anything, so a flood by senders that do not know a word takes no room from the others.
struct DatagramFilter {
  std::array<uint8_t, 4> head{};
  size_t at = 0;
  std::vector<std::array<uint8_t, 8>> words;  // at most kFilterWordsMax

  friend bool operator==(const DatagramFilter&, const DatagramFilter&) = default;
};
constexpr size_t kFilterWordsMax = 4;

// One rail's socket. Closed by its destructor, after which no handler is called. Executor's thread.
class RailSocket {
 public:
  virtual ~RailSocket() = default;

  // Never blocks, and never lets a datagram be fragmented. UNAVAILABLE: the rail does not take it (link down, no route, interface gone);
  // RESOURCE_EXHAUSTED: its queue is full; OUT_OF_RANGE: larger than the MTU of the interface, or than what this kernel knows to pass on
  // the way; INVALID_ARGUMENT: longer than kDatagramBytesMax, or no address of the rail's family.
  virtual absl::Status Send(const DatagramAddress& to, std::string_view bytes) = 0;
  // Sends to an address on the rail's own network, independent of routes; no router forwards it. IPv4; over IPv6 as Send.
  virtual absl::Status SendOnLink(const DatagramAddress& to, std::string_view bytes) = 0;

  // From now on the socket accepts only these. If the kernel has no such filter, it accepts all.
  virtual void Take(const DatagramFilter& filter) = 0;

  // The port that it is bound to.
  virtual uint16_t port() const = 0;
  virtual const RailSocketCounts& counts() const = 0;
  // Addresses whose datagrams are dropped now, because they sent too many. A lack of answers from there proves nothing about the rail.
  virtual const std::vector<std::string>& blocked() const = 0;
};

// The interface and address to which a rail's socket is bound.
struct RailBinding {
  std::string interface;  // empty: an address without an interface of its own
  std::string address;    // numeric
  uint16_t port = 0;      // 0: a free one
};

class Datagrams {
 public:
  virtual ~Datagrams() = default;

  // The handler is called on the executor's thread, never from within Open or Send. NOT_FOUND: no such interface or address now (try
  // again when it is back; one that came back with another index needs a new socket too); ALREADY_EXISTS: the port is taken.
  virtual absl::StatusOr<std::unique_ptr<RailSocket>> Open(const RailBinding& binding, DatagramHandler handler) = 0;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_IO_DATAGRAM_H_
