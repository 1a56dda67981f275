// Verbs rails in simulated time: the shipped transport over the fake fabric, whose ports obey the faults of the simulated network. Rail k
// of each host is the device mlx5_k. The out-of-band connection is the network's.
#ifndef R2CC_TESTS_SIM_VERBS_RAILS_H_
#define R2CC_TESTS_SIM_VERBS_RAILS_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "netplugin/gpu/fake_gpu.h"
#include "netplugin/transport/verbs/fake_types.h"
#include "tests/sim/process.h"
#include "tests/sim/rail_faults.h"

namespace r2cc::sim {

namespace verbs = net::verbs;

class TimelineTime final : public verbs::FakeTime, public Clock {
 public:
  explicit TimelineTime(Timeline* timeline) : timeline_(timeline) {}
  Nanos now() const override { return timeline_->now(); }
  Nanos Now() const override { return timeline_->now(); }
  void At(Nanos when, std::function<void()> what) override;
  uint64_t Random() override { return timeline_->random().Next(); }

 private:
  Timeline* const timeline_;
};

struct VerbsRailsOptions {
  verbs::FakeOptions fabric;
  bool adaptive_routing = false;
  std::string driver = "mlx5_core";
  gpu::FakeGpu* gpu = nullptr;  // of all hosts, outlives the rails
};

// What the hosts of one world share.
class VerbsRails final : public RailFaults, public std::enable_shared_from_this<VerbsRails> {
 public:
  VerbsRails(Network* network, const VerbsRailsOptions& options);

  // Of a process; for Process::MakeRails. Keeps this alive.
  std::unique_ptr<net::Transport> Make(Io* io);
  const verbs::FakeVerbs& verbs(int host) const { return *hosts_.at(host).fake; }
  // Destroys that would have waited for ever.
  int hangs() const { return fabric_.hangs(); }
  uint64_t injected(int host) const { return hosts_.at(host).faulty->injected(); }
  // Queue pairs of initiators that stall, and owe the end of a request.
  struct Stalled {
    verbs::QueuePairId id{};
    Port from, to;
  };
  std::vector<Stalled> StalledPairs();
  // All calls of the port's device that may block take so long; 0: no time. Of a host one device at a time.
  void SlowDevice(Port port, Nanos takes);
  // The `nth` region that the process registers on a device from now on is refused; 1: the next.
  void RefuseRegion(int host, int nth);

  // RailFaults:
  void Carrier(Port port, bool on) override;
  void Reset(Port a, Port b, int ends, bool reported) override;
  void Device(Port port, bool lost) override;
  void LoseAddress(Port port) override;
  void NewAddress(Port port) override;
  void FailCompletion(int host, int degree) override;
  void FailPost(int host, int degree) override;
  void SlowCalls(int host, Nanos takes) override;
  void StallPairs(Port a, Port b, int degree) override;
  void StallDevice(Port port, int degree, bool stalls) override;
  void BreakCompletions(Port a, Port b) override;

 private:
  struct Host {
    Io* io = nullptr;
    std::unique_ptr<verbs::FakeVerbs> fake;
    std::unique_ptr<verbs::FaultyVerbs> faulty;
    bool late = false;        // its control threads have been
    std::string slow_device;  // empty: its calls take as long on each
  };
  void KeysRevoked(Io* io, int rail);
  verbs::FakePath PathOf(const verbs::FakePortName& from, const verbs::FakePortName& to) const;

  Network* const network_;
  const VerbsRailsOptions options_;
  TimelineTime time_;
  verbs::FakeFabric fabric_;
  std::map<int, Host> hosts_;
  std::map<Port, int> carrier_lost_, addresses_;  // how often
  // By host, rail and number of an acceptor's queue pair: the last incarnation that had it.
  std::map<std::tuple<int, int, uint32_t>, Carrying> carriers_;
  // By receiver, sender and link: the incarnation that was answered last, and its queue pair. `losses`: of the device until then; one that
  // is back counts from the beginning.
  struct Answered {
    net::Incarnation incarnation = 0;
    uint32_t number = 0, psn = 0;
    uint16_t rail = 0;  // a cross-rail link may have another one each time
    int losses = 0;
  };
  std::map<std::tuple<int, int, net::LinkId>, Answered> answered_;
  std::map<Port, int> losses_;
  int broken_queues_ = 0;
  bool stalls_ = false;  // anything ever did
};

// Made with the first process. `*made`, if there is such a thing: the rails, as soon as they are.
Process::MakeRails MakeVerbsRails(const VerbsRailsOptions& options, std::weak_ptr<VerbsRails>* made = nullptr);

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_VERBS_RAILS_H_
