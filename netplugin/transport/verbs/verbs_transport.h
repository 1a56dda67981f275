// Implements the transport over RDMA devices: see links.h. Each rail is a port of a device. The device is opened when the rail is first
// listened on, and again when it was lost and has come back.
//
// Once the threads run, devices are opened and inspected in control threads: a dying device holds up such a call for up to a minute, and
// Listen() is called with the locks of all peers. The I/O thread takes over the results.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_TRANSPORT_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_TRANSPORT_H_

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/core/mutex.h"
#include "base/core/retry.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/gpu/gpu.h"
#include "netplugin/transport/links.h"
#include "netplugin/transport/os/poller.h"
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
    // Yields the processor while a call of the job waits for a device.
    std::function<void()> pause = [] { std::this_thread::yield(); };
    std::function<std::unique_ptr<ControlThread>(const std::string& device)> make_control;
    // The device and the port of a rail; an empty name: none. Any thread; MAY BLOCK.
    std::function<std::string(const Rail& rail, uint8_t* port)> device_of;
    // See VerbsShared.
    std::function<void(uint16_t rail)> keys_revoked;
    SiteSettings site;
    // Null: only host memory is registered.
    gpu::Gpu* gpu = nullptr;
    // The I/O thread's; null: only Tick() reads events.
    Poller* poller = nullptr;
    // I/O thread: the rail's endpoint has changed; Listen() returns the new one.
    std::function<void(uint16_t rail)> rail_changed = [](uint16_t) {};
  };
  explicit VerbsTransport(const Options& options);
  ~VerbsTransport() override;

  TransportKind kind() const override { return TransportKind::kVerbs; }
  bool Has(const Rail& rail) override;
  // Once the threads run, it returns where the rail was at the last look, and starts another look: rail_changed() follows if it moved.
  bool Listen(const Rail& rail, Endpoint* own, std::string* error) override;
  uint32_t flow_slots() const override { return kFlowSlots; }
  std::string NameOf(uint16_t rail) override;
  bool Register(const Memory& memory, uint16_t rail, Endpoint* key, std::string* error) override;
  void Unregister(const Memory& memory, uint16_t rail) override { shared_.regions.Unregister(memory, rail); }
  bool Takes(MemoryKind kind, uint16_t rail) override;
  std::string UseTrafficClass(int named) override { return shared_.traffic_class.Named(named, shared_.site); }
  std::unique_ptr<Port> NewPort(const SessionKey& key, const PeerState* state) override;
  void StartThreads(int processors) override;
  void Tick(Nanos now) override;
  void StopThreads() override;

 private:
  // A device by its name. `opening` is held while the device is being opened.
  struct Slot {
    Mutex opening;
    std::shared_ptr<Device> device R2CC_GUARDED_BY(opening);
  };
  // The result of a look.
  struct Look {
    bool ok = false;
    std::string error;
    VerbsShared::RailDevice rail;
    Endpoint own;  // empty: it has no address now
  };
  // A rail that was listened on. I/O thread only, except what a look reads.
  struct Listened {
    Rail rail;
    Endpoint own;
    bool to_announce = false;  // Listen() is about to be called for the new endpoint
    bool looking = false, look_again = false;
    Retry retry{tuning::kSlowRetryLeast, tuning::kDeviceLookMost};
  };
  // Readable events of a device. I/O thread.
  struct Watched {
    std::shared_ptr<Device> device;
    Poller::Token token = 0;
    int async_fd = -1;
  };

  // Any thread, MAY BLOCK.
  Look LookAt(const Rail& rail);
  std::shared_ptr<Device> DeviceNamed(const std::string& name, std::string* error);
  // I/O thread: has the control thread of the rail's device look at the rail. At most one look at a rail runs at a time.
  void StartLook(uint16_t rail);
  void TakeLooks();
  void Adopt(uint16_t rail, const Look& look);
  // The limit of locked memory applies to the process, so the first rail or buffer that meets it logs it for all. True: this is the first.
  bool MemoryLimitLogged(int failed);
  // Runs the data proof for memory of that kind. On failure false and one line.
  bool Proved(const VerbsShared::RailDevice& rail, int gpu, MemoryKind kind, std::string* error);
  void Watch(const std::shared_ptr<Device>& device);
  void Unwatch(Watched* watched);
  void ReadEvents(const std::shared_ptr<Device>& device);
  void TryLost(Nanos now);
  void BuryReplaced();

  const Options options_;
  VerbsShared shared_;
  GpuPaths gpu_paths_;
  Mutex slots_mutex_;  // never held in a call of a device
  std::map<std::string, Slot> slots_ R2CC_GUARDED_BY(slots_mutex_);
  Mutex looks_mutex_;
  std::map<uint16_t, Look> looks_ R2CC_GUARDED_BY(looks_mutex_);  // finished, not taken over yet
  std::atomic<bool> memory_limit_logged_{false};
  // I/O thread.
  std::map<uint16_t, Listened> listened_;
  std::map<std::string, Watched> watched_;
  // Devices that were replaced. The last reference is here, so that no control thread destroys its own device; the next device's control
  // thread does.
  std::vector<std::shared_ptr<Device>> replaced_;
  bool started_ = false;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_TRANSPORT_H_
