#include "netplugin/transport/os/poller.h"

namespace r2cc::net {

Poller::Poller() : epoll_(epoll_create1(EPOLL_CLOEXEC)) {}

Poller::Token Poller::Add(int fd, uint32_t events, Handler handler) {
  const Token token = next_token_++;
  handlers_[token] = std::make_shared<Handler>(std::move(handler));
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  return token;
}

void Poller::Modify(Token token, int fd, uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = token;
  epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Poller::Remove(Token token, int fd) {
  if (handlers_.erase(token) > 0) epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
}

bool Poller::Wait(int timeout_ms) {
  constexpr int kEventsMax = 128;
  epoll_event events[kEventsMax];
  const int count = epoll_wait(epoll_.get(), events, kEventsMax, timeout_ms);
  for (int i = 0; i < count; ++i) {
    const auto it = handlers_.find(events[i].data.u64);
    if (it == handlers_.end()) continue;
    const std::shared_ptr<Handler> handler = it->second;  // it may remove itself
    (*handler)(events[i].events);
  }
  return count < kEventsMax;
}

}  // namespace r2cc::net
