// Fakes a peer without a session: it counts its calls, for the tests of code that drives a peer.
#ifndef R2CC_NETPLUGIN_TRANSPORT_FAKE_PEER_H_
#define R2CC_NETPLUGIN_TRANSPORT_FAKE_PEER_H_

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <functional>
#include <memory>
#include <new>
#include <string>
#include <vector>

#include "netplugin/transport/os/poller.h"
#include "netplugin/transport/peer.h"

namespace r2cc::net {

// A port without links: an event stands for arrived data, and calls are counted.
class FakeOobPort final : public OobPort {
 public:
  explicit FakeOobPort(bool workers) : workers_(workers), event_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    poller_.Add(event_.get(), EPOLLIN, [this](uint32_t) {
      uint64_t count = 0;
      if (read(event_.get(), &count, sizeof(count)) == sizeof(count)) on_event();
    });
  }

  std::unique_ptr<SendLink> NewSend(const LinkName&, SendOwner*, Counter*) override { return nullptr; }
  std::unique_ptr<RecvLink> NewRecv(const LinkName&, RecvOwner*, Counter*) override { return nullptr; }
  std::unique_ptr<Oob> NewOob(const OobAddress&, OobOwner*) override { return nullptr; }
  int fd() const override { return poller_.fd(); }
  bool Poll() override {
    looks += 'r';
    return poller_.Wait(0);
  }
  void WatchAll() override { looks += 'w'; }
  bool has_workers() const override { return workers_; }
  void Arrive() const { eventfd_write(event_.get(), 1); }

  std::function<void()> on_event;
  std::string looks;  // r: it was polled; w: all is watched again

 private:
  const bool workers_;
  UniqueFd event_;
  Poller poller_;
};

class FakeOobTransport final : public OobTransport {
 public:
  TransportKind kind() const override { return TransportKind::kTcp; }
  bool ListenOob(const std::string&, uint16_t*, std::string*) override { return true; }
  bool Reaches(const OobAddress&) const override { return true; }
  bool Listen(const Rail&, Endpoint*, std::string*) override { return true; }
  bool Register(const Memory&, uint16_t, Endpoint*, std::string*) override { return true; }
  std::unique_ptr<OobPort> NewOobPort(const SessionKey&, const PeerState* state) override {
    last_state = state;
    auto port = std::make_unique<FakeOobPort>(workers);
    last_port = port.get();
    return port;
  }

  bool workers = false;
  FakeOobPort* last_port = nullptr;
  const PeerState* last_state = nullptr;
};

struct FakeHost : Host {
  explicit FakeHost(const Clock* of, bool workers = false) {
    clock = of;
    fake.workers = workers;
    transports = {&fake};
    oob_transport = &fake;
  }
  FakeOobTransport fake;
};

class FakePeer final : public Peer {
 public:
  explicit FakePeer(FakeHost* host) : Peer(host, {}), port(host->fake.last_port), state(host->fake.last_state) {
    port->on_event = [this] { ++events; };
  }

  // Something arrives.
  void Arrive() const { port->Arrive(); }
  // With the lock.
  void MoveBytes(uint32_t bytes) { Account(bytes); }

  void Regreet() override {}
  void RailState(uint16_t, bool) override {}
  void ApplyVerdicts() override {}
  bool RunToCompletion() override {
    ++settled;
    return settle_more;
  }
  bool PublishFound() override {
    published += publishes_found;
    return publishes_found;
  }
  bool has_link() const override { return true; }
  bool outstanding() const override { return is_outstanding; }
  bool idle() const override { return true; }
  bool over() const override { return is_over; }
  bool flushed() const override { return true; }
  void HalfClose() override {}
  void CloseFlows() override {}

  std::vector<uint64_t> posted;  // sizes, in order
  std::vector<bool> posted_by_job;
  int events = 0, hots = 0, ticks = 0, settled = 0, published = 0, closed = 0, broken = 0;
  bool hot_moves = false, settle_more = false, is_outstanding = false, is_over = false;
  bool post_throws = false;
  bool publishes_found = false;  // as a receiver of small messages does
  bool counts_requests = false;  // as a sender does
  FakeOobPort* const port;
  const PeerState* const state;

 protected:
  void Hint(uint64_t bytes) override {
    if (counts_requests) Account(bytes);
  }
  void Post(FlowId, const Buffer&, uint64_t bytes) override {
    if (post_throws) throw std::bad_alloc();
    posted.push_back(bytes);
    posted_by_job.push_back(state->jobs_thread);
  }
  bool FastPath(FlowId) override {
    ++hots;
    return hot_moves;
  }
  void OnTick() override { ++ticks; }
  void CloseAll() override { ++closed; }
  void BreakFlows() noexcept override { ++broken; }
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_FAKE_PEER_H_
