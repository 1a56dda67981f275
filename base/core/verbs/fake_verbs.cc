#include "base/core/verbs/fake_verbs.h"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

namespace r2cc::verbs {
namespace {

// As mlx5 gives.
constexpr uint32_t kInlineBytesMost = 512;
// As on real devices; the lowest free one is used.
constexpr uint32_t kFirstNumber = 0x11;

}  // namespace

FakeDevice* FakeVerbs::DeviceOf(ContextId context) {
  if (fabric_->Dead(context)) return nullptr;
  const FakePortName& name = fabric_->contexts_[context].device;
  return fabric_->device(name.host, name.device);
}

int FakeVerbs::Devices(std::vector<DeviceInfo>* devices) {
  devices->clear();
  for (const auto& [key, device] : fabric_->devices_)
    if (key.first == host_ && !device.lost) devices->push_back(device.info);
  return 0;
}

int FakeVerbs::Open(const std::string& name, ContextId* context, int* async_fd) {
  const FakeDevice* const device = fabric_->device(host_, name);
  if (device == nullptr || device->lost) return ENODEV;
  *context = NewId<ContextId>();
  *async_fd = -1;
  fabric_->contexts_[*context] = {{host_, name, 1}, false, {}};
  return 0;
}

int FakeVerbs::Close(ContextId context) {
  for (const auto& [id, pair] : fabric_->pairs_)
    if (pair.context == context) return EBUSY;
  for (const auto& [id, region] : fabric_->regions_)
    if (region.context == context) return EBUSY;
  return fabric_->contexts_.erase(context) == 1 ? 0 : EINVAL;
}

int FakeVerbs::QueryDevice(ContextId context, DeviceLimits* limits) {
  const FakeDevice* const device = DeviceOf(context);
  if (device == nullptr) return EIO;
  *limits = device->limits;
  return 0;
}

int FakeVerbs::QueryPort(ContextId context, uint8_t port, PortInfo* info) {
  const FakeDevice* const device = DeviceOf(context);
  if (device == nullptr) return EIO;
  const auto it = device->ports.find(port);
  if (it == device->ports.end()) return EINVAL;
  *info = it->second.info;
  return 0;
}

int FakeVerbs::QueryGids(ContextId context, uint8_t port, std::vector<GidEntry>* entries) {
  const FakeDevice* const device = DeviceOf(context);
  if (device == nullptr) return EIO;
  const auto it = device->ports.find(port);
  if (it == device->ports.end()) return EINVAL;
  entries->clear();
  for (const auto& [index, entry] : it->second.gids) entries->push_back(entry);
  return 0;
}

int FakeVerbs::ReadAsyncEvent(ContextId id, AsyncEvent* event) {
  const auto it = fabric_->contexts_.find(id);
  if (it == fabric_->contexts_.end()) return EINVAL;
  if (it->second.events.empty()) return EAGAIN;
  *event = it->second.events.front();
  it->second.events.pop_front();
  if (FakeQueuePair* const pair = fabric_->Find(event->queue_pair); pair != nullptr) ++pair->unacknowledged_events;
  return 0;
}

void FakeVerbs::AckAsyncEvent(ContextId, const AsyncEvent& event) {
  if (FakeQueuePair* const pair = fabric_->Find(event.queue_pair); pair != nullptr) --pair->unacknowledged_events;
}

int FakeVerbs::AllocateDomain(ContextId context, DomainId* domain) {
  if (fabric_->Dead(context)) return EIO;
  fabric_->domains_[*domain = NewId<DomainId>()] = context;
  return 0;
}

int FakeVerbs::FreeDomain(DomainId domain) { return fabric_->domains_.erase(domain) == 1 ? 0 : EINVAL; }

int FakeVerbs::Register(DomainId domain, void* base, uint64_t bytes, uint32_t access, MemoryRegion* region) {
  const auto it = fabric_->domains_.find(domain);
  if (it == fabric_->domains_.end() || ((access & kRemoteWrite) != 0 && (access & kLocalWrite) == 0)) return EINVAL;
  if (fabric_->Dead(it->second)) return EIO;
  // Another key each time unless they are used again, and none of them 0.
  const auto id = static_cast<uint32_t>(++fabric_->last_id_);
  uint32_t number = id;
  if (std::vector<uint32_t>& free = fabric_->free_keys_[it->second]; fabric_->options.reuse_keys && !free.empty()) {
    number = free.back();
    free.pop_back();
  }
  *region = {static_cast<MemoryRegionId>(id), number << 8 | 1, number << 8 | 2};
  fabric_->regions_[region->id] = {*region, it->second, domain, static_cast<std::byte*>(base), bytes, access};
  return 0;
}

// The memory itself is found by its address, as a GPU's and the process's are one.
int FakeVerbs::RegisterDmaBuf(DomainId domain, int fd, uint64_t, uint64_t bytes, uint64_t base, uint32_t access, MemoryRegion* region) {
  const auto it = fabric_->domains_.find(domain);
  if (it == fabric_->domains_.end()) return EINVAL;
  const FakeDevice* const of = DeviceOf(it->second);
  if (of == nullptr || !of->limits.dma_buf) return EOPNOTSUPP;
  if (fd < 0) return EBADF;
  return Register(domain, reinterpret_cast<void*>(base), bytes, access, region);
}

int FakeVerbs::Deregister(MemoryRegionId id) {
  const auto it = fabric_->regions_.find(id);
  if (it == fabric_->regions_.end()) return EINVAL;
  const bool dead = fabric_->Dead(it->second.context);
  fabric_->FinishPlacements([id](const auto& placement) { return placement.region == id; });
  fabric_->free_keys_[it->second.context].push_back(it->second.keys.remote_key >> 8);
  fabric_->regions_.erase(id);
  return dead ? EIO : 0;
}

int FakeVerbs::CreateChannel(ContextId context, CompletionChannelId* channel, int* fd) {
  if (fabric_->Dead(context)) return EIO;
  fabric_->channels_[*channel = NewId<CompletionChannelId>()] = 0;
  *fd = -1;
  return 0;
}

int FakeVerbs::DestroyChannel(CompletionChannelId channel) { return fabric_->channels_.erase(channel) == 1 ? 0 : EINVAL; }

int FakeVerbs::TakeCompletionEvents(CompletionChannelId channel) {
  const auto it = fabric_->channels_.find(channel);
  if (it == fabric_->channels_.end()) return EINVAL;
  return std::exchange(it->second, 0) > 0 ? 0 : EAGAIN;
}

int FakeVerbs::CreateCompletionQueue(ContextId context, uint32_t entries, CompletionChannelId channel, CompletionQueueId* queue) {
  const FakeDevice* const device = DeviceOf(context);
  if (device == nullptr) return EIO;
  if (entries == 0 || entries > device->limits.completions) return EINVAL;
  *queue = NewId<CompletionQueueId>();
  fabric_->queues_[*queue] = {context, channel, entries, false, false, {}};
  return 0;
}

int FakeVerbs::DestroyCompletionQueue(CompletionQueueId queue) {
  for (const auto& [id, pair] : fabric_->pairs_)
    if (pair.limits.send_completions == queue || pair.limits.receive_completions == queue) return EBUSY;
  return fabric_->queues_.erase(queue) == 1 ? 0 : EINVAL;
}

int FakeVerbs::Arm(CompletionQueueId queue, bool) {
  const auto it = fabric_->queues_.find(queue);
  if (it == fabric_->queues_.end()) return EINVAL;
  it->second.armed = true;
  return 0;
}

int FakeVerbs::Poll(CompletionQueueId id, std::span<Completion> completions, size_t* taken) {
  *taken = 0;
  const auto it = fabric_->queues_.find(id);
  if (it == fabric_->queues_.end()) return EINVAL;
  FakeCompletionQueue& queue = it->second;
  if (fabric_->Dead(queue.context) || queue.broken) return EIO;
  for (; *taken < completions.size() && !queue.queue.empty(); ++*taken, ++counts_.completions) {
    const FakeCompletion& first = queue.queue.front();
    if (FakeQueuePair* const pair = fabric_->Find(first.queue_pair); pair != nullptr)
      pair->retired = std::max(pair->retired, first.retires);
    completions[*taken] = first.completion;
    queue.queue.pop_front();
  }
  return 0;
}

// ---- queue pairs ----

FakeQueuePair* FakeVerbs::Live(QueuePairId id, int* error) {
  FakeQueuePair* const pair = fabric_->Find(id);
  *error = pair == nullptr ? EINVAL : fabric_->Dead(pair->context) ? EIO : 0;
  return *error == 0 ? pair : nullptr;
}

int FakeVerbs::CreateQueuePair(DomainId domain, const QueuePairLimits& limits, QueuePairInfo* info) {
  const auto it = fabric_->domains_.find(domain);
  if (it == fabric_->domains_.end()) return EINVAL;
  const FakeDevice* const device = DeviceOf(it->second);
  if (device == nullptr) return EIO;
  const bool has_queues = fabric_->queues_.contains(limits.send_completions) && fabric_->queues_.contains(limits.receive_completions);
  if (!has_queues || limits.inline_bytes > kInlineBytesMost) return EINVAL;
  if (limits.sends > device->limits.requests || limits.receives > device->limits.requests) return EINVAL;
  std::set<uint32_t> used;
  for (const auto& [id, pair] : fabric_->pairs_)
    if (fabric_->contexts_[pair.context].device == fabric_->contexts_[it->second].device) used.insert(pair.number);
  if (used.size() >= device->limits.queue_pairs) return ENOMEM;
  uint32_t number = kFirstNumber;
  while (used.contains(number)) ++number;
  const auto id = NewId<QueuePairId>();
  FakeQueuePair& pair = fabric_->pairs_[id];
  pair.id = id;
  pair.context = it->second;
  pair.domain = domain;
  pair.number = number;
  pair.limits = limits;
  pair.port = fabric_->contexts_[it->second].device;
  *info = {id, number, kInlineBytesMost};
  return 0;
}

int FakeVerbs::Init(QueuePairId id, uint8_t port, uint16_t, uint32_t access) {
  int error = 0;
  FakeQueuePair* const pair = Live(id, &error);
  if (pair == nullptr) return error;
  if (pair->state != QueuePairState::kReset || !DeviceOf(pair->context)->ports.contains(port)) return EINVAL;
  pair->state = QueuePairState::kInit;
  pair->port.port = port;
  pair->access = access;
  return 0;
}

int FakeVerbs::MakeReadyToReceive(QueuePairId id, const ReadyToReceive& attributes) {
  int error = 0;
  FakeQueuePair* const pair = Live(id, &error);
  if (pair == nullptr) return error;
  const uint32_t mtu = attributes.mtu_bytes;
  const bool mtu_is_one = mtu == 256 || mtu == 512 || mtu == 1024 || mtu == 2048 || mtu == 4096;
  const FakePort* const port = fabric_->port(pair->port);
  if (pair->state != QueuePairState::kInit || attributes.path.port != pair->port.port || !mtu_is_one || mtu > port->info.mtu_bytes ||
      !port->gids.contains(attributes.path.gid_index))
    return EINVAL;
  pair->receive = attributes;
  pair->state = QueuePairState::kReadyToReceive;
  return 0;
}

int FakeVerbs::MakeReadyToSend(QueuePairId id, const ReadyToSend& attributes) {
  int error = 0;
  FakeQueuePair* const pair = Live(id, &error);
  if (pair == nullptr) return error;
  if (pair->state != QueuePairState::kReadyToReceive) return EINVAL;
  pair->send = attributes;
  pair->state = QueuePairState::kReadyToSend;
  return 0;
}

int FakeVerbs::SetState(QueuePairId id, QueuePairState state) {
  int error = 0;
  FakeQueuePair* const pair = Live(id, &error);
  if (pair == nullptr) return error;
  if (state == QueuePairState::kError) {
    fabric_->ToError(pair);
    return 0;
  }
  if (state != QueuePairState::kReset) return EINVAL;
  const bool waits = DeviceOf(pair->context)->info.driver != "rdma_rxe";
  if (waits) fabric_->FinishPlacements([id](const auto& placement) { return placement.queue_pair == id; });
  ++pair->incarnation;
  pair->state = QueuePairState::kReset;
  pair->works.clear();
  pair->receives.clear();
  pair->deliveries.clear();
  pair->flush_due = false;
  return 0;
}

int FakeVerbs::QueryState(QueuePairId id, QueuePairState* state) {
  int error = 0;
  const FakeQueuePair* const pair = Live(id, &error);
  if (pair == nullptr) return error;
  *state = pair->state;
  return 0;
}

int FakeVerbs::DestroyQueuePair(QueuePairId id) {
  FakeQueuePair* const pair = fabric_->Find(id);
  if (pair == nullptr) return EINVAL;
  if (pair->unacknowledged_events > 0) {
    ++fabric_->hangs_;
    return EDEADLK;
  }
  const bool dead = fabric_->Dead(pair->context);
  fabric_->FinishPlacements([id](const auto& placement) { return placement.queue_pair == id; });
  // Its completions that nobody has polled vanish.
  for (auto& [queue_id, queue] : fabric_->queues_)
    std::erase_if(queue.queue, [id](const FakeCompletion& completion) { return completion.queue_pair == id; });
  fabric_->pairs_.erase(id);
  return dead ? EIO : 0;
}

int FakeVerbs::PostSend(QueuePairId id, std::span<const SendRequest> requests, size_t* posted) {
  *posted = 0;
  int error = 0;
  FakeQueuePair* const pair = Live(id, &error);
  if (pair == nullptr) return error;
  ++counts_.send_doorbells;
  for (const SendRequest& request : requests) {
    if (pair->state != QueuePairState::kReadyToSend && pair->state != QueuePairState::kError) return EINVAL;
    if (pair->posted - pair->retired >= pair->limits.sends) return ENOMEM;
    FakeWork work{request, {request.segments.begin(), request.segments.end()}, {}, ++pair->posted, 0};
    for (const Segment& segment : work.segments) {
      work.bytes += segment.bytes;
      const auto* const data = static_cast<const std::byte*>(segment.address);
      if (request.inlined) work.inlined.insert(work.inlined.end(), data, data + segment.bytes);
    }
    if (request.inlined && work.bytes > kInlineBytesMost) return EINVAL;
    work.request.segments = {};
    ++counts_.sends;
    ++*posted;
    if (pair->state == QueuePairState::kError)
      fabric_->Complete(pair->limits.send_completions,
                        {{.wr_id = request.wr_id, .status = Status::kFlushed, .queue_pair_number = pair->number}, id, work.sequence});
    else
      pair->works.push_back(std::move(work));
  }
  fabric_->Transmit(pair);
  return 0;
}

int FakeVerbs::PostReceive(QueuePairId id, std::span<const ReceiveRequest> requests, size_t* posted) {
  *posted = 0;
  int error = 0;
  FakeQueuePair* const pair = Live(id, &error);
  if (pair == nullptr) return error;
  ++counts_.receive_doorbells;
  for (const ReceiveRequest& request : requests) {
    if (pair->state == QueuePairState::kReset) return EINVAL;
    if (pair->receives.size() >= pair->limits.receives) return ENOMEM;
    pair->receives.push_back({request.wr_id, {request.segments.begin(), request.segments.end()}});
    ++counts_.receives;
    ++*posted;
  }
  if (!fabric_->IsRxe(*pair)) fabric_->FlushReceives(pair);
  return 0;
}

}  // namespace r2cc::verbs
