#include "netplugin/transport/tcp/greeter.h"

#include <sys/epoll.h>

namespace r2cc::net {

Greeter::~Greeter() {
  while (!waiting_.empty()) Drop(waiting_.begin()->first);
  for (Listener& listener : listeners_) io_->poller.Remove(listener.token, listener.fd.get());
}

void Greeter::AddListener(UniqueFd fd) {
  const int raw = fd.get();
  const Poller::Token token = io_->poller.Add(raw, EPOLLIN, [this, raw](uint32_t) { AcceptAll(raw); });
  listeners_.push_back({std::move(fd), token});
}

void Greeter::AcceptAll(int listener) {
  for (;;) {
    UniqueFd fd = Accept(listener);
    if (!fd) return;
    if (waiting_.size() >= kWaitingMax) {
      ++refused_;
      continue;
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
  // Identifiers grow with time: the oldest is first.
  while (!waiting_.empty() && now - waiting_.begin()->second.since >= kPatience) {
    ++refused_;
    Drop(waiting_.begin()->first);
  }
}

}  // namespace r2cc::net
