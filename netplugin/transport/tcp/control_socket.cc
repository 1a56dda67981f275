#include "netplugin/transport/tcp/control_socket.h"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <utility>

#include "netplugin/flow/tuning.h"
#include "netplugin/link/repeated.h"

namespace r2cc::net {

namespace {

constexpr size_t kBacklogMost = 64 * 1024 * 1024;

}  // namespace

void ControlSocket::Open(std::unique_ptr<PacketStream> stream) {
  Close();
  stream_ = std::move(stream);
  watching_writes_ = queued_ = repeats_wait_ = false;
  token_ = poller_->Add(stream_->fd(), EPOLLIN, [this](uint32_t) { Poll(); });
}

void ControlSocket::Close() {
  if (stream_ == nullptr) return;
  poller_->Remove(token_, stream_->fd());
  stream_.reset();
}

void ControlSocket::Reset() {
  if (stream_ == nullptr) return;
  poller_->Remove(token_, stream_->fd());
  stream_->Release().Reset();
  stream_.reset();
}

void ControlSocket::HalfClose() {
  if (stream_ != nullptr) shutdown(stream_->fd(), SHUT_WR);
}

void ControlSocket::Queue(const Frame& frame) {
  if (stream_ == nullptr) return;
  // A peer that does not read, for a day if it is stopped, must not cost memory. The parts of one answer go all or not at all: those
  // before are no backlog.
  if (IsFirstPart(frame)) repeats_wait_ = stream_->backlog() > tuning::kControlBytesMost;
  if (repeats_wait_ && IsRepeatedAnyway(TypeOf(frame))) return;
  stream_->Queue(Encode(frame, tag_));
  queued_ = true;
}

bool ControlSocket::Flush() {
  if (stream_ == nullptr || !std::exchange(queued_, false)) return true;
  if (!stream_->Flush() || stream_->backlog() > kBacklogMost) return false;
  WatchWrites();
  return true;
}

void ControlSocket::Poll() {
  if (stream_ == nullptr) return;
  const PacketStream::State state = Service();
  if (state == PacketStream::State::kOpen) return WatchWrites();
  sink_.broken(state == PacketStream::State::kGarbled ? plan::EvidenceCause::kGarbled : plan::EvidenceCause::kSocketError);
}

PacketStream::State ControlSocket::Service() {
  if (stream_->wants_write() && !stream_->Flush()) return PacketStream::State::kClosed;
  bool sound = true;
  const PacketStream::State state = stream_->Read([&](std::span<const uint8_t> packet) {
    Frame frame;
    sound = Decode(packet, tag_, &frame);
    if (sound) sink_.received(frame);
    return sound;
  });
  return sound ? state : PacketStream::State::kGarbled;
}

void ControlSocket::WatchWrites() {
  if (stream_->wants_write() == watching_writes_) return;
  watching_writes_ = stream_->wants_write();
  poller_->Modify(token_, stream_->fd(), EPOLLIN | (watching_writes_ ? uint32_t{EPOLLOUT} : 0u));
}

}  // namespace r2cc::net
