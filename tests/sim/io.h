// What the parts of one simulated process share: its options, its place in the network, and what its devices do.
#ifndef R2CC_TESTS_SIM_IO_H_
#define R2CC_TESTS_SIM_IO_H_

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "netplugin/flow/memory.h"
#include "netplugin/flow/stripe.h"
#include "tests/sim/machine_clock.h"
#include "tests/sim/network.h"
#include "tests/sim/tap.h"

namespace r2cc::sim {

struct ProcessOptions {
  int rails = 1;
  uint8_t sockets_per_rail = 1;
  bool keys = false;         // the sender places, by keys to the receiver's registered memory
  bool workers = false;      // bulk may be moved by threads beside the job's
  bool link_monitor = true;  // false: rails are ports without an interface, of which their devices alone tell
  bool all_links = true;     // at once; see LinkDemand
  uint32_t chunk_bytes = 4096;
  uint32_t eager_bytes = 0;
  Nanos silence = 250 * kNanosPerMs;
  Nanos deadline = 30 * kNanosPerSecond;
  net::StripeMode mode = net::StripeMode::kBalance;
  Nanos turn_latency_most = 20'000;  // from an event to the moment when the I/O thread looks at it
  size_t turn_bytes = 16 * 1024;     // read from one socket before the others get their turn
  MachineClock clock;                // of its node
  bool later = false;                // somebody begins it: see Process::Begin()
};

// How a device of the process ends an incarnation.
struct Closing {
  Nanos late_most = 0;  // so long after it was asked to, at most; 0: at once
  bool fails = false;   // it cannot, for now
};

// What a device of the process may result, and by which number peers name it.
struct Registration {
  net::RegionId region = 0;
  uint16_t rail = 0;
  uint64_t begin = 0;
  uint64_t end = 0;
  bool again = false;  // since the device has come back
};

class Io {
 public:
  Io(Network* network, Tap* tap, int host, const ProcessOptions& options)
      : network(network),
        tap(tap),
        host(host),
        options(options),
        device_lost(static_cast<size_t>(options.rails), false),
        device_was_lost(device_lost) {}
  Io(const Io&) = delete;
  Io& operator=(const Io&) = delete;

  Network* const network;
  Tap* const tap;
  const int host;
  const ProcessOptions options;
  Closing closing;
  std::vector<bool> device_lost, device_was_lost;  // by rail: now, and ever
  std::map<uint64_t, Registration> registered;     // by key
  uint64_t keys_given = 0;
  int refusing_rail = -1;      // whose device takes no memory at the moment
  bool reader_stuck = false;   // nobody reads bulk at the moment, and all else goes on
  std::function<void()> wake;  // asks for a turn of the process
  // The keys of the rail's regions are void.
  std::function<void(net::TransportKind kind, uint16_t rail)> keys_revoked;
  std::function<void(uint16_t rail)> rail_changed;  // the rail is to be listened on once more
  std::function<bool()> running;                    // it is not stopped, and has not ended
  // How long the process's own thread was kept by calls of devices since the last time. It makes none that may block.
  std::function<Nanos()> kept = [] { return Nanos{0}; };

  bool Reaches(uint16_t rail, const net::Memory& memory) const {
    return std::any_of(registered.begin(), registered.end(),
                       [&](const auto& entry) { return entry.second.rail == rail && entry.second.region == memory.id; });
  }

  Nanos now() const { return network->timeline()->now(); }
  // By the clock of its node, as the production code has it.
  Nanos local_now() const { return options.clock.At(now()); }
  Random& random() const { return network->timeline()->random(); }
  bool logs() const { return tap->logs(); }
  void Log(const std::string& line) const { tap->Log(host, line); }
};

}  // namespace r2cc::sim

#endif  // R2CC_TESTS_SIM_IO_H_
