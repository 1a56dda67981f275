#include "netplugin/transport/tcp/connector.h"

#include <sys/epoll.h>

#include <cerrno>
#include <utility>

namespace r2cc::net {

Connector::Connector(Poller* poller, UniqueFd fd, Bytes hello, OnEnd on_end)
    : poller_(poller), stream_(std::make_unique<PacketStream>(std::move(fd))), hello_(std::move(hello)), on_end_(std::move(on_end)) {
  token_ = poller_->Add(stream_->fd(), EPOLLIN | EPOLLOUT, [this](uint32_t events) { Event(events); });
}

Connector::~Connector() {
  if (stream_ == nullptr) return;
  poller_->Remove(token_, stream_->fd());
  stream_->Release().Reset();
}

void Connector::End(Outcome outcome, const HelloReply& reply) {
  poller_->Remove(token_, stream_->fd());
  const OnEnd on_end = std::move(on_end_);
  std::unique_ptr<PacketStream> stream = std::move(stream_);
  // From here on this may be gone.
  on_end(outcome, reply, std::move(stream));
}

void Connector::Event(uint32_t events) {
  if (!connected_) {
    if (!(events & (EPOLLOUT | EPOLLERR | EPOLLHUP))) return;
    if (const int failure = ConnectResult(stream_->fd()); failure != 0)
      return End(failure == ECONNREFUSED ? Outcome::kRefused : Outcome::kBroken, {});
    connected_ = true;
    if (!stream_->Send(hello_)) return End(Outcome::kBroken, {});
    poller_->Modify(token_, stream_->fd(), EPOLLIN);
  }
  Bytes packet;
  bool whole = false;
  if (stream_->ReadOne(&packet, &whole) != PacketStream::State::kOpen) return End(Outcome::kBroken, {});
  if (!whole) return;
  HelloReply reply;
  const bool sound = Decode(packet, &reply);
  End(sound ? Outcome::kReplied : Outcome::kGarbled, reply);
}

}  // namespace r2cc::net
