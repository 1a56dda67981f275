// RDMA devices as a transport: see links.h. Each rail is a port of a device, which is opened when the rail is first listened on, and again
// when it was lost and has come back.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_TRANSPORT_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_TRANSPORT_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>

#include "netplugin/gpu/gpu.h"
#include "netplugin/transport/links.h"
#include "netplugin/transport/poller.h"
#include "netplugin/transport/verbs/gpu_proof.h"
#include "netplugin/transport/verbs/link_core.h"

namespace r2cc::net::verbs {

class VerbsTransport final : public Transport {
 public:
  struct Options {
    Verbs* verbs = nullptr;
    const Clock* clock = nullptr;
    // Any thread.
    std::function<uint32_t()> random;
    std::function<void(LogLevel, const std::string&)> log;
    // While a call of the job's waits for a device: gives others the processor.
    std::function<void()> pause = [] { std::this_thread::yield(); };
    std::function<std::unique_ptr<ControlThread>(const std::string& device)> make_control;
    // The device and the port that a rail is; an empty name: none.
    std::function<std::string(const Rail& rail, uint8_t* port)> device_of;
    // See VerbsShared.
    std::function<void(uint16_t rail)> keys_revoked;
    bool adaptive_routing = false;
    // Null: host memory alone is registered.
    gpu::Gpu* gpu = nullptr;
    // The I/O thread's; null: Tick() alone looks for events.
    Poller* poller = nullptr;
    // I/O thread: the rail is to be listened on once more, as its port, its addresses or its device may be others now.
    std::function<void(uint16_t rail)> rail_changed = [](uint16_t) {};
  };
  explicit VerbsTransport(const Options& options);
  ~VerbsTransport() override;

  TransportKind kind() const override { return TransportKind::kVerbs; }
  bool Has(const Rail& rail) override;
  bool Listen(const Rail& rail, Endpoint* own, std::string* error) override;
  uint32_t flow_slots() const override { return kFlowSlots; }
  std::string NameOf(uint16_t rail) override;
  bool Register(const Memory& memory, uint16_t rail, Endpoint* key, std::string* error) override;
  void Unregister(const Memory& memory, uint16_t rail) override { shared_.regions.Unregister(memory, rail); }
  bool Takes(MemoryKind kind, uint16_t rail) override;
  std::unique_ptr<Port> NewPort(const SessionKey& key, const PeerState* state) override;
  void StartThreads(int processors) override;
  void Tick(Nanos now) override;
  void StopThreads() override;

 private:
  struct Opened {
    std::shared_ptr<Device> device;
    Poller::Token token = 0;
    int async_fd = -1;
  };
  // Null and one line in `*error`.
  std::shared_ptr<Device> DeviceNamed(const std::string& name, std::string* error);
  // For the rail: the domain that it has of the device, or a new one. Null and an errno: there is none.
  std::shared_ptr<Domain> DomainOf(uint16_t rail, const std::shared_ptr<Device>& device, int* failed);
  // The data proof of memory of that kind. False and one line.
  bool Proved(const VerbsShared::RailDevice& rail, int gpu, MemoryKind kind, std::string* error);
  // The limit of locked memory is the process's, so the first of its rails and buffers that meets it tells of it for all.
  bool ToldOfMemoryLimit(int failed);
  void Watch(Opened* opened);
  void Unwatch(Opened* opened);
  void ReadEvents(const std::shared_ptr<Device>& device);
  void TryLost(Nanos now);

  const Options options_;
  VerbsShared shared_;
  GpuPaths gpu_paths_;
  std::map<std::string, Opened> devices_;
  std::atomic<bool> memory_limit_told_{false};
  bool started_ = false;
  Nanos tried_lost_ = 0;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_TRANSPORT_H_
