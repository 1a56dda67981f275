#include "netplugin/plugin/verbs_rails.h"

#include <sys/random.h>

#include <filesystem>
#include <random>
#include <system_error>
#include <utility>
#include <vector>

#include "base/core/mutex.h"
#include "base/core/verbs/libibverbs.h"
#include "netplugin/config/config.h"
#include "netplugin/transport/verbs/rail_port.h"
#include "netplugin/transport/verbs/verbs_transport.h"

namespace r2cc::net {
namespace {

// Packet numbers and patterns: they keep lives of links apart, and no secret.
class SharedRandom {
 public:
  static uint32_t Seed() {
    uint32_t seed = 0;
    while (getrandom(&seed, sizeof(seed), 0) != sizeof(seed)) {
    }
    return seed;
  }
  uint32_t Next() {
    const MutexLock lock(mutex_);
    return static_cast<uint32_t>(engine_());
  }

 private:
  Mutex mutex_;
  std::mt19937 engine_ R2CC_GUARDED_BY(mutex_){Seed()};
};

// The machine's ports as they were last looked at. Any thread; looking may block.
class KnownPorts {
 public:
  KnownPorts(verbs::Verbs* verbs, std::vector<verbs::PortFacts> ports) : verbs_(verbs), ports_(std::move(ports)) {}

  std::string Find(const Rail& rail, uint8_t* port) {
    const MutexLock lock(mutex_);
    if (!rail.device.empty()) {
      *port = rail.port;
      return rail.device;
    }
    const verbs::InterfaceFacts interface = {rail.ifindex, rail.interface, rail.pci};
    auto found = verbs::PortOfInterface(interface, ports_);
    if (!found && !rail.address.empty()) {
      // The interface may have been without an address, or the device is new.
      std::string error;
      ports_ = verbs::ListPorts(verbs_, &error);
      found = verbs::PortOfInterface(interface, ports_);
    }
    if (!found) return "";
    *port = found->port;
    return found->device;
  }

 private:
  verbs::Verbs* const verbs_;
  Mutex mutex_;
  std::vector<verbs::PortFacts> ports_ R2CC_GUARDED_BY(mutex_);
};

// Never ended: providers leave threads and handlers of their own behind.
r2cc::verbs::Libibverbs* Library() {
  static r2cc::verbs::Libibverbs* const library = new r2cc::verbs::Libibverbs;
  return library;
}

}  // namespace

RdmaPorts FindRdmaPorts() {
  RdmaPorts found;
  std::error_code none;
  found.has_devices = std::filesystem::directory_iterator("/sys/class/infiniband", none) != std::filesystem::directory_iterator();
  if (!Library()->missing().empty()) {
    found.error = "R2CC: " + Library()->missing();
    return found;
  }
  found.ports = verbs::ListPorts(Library(), &found.error);
  if (found.ports.empty() && found.error.empty()) found.error = "R2CC: this machine has no RDMA device";
  return found;
}

std::unique_ptr<Transport> MakeVerbsRails(const TransportParts& parts, std::string* error) {
  RdmaPorts found = FindRdmaPorts();
  *error = found.error;
  if (found.ports.empty()) return nullptr;
  r2cc::verbs::Libibverbs* const library = Library();
  // Without it a child that the job forks would take the device's pages along.
  if (const int failed = library->ForkInit(); failed != 0)
    parts.log(LogLevel::kWarn, "R2CC: libibverbs cannot keep registered memory from forked children: set RDMAV_FORK_SAFE=1");
  verbs::VerbsTransport::Options options;
  options.verbs = library;
  options.clock = parts.clock;
  options.random = [random = std::make_shared<SharedRandom>()] { return random->Next(); };
  options.log = parts.log;
  options.gpu = parts.gpu;
  options.make_control = [clock = parts.clock](const std::string& device) {
    return std::make_unique<verbs::RealControlThread>(clock, ("r2cc-" + device).substr(0, 15));
  };
  options.device_of = [known = std::make_shared<KnownPorts>(library, std::move(found.ports))](const Rail& rail, uint8_t* port) {
    return known->Find(rail, port);
  };
  options.keys_revoked = [revoked = parts.keys_revoked](uint16_t rail) { revoked(TransportKind::kVerbs, rail); };
  std::vector<std::string> warnings;
  options.site = verbs::SiteSettingsOf(FromEnvironment, &warnings);
  for (const std::string& warning : warnings) parts.log(LogLevel::kWarn, warning);
  options.poller = parts.poller;
  options.rail_changed = [changed = parts.rail_changed](uint16_t rail) { changed(TransportKind::kVerbs, rail); };
  return std::make_unique<verbs::VerbsTransport>(options);
}

}  // namespace r2cc::net
