#include "netplugin/transport/tcp/listener.h"

#include <sys/epoll.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "netplugin/flow/tuning.h"
#include "netplugin/transport/tcp/tcp_connection.h"

namespace r2cc::net {

TcpListener::~TcpListener() {
  while (!waiting_.empty()) Drop(waiting_.begin()->first);
  for (Listening& listener : listeners_)
    if (listener.fd) poller_->Remove(listener.token, listener.fd.get());
}

size_t TcpListener::AddListener(UniqueFd fd) {
  const auto closed = std::find_if(listeners_.begin(), listeners_.end(), [](const Listening& one) { return !one.fd; });
  const auto index = static_cast<size_t>(closed - listeners_.begin());
  if (closed == listeners_.end()) listeners_.emplace_back();
  const Poller::Token token = poller_->Add(fd.get(), EPOLLIN, [this, index](uint32_t) { AcceptAll(index); });
  listeners_[index] = {std::move(fd), token};
  return index;
}

void TcpListener::CloseListener(size_t place) {
  Listening& listener = listeners_[place];
  poller_->Remove(listener.token, listener.fd.get());
  listener = {};
}

void TcpListener::AcceptAll(size_t index) {
  for (;;) {
    Listening& listener = listeners_[index];
    int failure = 0;
    UniqueFd fd = Accept(listener.fd.get(), &failure);
    if (!fd) {
      if (failure != EMFILE && failure != ENFILE) return;
      descriptors_->Failed(failure);
      listener.paused = true;
      return poller_->Modify(listener.token, listener.fd.get(), 0);
    }
    if (waiting_.size() >= waiting_max_) MakeRoom();
    const uint64_t id = next_id_++;
    Waiting& waiting = waiting_[id];
    const int raw = fd.get();
    waiting.stream = std::make_unique<PacketStream>(std::move(fd));
    waiting.since = clock_->Now();
    waiting.token = poller_->Add(raw, EPOLLIN, [this, id](uint32_t) { Readable(id); });
    // Who has spoken already never takes a place from others.
    Readable(id);
  }
}

void TcpListener::MakeRoom() {
  // It may have spoken since it was last heard.
  const uint64_t oldest = waiting_.begin()->first;
  Readable(oldest);
  if (!waiting_.contains(oldest)) return;
  ++refused_;
  Drop(oldest);
}

void TcpListener::Drop(uint64_t id) {
  const auto it = waiting_.find(id);
  if (it == waiting_.end()) return;
  if (it->second.stream != nullptr) poller_->Remove(it->second.token, it->second.stream->fd());
  waiting_.erase(it);
}

void TcpListener::Readable(uint64_t id) {
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
  poller_->Remove(it->second.token, it->second.stream->fd());
  std::unique_ptr<Connection> connection = std::make_unique<TcpConnection>(std::move(it->second.stream));
  waiting_.erase(it);
  const HelloReply reply = greet_(hello, &connection);
  if (reply.accepted || connection == nullptr) return;
  ++refused_;
  AsTcp(*connection).stream().Send(Encode(reply));
}

void TcpListener::Tick(Nanos now) {
  for (Listening& listener : listeners_)
    if (std::exchange(listener.paused, false)) poller_->Modify(listener.token, listener.fd.get(), EPOLLIN);
  // Identifiers grow with time: the oldest is first.
  while (!waiting_.empty() && now - waiting_.begin()->second.since >= tuning::kSpeaksWithin) {
    ++refused_;
    Drop(waiting_.begin()->first);
  }
}

}  // namespace r2cc::net
