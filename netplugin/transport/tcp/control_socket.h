// Carries a control channel over a socket. With the peer's lock.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_CONTROL_SOCKET_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_CONTROL_SOCKET_H_

#include <memory>
#include <utility>

#include "netplugin/transport/links.h"
#include "netplugin/transport/os/poller.h"
#include "netplugin/transport/tcp/packet_stream.h"

namespace r2cc::net {

class ControlSocket final : public ControlChannel {
 public:
  // `tag`: of the session.
  ControlSocket(Poller* poller, uint32_t tag, ControlSink sink) : poller_(poller), tag_(tag), sink_(std::move(sink)) {}
  ~ControlSocket() override { Close(); }
  ControlSocket(const ControlSocket&) = delete;
  ControlSocket& operator=(const ControlSocket&) = delete;

  bool open() const { return stream_ != nullptr; }
  // -1 while it is not open.
  int fd() const { return stream_ == nullptr ? -1 : stream_->fd(); }
  // Its greeting was answered. Closes what was open.
  void Open(std::unique_ptr<PacketStream> stream);
  void Close();
  // Unsent and unread data is lost, at both ends.
  void Reset();

  void Queue(const Frame& frame) override;
  // False also if the peer has not read for far too long.
  bool Flush() override;
  bool flushed() const override { return stream_ == nullptr || !stream_->wants_write(); }
  void HalfClose() override;
  // Also writes what waits.
  void Poll() override;

 private:
  PacketStream::State Service();
  void WatchWrites();

  Poller* const poller_;
  const uint32_t tag_;
  const ControlSink sink_;
  std::unique_ptr<PacketStream> stream_;
  Poller::Token token_ = 0;
  bool watching_writes_ = false;
  bool queued_ = false;
  bool repeats_wait_ = false;  // at the last frame's first part the backlog was too large for frames that are repeated anyway
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_CONTROL_SOCKET_H_
