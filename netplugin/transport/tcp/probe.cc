#include "netplugin/transport/tcp/probe.h"

#include <sys/epoll.h>

#include <cerrno>

namespace r2cc::net {
namespace {

Reach ReachOf(int failure) {
  if (failure == 0) return Reach::kAnswers;
  return failure == ECONNREFUSED ? Reach::kRefused : Reach::kSilent;
}

}  // namespace

void Probe::Start(const Source& source, const SocketAddress& to, Nanos now) {
  if (fd_ || to.length == 0) return;
  int failure = 0;
  fd_ = Connect(source, to, SocketUse::kOob, &failure);
  if (!fd_) return on_result_(ReachOf(failure));
  since_ = now;
  token_ = poller_->Add(fd_.get(), EPOLLOUT, [this](uint32_t) { End(ReachOf(ConnectResult(fd_.get()))); });
}

void Probe::Tick(Nanos now) {
  if (fd_ && now - since_ >= kPatience) End(Reach::kSilent);
}

void Probe::Stop() {
  if (!fd_) return;
  poller_->Remove(token_, fd_.get());
  fd_.Close();
}

void Probe::End(Reach reach) {
  Stop();
  on_result_(reach);
}

}  // namespace r2cc::net
