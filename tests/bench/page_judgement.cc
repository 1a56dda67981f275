// What a new page costs a process with many peers: the time for which the I/O thread has the locks of all of them, while each is told what
// the page says of its NICs and paths. 2,000 peers, 8 rails at either end, and a page that speaks of every NIC. Prints the median, the
// quickest and the slowest of some rounds, without a broken path and with some.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/attach/fake_daemon_link.h"
#include "netplugin/rails/link_events.h"
#include "netplugin/transport/control_plane.h"
#include "netplugin/transport/recv_peer.h"
#include "netplugin/transport/tcp/tcp_transport.h"

namespace r2cc::net {
namespace {

constexpr int kPeers = 2000, kRails = 8, kRounds = 15;

std::string NodeName(int node) { return "node" + std::to_string(node); }
std::string NicName(int rail) { return "rail" + std::to_string(rail); }

class Bench {
 public:
  Bench() {
    host_.clock = &clock_;
    host_.log = [](LogLevel, const std::string&) {};
    host_.report = [](const plan::EvidenceRecord&) {};
    host_.node = NodeName(0);
    host_.silence = host_.deadline = kNanosPerSecond;
    std::string error;
    transport_ = TcpTransport::Make({.congestion = "system"}, &poller_, &clock_, host_.log, {}, &error);
    host_.oob_transport = transport_.get();
    host_.transports = {transport_.get()};
    auto daemon = std::make_unique<FakeDaemonLink>();
    daemon_ = daemon.get();
    control_plane_ =
        std::make_unique<ControlPlane>(&host_, &poller_, std::vector<FailRail>{}, std::make_unique<NoLinkEvents>(), std::move(daemon));
    host_.page = [this] { return control_plane_->page(); };
    for (int rail = 0; rail < kRails; ++rail) {
      LocalRail local;
      local.name = local.nic = NicName(rail);
      local.matched = true;
      host_.rails.push_back(std::move(local));
    }
    host_.UpdateNames();
    for (int peer = 1; peer <= kPeers; ++peer) {
      Hello hello;
      hello.node = NodeName(peer);
      hello.session = static_cast<uint64_t>(peer);
      for (int rail = 0; rail < kRails; ++rail) hello.rails.push_back({NicName(rail), true, {{}}});
      peers_.push_back(std::make_shared<RecvPeer>(&host_, hello, [](FlowId, uint64_t) { return nullptr; }));
    }
    control_plane_->Start({.exclusively = [this](const std::function<void()>& call) { Exclusively(call); },
                           .rail_state = [](uint16_t, bool) {},
                           .verdicts =
                               [this] {
                                 for (const auto& peer : peers_) peer->ApplyVerdicts();
                               },
                           .attached = [] {},
                           .renamed = [] {},
                           .address = [](uint16_t, const IpAddress&) {}});
  }

  void Run(const char* what, int broken_paths) {
    std::vector<double> ms;
    for (int round = 0; round < kRounds; ++round) {
      plan::Plan plan;
      plan.epoch.counter = ++epochs_;
      for (int node = 0; node <= kPeers; ++node)
        for (int rail = 0; rail < kRails; ++rail)
          plan.nics.push_back({NodeName(node), NicName(rail), plan::PlannedState::kHealthy, plan::kFullWeightPermille});
      for (int path = 0; path < broken_paths; ++path)
        plan.broken_paths.push_back({NodeName(0), NicName(path % kRails), NodeName(1 + path), NicName(0)});
      daemon_->Publish(plan);
      held_ = 0;
      control_plane_->Poll(clock_.Now() + epochs_ * kNanosPerSecond);
      ms.push_back(static_cast<double>(held_) * 1e-6);
    }
    std::sort(ms.begin(), ms.end());
    std::printf("%s: %.2f ms with all locks (%.2f to %.2f)\n", what, ms[ms.size() / 2], ms.front(), ms.back());
  }

 private:
  void Exclusively(const std::function<void()>& call) {
    std::vector<std::unique_ptr<net::PeerLock>> locks;
    for (const auto& peer : peers_) locks.push_back(std::make_unique<net::PeerLock>(*peer));
    const Nanos since = clock_.Now();
    call();
    held_ += clock_.Now() - since;
  }

  SteadyClock clock_;
  Host host_;
  Poller poller_;
  std::unique_ptr<TcpTransport> transport_;
  FakeDaemonLink* daemon_ = nullptr;
  std::unique_ptr<ControlPlane> control_plane_;
  std::vector<std::shared_ptr<RecvPeer>> peers_;
  Nanos held_ = 0;
  int epochs_ = 0;
};

}  // namespace
}  // namespace r2cc::net

int main() {
  const rlimit limit{65'536, 65'536};  // each peer has a poller
  setrlimit(RLIMIT_NOFILE, &limit);
  r2cc::net::Bench bench;
  bench.Run("no broken path", 0);
  bench.Run("100 broken paths", 100);
  return 0;
}
