// A control channel's socket: whole packets in, whole packets out, nothing blocks.
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

  // For the next Flush().
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
  // Reads what has arrived, kReadBytesMost at the most, and hands over each whole packet; stops early if `on_packet` returns false (the
  // stream may be gone then: the caller must not touch it).
  State Read(FunctionRef<bool(std::span<const uint8_t>)> on_packet);
  // The last Read() ended before it had seen the end of what has arrived: read again soon. The socket stays readable until then.
  bool more() const { return more_; }
  // Reads at most one packet, and not a byte beyond it: for greetings, after which the socket may turn into a bulk socket. A stranger's
  // packet of more than kGreetingBytesMax is garbage.
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
