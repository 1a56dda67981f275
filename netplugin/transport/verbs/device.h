// Owns one RDMA device of the process: its context, domain, ports, limits, its control thread, and the listeners for its asynchronous
// events.
//
// ReadEvents() reads events and acknowledges them at once, because a queue pair with an unacknowledged event can never be destroyed. Then
// it passes each to the listeners that it is about: by port number, by queue pair, by completion queue, or to all. Duplicates, and events
// of objects that have ended, are normal.
//
// Threads: any, unless stated otherwise. The device's own lock is never held in a call of Verbs or of a listener.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_DEVICE_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_DEVICE_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/mutex.h"
#include "netplugin/transport/verbs/control_thread.h"
#include "netplugin/transport/verbs/gid.h"
#include "netplugin/transport/verbs/verbs_types.h"

namespace r2cc::net::verbs {

// The driver table: whether the driver's RESET of a queue pair waits for what is being placed. Drivers that are not named count as sound,
// because their source states that of RESET; the flush and the destroy must also succeed.
bool ResetWaits(const std::string& driver);

// The usual cause of a registration that failed so, to append to its line; empty if `failed` is not ENOMEM.
std::string LockedMemoryAdvice(int failed);

class Domain;

class Device {
 public:
  enum class Trouble : uint8_t {
    kPort,       // the port carries nothing
    kQueuePair,  // it is in the error state, or about to be
    kDevice,     // the device is gone, or one of its completion queues
  };
  // What a link listens to. The reader of the events calls `notify`, perhaps once more after Unlisten() began in another thread.
  struct Listener {
    uint8_t port = 1;
    QueuePairId queue_pair{};
    CompletionQueueId completions{};
    const Domain* domain = nullptr;
    std::function<void(Trouble)> notify;
  };
  using Token = uint64_t;

  // Null, and one line in `*error` that names the device: it cannot be opened.
  static std::shared_ptr<Device> Open(Verbs* verbs, const DeviceInfo& info, std::unique_ptr<ControlThread> control, std::string* error);
  // The links must be gone. The control thread ends first.
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const DeviceInfo& info() const { return info_; }
  const DeviceLimits& limits() const { return limits_; }
  Verbs* verbs() const { return verbs_; }
  ContextId context() const { return context_; }
  ControlThread* control() const { return control_.get(); }
  // Readable while there are events; -1: call ReadEvents() periodically.
  int async_fd() const { return async_fd_; }
  bool reset_waits() const { return reset_waits_; }
  // The device has reported that it is gone for good: it has to be opened again, as another Device. That alone proves nothing.
  bool lost() const { return lost_.load(); }
  // Its fatal event has come.
  void Lost();
  // Nothing of it reaches memory any more: it has reported that it is gone, and it answers no query. The results of other calls prove
  // neither. MAY BLOCK.
  bool IsGone();
  // The result of the last IsGone().
  bool gone() const { return gone_.load(); }
  // It does what it is asked. A device in an internal error returns success from calls that change or end things, and does nothing; only
  // its queries fail. MAY BLOCK.
  bool Answers(uint8_t port) const;

  // Whether this user may register the least memory that a job needs. 0 or an errno. MAY BLOCK.
  int TryRegister() const;
  // Whether the driver registers dma-bufs at all: the error for an invalid one shows it. MAY BLOCK.
  bool TakesDmaBuf() const;
  // The port as it is now, and the GID that its rail should use. Non-zero: errno; ENETUNREACH: it has no such GID. MAY BLOCK.
  int LookAt(uint8_t port, const GidWish& wish, PortInfo* info, GidEntry* gid) const;

  // Nothing can be registered in the domain any more: its users end.
  void Retire(const Domain* domain);
  Token Listen(Listener listener);
  void Unlisten(Token token);
  // `port_changed`: a port came up, or its addresses or its speed may have changed.
  void ReadEvents(const std::function<void(uint8_t port)>& port_changed);

 private:
  Device(Verbs* verbs, DeviceInfo info, std::unique_ptr<ControlThread> control);
  void Notify(Trouble trouble, const std::function<bool(const Listener&)>& whom);

  Verbs* const verbs_;
  const DeviceInfo info_;
  std::unique_ptr<ControlThread> control_;
  const bool reset_waits_;
  ContextId context_{};
  DomainId domain_{};  // for TryRegister() and TakesDmaBuf(); rails have their own
  int async_fd_ = -1;
  DeviceLimits limits_;
  std::atomic<bool> lost_{false}, gone_{false};

  Mutex mutex_;
  Token last_token_ R2CC_GUARDED_BY(mutex_) = 0;
  std::map<Token, std::shared_ptr<const Listener>> listeners_ R2CC_GUARDED_BY(mutex_);
};

// Owns a protection domain: a queue pair reaches the regions of its own domain and no others. It ends with the last object that is made in
// it, and keeps its device.
class Domain {
 public:
  // Null, and an errno in `*failed`: the device allocates none. MAY BLOCK.
  static std::shared_ptr<Domain> Allocate(std::shared_ptr<Device> device, int* failed);
  ~Domain();
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;

  const std::shared_ptr<Device>& device() const { return device_; }
  DomainId id() const { return id_; }
  // Nothing is registered in it any more: see RegionTable.
  bool revoked() const { return revoked_.load(); }
  void Revoke() { revoked_ = true; }

 private:
  Domain(std::shared_ptr<Device> device, DomainId id) : device_(std::move(device)), id_(id) {}
  const std::shared_ptr<Device> device_;
  const DomainId id_;
  std::atomic<bool> revoked_{false};
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_DEVICE_H_
