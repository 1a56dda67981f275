// Sends and receives whole packets over a socket. No call blocks.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_PACKET_STREAM_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_PACKET_STREAM_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/core/function_ref.h"
#include "netplugin/link/frame.h"
#include "netplugin/transport/tcp/socket.h"

namespace r2cc::net {

class PacketStream {
 public:
  explicit PacketStream(UniqueFd fd) : fd_(std::move(fd)) {}

  int fd() const { return fd_.get(); }
  UniqueFd Release() { return std::move(fd_); }

  // Keeps the packet for the next Flush().
  void Queue(const Bytes& packet);
  // Writes what the socket takes. False if the connection is broken.
  bool Flush();
  bool Send(const Bytes& packet) {
    Queue(packet);
    return Flush();
  }
  bool wants_write() const { return sent_ < out_.size(); }
  // Bytes that the socket has not taken yet.
  size_t backlog() const { return out_.size() - sent_; }

  enum class State { kOpen, kClosed, kGarbled };
  // Reads what has arrived, at most kReadBytesMost, and passes each whole packet to `on_packet`. Stops early if that returns false: the
  // stream may be gone then, and the caller must not touch it.
  State Read(FunctionRef<bool(std::span<const uint8_t>)> on_packet);
  // The last Read() ended before the end of what has arrived: read again soon. The socket stays readable until then.
  bool more() const { return more_; }
  // Reads at most one packet, and no byte beyond it: for greetings, after which the socket may become a bulk socket. A packet of more than
  // kGreetingBytesMax is invalid.
  static constexpr size_t kGreetingBytesMax = 32 * 1024;
  State ReadOne(Bytes* packet, bool* whole);

 private:
  UniqueFd fd_;
  Bytes in_;
  Bytes out_;
  size_t sent_ = 0;
  bool more_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_PACKET_STREAM_H_
