// Verbs rails in simulated time: the shipped transport over the fake fabric, whose ports obey the faults of the simulated network. The
// out-of-band connection is the network's.
#ifndef R2CC_TESTS_CONTRACT_VERBS_VERBS_SIM_H_
#define R2CC_TESTS_CONTRACT_VERBS_VERBS_SIM_H_

#include <algorithm>
#include <cerrno>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "netplugin/transport/verbs/fake_control_thread.h"
#include "netplugin/transport/verbs/fake_fabric.h"
#include "netplugin/transport/verbs/fake_verbs.h"
#include "netplugin/transport/verbs/faulty_verbs.h"
#include "netplugin/transport/verbs/verbs_transport.h"
#include "tests/sim/process.h"

namespace r2cc::contract {

namespace verbs = net::verbs;

class TimelineTime final : public verbs::FakeTime, public Clock {
 public:
  explicit TimelineTime(sim::Timeline* timeline) : timeline_(timeline) {}
  Nanos now() const override { return timeline_->now(); }
  Nanos Now() const override { return timeline_->now(); }
  void At(Nanos when, std::function<void()> what) override { timeline_->At(std::max(when, timeline_->now()), std::move(what)); }
  uint64_t Random() override { return timeline_->random().Next(); }

 private:
  sim::Timeline* const timeline_;
};

// What the hosts of one world share.
struct VerbsSim {
  explicit VerbsSim(sim::Network* network, const verbs::FakeOptions& options) : time(network->timeline()), fabric(&time, options) {}

  TimelineTime time;
  verbs::FakeFabric fabric;
  struct Host {
    std::unique_ptr<verbs::FakeVerbs> fake;
    std::unique_ptr<verbs::FaultyVerbs> faulty;
  } hosts[2];
};

// Rail k of each host is the device mlx5_k.
struct VerbsSimOptions {
  verbs::FakeOptions fabric;
  bool adaptive_routing = false;
  std::string driver = "mlx5_core";
};
inline sim::Process::MakeRails MakeVerbsRails(const VerbsSimOptions& options) {
  return [options, of = std::make_shared<std::shared_ptr<VerbsSim>>()](sim::Io* io, net::Greet) -> std::unique_ptr<net::Transport> {
    if (*of == nullptr) {
      *of = std::make_shared<VerbsSim>(io->network, options.fabric);
      (*of)->fabric.path = [network = io->network](const verbs::FakePortName& from, const verbs::FakePortName& to) {
        const auto port = [](const verbs::FakePortName& name) { return sim::Port{name.host, name.device.back() - '0'}; };
        // The kernel destroys what a process that has ended leaves behind.
        if (network->Dead(from.host) || network->Dead(to.host)) return verbs::FakePath{.bytes_per_s = 0, .delay = 0};
        return verbs::FakePath{.bytes_per_s = network->BytesPerS(port(from), port(to)), .delay = 25'000};
      };
    }
    const std::shared_ptr<VerbsSim> shared = *of;
    VerbsSim::Host& host = shared->hosts[io->host];
    for (int rail = 0; rail < io->options.rails; ++rail) shared->fabric.AddDevice(io->host, "mlx5_" + std::to_string(rail), options.driver);
    shared->fabric.OnWake(io->host, io->wake);
    host.fake = std::make_unique<verbs::FakeVerbs>(&shared->fabric, io->host);
    host.faulty = std::make_unique<verbs::FaultyVerbs>(host.fake.get());
    for (const verbs::Call call : {verbs::Call::kDestroyQueuePair, verbs::Call::kDeregister})
      host.faulty->FailWhile(call, &io->closing.fails, EINVAL);
    verbs::VerbsTransport::Options transport;
    transport.verbs = host.faulty.get();
    transport.clock = &shared->time;
    transport.random = [shared] { return static_cast<uint32_t>(shared->time.Random()); };
    transport.log = [io](net::LogLevel, const std::string& line) {
      if (io->logs()) io->Log(line);
    };
    transport.make_control = [shared, faulty = host.faulty.get()](const std::string&) {
      return std::make_unique<verbs::FakeControlThread>(&shared->time, [faulty] { return faulty->TakeTime(); });
    };
    transport.device_of = [](const net::Rail& rail, uint8_t* port) {
      *port = 1;
      return "mlx5_" + std::to_string(rail.index);
    };
    transport.keys_revoked = [io](uint16_t rail) { io->keys_revoked(net::TransportKind::kVerbs, rail); };
    transport.adaptive_routing = options.adaptive_routing;
    return std::make_unique<verbs::VerbsTransport>(transport);
  };
}

}  // namespace r2cc::contract

#endif  // R2CC_TESTS_CONTRACT_VERBS_VERBS_SIM_H_
