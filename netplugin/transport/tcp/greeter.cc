#include "netplugin/transport/tcp/greeter.h"

#include <sys/epoll.h>

#include <cerrno>
#include <utility>

namespace r2cc::net {

Greeter::~Greeter() {
  while (!waiting_.empty()) Drop(waiting_.begin()->first);
  for (Listener& listener : listeners_) io_->poller.Remove(listener.token, listener.fd.get());
}

void Greeter::AddListener(UniqueFd fd) {
  const size_t index = listeners_.size();
  const Poller::Token token = io_->poller.Add(fd.get(), EPOLLIN, [this, index](uint32_t) { AcceptAll(index); });
  listeners_.push_back({std::move(fd), token});
}

void Greeter::AcceptAll(size_t index) {
  for (;;) {
    Listener& listener = listeners_[index];
    int failure = 0;
    UniqueFd fd = Accept(listener.fd.get(), &failure);
    if (!fd) {
      if (failure != EMFILE && failure != ENFILE) return;
      listener.paused = true;
      return io_->poller.Modify(listener.token, listener.fd.get(), 0);
    }
    if (waiting_.size() >= kWaitingMax) {
      ++refused_;
      Drop(waiting_.begin()->first);
    }
    const uint64_t id = next_id_++;
    Waiting& waiting = waiting_[id];
    const int raw = fd.get();
    waiting.stream = std::make_unique<PacketStream>(std::move(fd));
    waiting.since = io_->Now();
    waiting.token = io_->poller.Add(raw, EPOLLIN, [this, id](uint32_t) { Readable(id); });
  }
}

void Greeter::Drop(uint64_t id) {
  const auto it = waiting_.find(id);
  if (it == waiting_.end()) return;
  if (it->second.stream != nullptr) io_->poller.Remove(it->second.token, it->second.stream->fd());
  waiting_.erase(it);
}

void Greeter::Readable(uint64_t id) {
  const auto it = waiting_.find(id);
  if (it == waiting_.end()) return;
  Bytes packet;
  bool whole = false;
  const auto state = it->second.stream->ReadOne(&packet, &whole);
  Hello hello;
  if (state != PacketStream::State::kOpen || (whole && !Decode(packet, &hello))) {
    ++refused_;
    return Drop(id);
  }
  if (!whole) return;
  io_->poller.Remove(it->second.token, it->second.stream->fd());
  std::unique_ptr<PacketStream> stream = std::move(it->second.stream);
  waiting_.erase(it);
  const HelloReply reply = on_hello_(hello, &stream);
  if (reply.accepted || stream == nullptr) return;
  ++refused_;
  stream->Send(Encode(reply));
}

void Greeter::Tick(Nanos now) {
  for (Listener& listener : listeners_)
    if (std::exchange(listener.paused, false)) io_->poller.Modify(listener.token, listener.fd.get(), EPOLLIN);
  // Identifiers grow with time: the oldest is first.
  while (!waiting_.empty() && now - waiting_.begin()->second.since >= kPatience) {
    ++refused_;
    Drop(waiting_.begin()->first);
  }
}

}  // namespace r2cc::net
