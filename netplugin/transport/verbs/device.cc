#include "netplugin/transport/verbs/device.h"

#include <sys/resource.h>

#include <cerrno>
#include <cstring>

namespace r2cc::net::verbs {
namespace {

// soft-RoCE of Linux 6.1: RESET stops a tasklet and does not wait for a run on another processor. Measured: bytes came 8 to 50 ms later,
// and the kernel was damaged. So it is never called there.
constexpr const char* kResetDoesNotWait[] = {"rdma_rxe"};

// So many events of a device that says the same again and again are read in one go; the rest the next time.
constexpr int kEventsMost = 256;

// NCCL's buffer of one channel (NCCL_BUFFSIZE): less is of no use to any job.
constexpr size_t kRegisteredLeastBytes = 4 << 20;

}  // namespace

std::string LockedMemoryAdvice(int failed) {
  rlimit limit{};
  if (failed != ENOMEM || getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return "";
  const std::string value = limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur / 1024) + " KiB";
  return "; the limit of locked memory (ulimit -l, RLIMIT_MEMLOCK) is " + value + ": raise it, or set R2CC_TRANSPORT=tcp";
}

bool ResetWaits(const std::string& driver) {
  for (const char* const name : kResetDoesNotWait)
    if (driver == name) return false;
  return true;
}

Device::Device(Verbs* verbs, DeviceInfo info, std::unique_ptr<ControlThread> control)
    : verbs_(verbs), info_(std::move(info)), control_(std::move(control)), reset_waits_(ResetWaits(info_.driver)) {}

std::shared_ptr<Device> Device::Open(Verbs* verbs, const DeviceInfo& info, std::unique_ptr<ControlThread> control, std::string* error) {
  std::shared_ptr<Device> device(new Device(verbs, info, std::move(control)));
  const char* what = "open";
  int failed = verbs->Open(info.name, &device->context_, &device->async_fd_);
  if (failed == 0) {
    what = "query";
    failed = verbs->QueryDevice(device->context_, &device->limits_);
  }
  if (failed == 0) {
    what = "allocate a protection domain of";
    failed = verbs->AllocateDomain(device->context_, &device->domain_);
  }
  if (failed == 0) return device;
  *error = std::string("R2CC: cannot ") + what + " the RDMA device " + info.name + ": " + std::strerror(failed);
  // rdma-core looks for the file elsewhere when it may not open it, and says that there is none.
  if (failed == EACCES || failed == EPERM || failed == ENOENT)
    *error += "; allow this user to open /dev/infiniband/uverbs*, or set R2CC_TRANSPORT=tcp";
  return nullptr;
}

Device::~Device() {
  control_.reset();
  if (domain_ != DomainId{}) verbs_->FreeDomain(domain_);
  if (context_ != ContextId{}) verbs_->Close(context_);
}

int Device::TryRegister() const {
  const std::unique_ptr<std::byte[]> memory(new std::byte[kRegisteredLeastBytes]);
  MemoryRegion region;
  if (const int error = verbs_->Register(domain_, memory.get(), kRegisteredLeastBytes, kLocalWrite, &region); error != 0) return error;
  return verbs_->Deregister(region.id);
}

bool Device::TakesDmaBuf() const {
  MemoryRegion region;
  return limits_.dma_buf && verbs_->RegisterDmaBuf(domain_, -1, 0, 4096, 0, kLocalWrite | kRemoteWrite | kRemoteRead, &region) == EBADF;
}

int Device::LookAt(uint8_t port, const GidWish& wish, PortInfo* info, GidEntry* gid) const {
  if (const int error = verbs_->QueryPort(context_, port, info); error != 0) return error;
  std::vector<GidEntry> entries;
  if (const int error = verbs_->QueryGids(context_, port, &entries); error != 0) return error;
  GidWish asked = wish;
  asked.link_layer = info->link_layer;
  const auto chosen = ChooseGid(entries, asked);
  if (!chosen) return ENETUNREACH;
  *gid = *chosen;
  return 0;
}

// ---- domains ----

std::shared_ptr<Domain> Domain::Allocate(std::shared_ptr<Device> device, int* failed) {
  DomainId id{};
  *failed = device->verbs()->AllocateDomain(device->context(), &id);
  return *failed == 0 ? std::shared_ptr<Domain>(new Domain(std::move(device), id)) : nullptr;
}

Domain::~Domain() { device_->verbs()->FreeDomain(id_); }

// ---- events ----

Device::Token Device::Listen(Listener listener) {
  const MutexLock lock(mutex_);
  listeners_[++last_token_] = std::make_shared<const Listener>(std::move(listener));
  return last_token_;
}

void Device::Unlisten(Token token) {
  std::shared_ptr<const Listener> last;  // its end may be more than a lock should see
  const MutexLock lock(mutex_);
  const auto it = listeners_.find(token);
  if (it == listeners_.end()) return;
  last = std::move(it->second);
  listeners_.erase(it);
}

void Device::Notify(Trouble trouble, const std::function<bool(const Listener&)>& whom) {
  std::vector<std::shared_ptr<const Listener>> notified;
  {
    const MutexLock lock(mutex_);
    for (const auto& [token, listener] : listeners_)
      if (whom(*listener)) notified.push_back(listener);
  }
  for (const auto& listener : notified) listener->notify(trouble);
}

void Device::Lost() {
  if (lost_.exchange(true)) return;
  Notify(Trouble::kDevice, [](const Listener&) { return true; });
}

void Device::Retire(const Domain* domain) {
  Notify(Trouble::kQueuePair, [domain](const Listener& listener) { return listener.domain == domain; });
}

bool Device::IsGone() {
  if (gone_.load()) return true;
  DeviceLimits limits;
  const int failed = lost() ? verbs_->QueryDevice(context_, &limits) : 0;
  if (failed == EIO || failed == ENODEV) gone_ = true;
  return gone_.load();
}

bool Device::Answers(uint8_t port) const {
  DeviceLimits limits;
  PortInfo info;
  return verbs_->QueryDevice(context_, &limits) == 0 && verbs_->QueryPort(context_, port, &info) == 0;
}

void Device::ReadEvents(const std::function<void(uint8_t port)>& port_changed) {
  AsyncEvent event;
  for (int i = 0; i < kEventsMost && verbs_->ReadAsyncEvent(context_, &event) == 0; ++i) {
    verbs_->AckAsyncEvent(context_, event);
    switch (event.kind) {
      case AsyncKind::kPortError: Notify(Trouble::kPort, [&](const Listener& listener) { return listener.port == event.port; }); break;
      case AsyncKind::kPortActive:
      case AsyncKind::kGidChange:
      case AsyncKind::kLidChange:
      case AsyncKind::kPkeyChange: port_changed(event.port); break;
      case AsyncKind::kQueuePairFatal:
      case AsyncKind::kQueuePairRequestError:
      case AsyncKind::kQueuePairAccessError:
        Notify(Trouble::kQueuePair, [&](const Listener& listener) { return listener.queue_pair == event.queue_pair; });
        break;
      case AsyncKind::kCompletionQueueError:
        // Nothing that it held is known any more: whoever used it ends.
        Notify(Trouble::kDevice, [&](const Listener& listener) { return listener.completions == event.completion_queue; });
        break;
      case AsyncKind::kDeviceFatal: Lost(); break;
      case AsyncKind::kOther:
      case AsyncKind::kPathMigrated:
      case AsyncKind::kCommunicationEstablished:
      case AsyncKind::kSendQueueDrained:
      case AsyncKind::kLastRequestReached: break;
    }
  }
}

}  // namespace r2cc::net::verbs
