// A control channel that has been greeted: frames in, frames out. With the peer's lock.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_CONTROL_SOCKET_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_CONTROL_SOCKET_H_

#include <functional>
#include <memory>

#include "base/core/function_ref.h"
#include "netplugin/link/frame.h"
#include "netplugin/transport/poller.h"
#include "netplugin/transport/tcp/packet_stream.h"

namespace r2cc::net {

class ControlSocket {
 public:
  ControlSocket() = default;
  ~ControlSocket() { Close(); }
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  bool open() const { return stream_ != nullptr; }
  // `ready` is called when the channel may have something to read, or room to write; it should call Service().
  void Open(Poller* poller, std::unique_ptr<PacketStream> stream, uint32_t tag, std::function<void()> ready);
  void Close();
  // What is unsent or unread is lost, at both ends.
  void Reset();
  // No more frames from us; what is queued still goes.
  void HalfClose();

  // For the next Flush(). Nothing happens on a channel that is not open. What would be told again anyway is dropped while the peer does not
  // read.
  void Queue(const Frame& frame);
  // False if the connection is broken, or the peer has not read for far too long.
  bool Flush();
  // Writes what waits and hands over what has arrived; the frames may not close the channel. kGarbled also for a packet that is not a sound
  // frame.
  PacketStream::State Service(FunctionRef<void(const Frame&)> on_frame);
  // Everything that was sent is with the kernel.
  bool flushed() const { return stream_ == nullptr || !stream_->wants_write(); }

 private:
  static bool ToldAgainAnyway(FrameType type);
  void WatchWrites();

  Poller* poller_ = nullptr;
  uint32_t tag_ = 0;  // of the session
  std::unique_ptr<PacketStream> stream_;
  Poller::Token token_ = 0;
  bool watching_writes_ = false;
  bool queued_ = false;
  bool repeats_wait_ = false;  // at the last frame's first part the backlog was too large for what is told again anyway
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_CONTROL_SOCKET_H_
