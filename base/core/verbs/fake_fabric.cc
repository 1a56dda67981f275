// Devices, ports, events, placement. The way of a request is in fake_requests.cc.
#include "base/core/verbs/fake_fabric.h"

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "base/core/check.h"

namespace r2cc::verbs {

void FakeFabric::AddDevice(int host, const std::string& name, const std::string& driver, uint8_t ports) {
  FakeDevice device;
  device.info = {name, driver, static_cast<uint64_t>(host) << 32 | devices_.size()};
  // The limits of a ConnectX-6.
  device.limits = {.ports = ports,
                   .queue_pairs = 131'072,
                   .requests = 32'768,
                   .completions = 4'194'303,
                   .segments = 30,
                   .reads = 16,
                   .relaxed_ordering = true,
                   .dma_buf = false,
                   .firmware = "fake",
                   .vendor = 0,
                   .part = 0};
  for (uint8_t number = 1; number <= ports; ++number) {
    int among = number;
    for (const auto& [key, other] : devices_)
      if (key.first == host) among += other.limits.ports;
    FakePort& port = device.ports[number];
    port.info = {PortState::kActive, LinkLayer::kEthernet, 1024, 0, 0, 16, 100e9, 1u << 30};
    GidEntry entry{.index = 1, .gid = {}, .type = GidType::kRoceV2, .interface_index = static_cast<uint32_t>(among)};
    entry.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, static_cast<uint8_t>(among), static_cast<uint8_t>(host), 1};
    port.gids[1] = entry;
  }
  devices_[{host, name}] = device;
}

FakeDevice* FakeFabric::device(int host, const std::string& name) {
  const auto it = devices_.find({host, name});
  return it == devices_.end() ? nullptr : &it->second;
}

FakePort* FakeFabric::port(const FakePortName& name) {
  FakeDevice* const of = device(name.host, name.device);
  R2CC_CHECK(of != nullptr && of->ports.contains(name.port));
  return &of->ports[name.port];
}

// ---- faults ----

void FakeFabric::SetCarrier(const FakePortName& name, bool on) {
  FakePort* const of = port(name);
  if (std::exchange(of->carrier, on) == on) return;
  of->info.state = on ? PortState::kActive : PortState::kDown;
  Event(name, {.kind = on ? AsyncKind::kPortActive : AsyncKind::kPortError, .port = name.port});
}

void FakeFabric::SetGid(const FakePortName& name, const GidEntry& entry) {
  port(name)->gids[entry.index] = entry;
  Event(name, {.kind = AsyncKind::kGidChange, .port = name.port});
}

void FakeFabric::RemoveGid(const FakePortName& name, uint32_t index) {
  port(name)->gids.erase(index);
  Event(name, {.kind = AsyncKind::kGidChange, .port = name.port});
}

void FakeFabric::LoseDevice(int host, const std::string& name) {
  device(host, name)->lost = true;
  for (auto& [id, context] : contexts_) {
    if (context.device.host != host || context.device.device != name || context.dead) continue;
    context.dead = true;
    // A device that is gone places nothing.
    for (auto& [pair_id, pair] : pairs_)
      if (pair.context == id) {
        ++pair.incarnation;
        pair.state = QueuePairState::kError;
        std::erase_if(placements_, [&](const auto& entry) { return entry.second.queue_pair == pair_id; });
      }
    context.events.push_back({.kind = AsyncKind::kDeviceFatal});
  }
  Wake(host);
}

void FakeFabric::BreakQueuePair(int host, uint32_t number, AsyncKind event) {
  for (auto& [id, pair] : pairs_) {
    if (pair.port.host != host || pair.number != number) continue;
    ToError(&pair);
    contexts_[pair.context].events.push_back({.kind = event, .queue_pair = id});
  }
  Wake(host);
}

std::vector<FakeQueuePair*> FakeFabric::PairsBetween(const FakePortName& at, const FakePortName& other) {
  std::vector<FakeQueuePair*> found;
  for (auto& [id, pair] : pairs_)
    if (pair.port == at && !Dead(pair.context) && pair.state != QueuePairState::kReset &&
        PortWithGid(pair.receive.path.remote_gid) == other)
      found.push_back(&pair);
  return found;
}

void FakeFabric::BreakQueuePairs(const FakePortName& at, const FakePortName& other, AsyncKind event) {
  for (FakeQueuePair* const pair : PairsBetween(at, other)) {
    ToError(pair);
    if (event != AsyncKind::kOther) contexts_[pair->context].events.push_back({.kind = event, .queue_pair = pair->id});
  }
  Wake(at.host);
}

void FakeFabric::BreakCompletionQueue(const FakePortName& at, const FakePortName& other) {
  const auto pairs = PairsBetween(at, other);
  if (!pairs.empty()) BreakQueue(pairs.front()->limits.receive_completions);
}

void FakeFabric::StallQueuePairs(const FakePortName& at, const FakePortName& other, FakeStall stall) {
  for (FakeQueuePair* const pair : PairsBetween(at, other)) pair->stall = stall;
}

void FakeFabric::StallDevice(int host, const std::string& name, FakeStall stall) {
  device(host, name)->stall = stall;
  for (auto& [id, pair] : pairs_)
    if (pair.port.host == host && pair.port.device == name) Transmit(&pair);
}

std::vector<FakeFabric::Stalled> FakeFabric::StalledPairs() {
  std::vector<Stalled> found;
  const auto is_signaled = [](const FakeWork& work) { return work.request.signaled; };
  for (auto& [id, pair] : pairs_) {
    if (pair.state != QueuePairState::kReadyToSend || Dead(pair.context) || StallOf(pair) == FakeStall::kNone) continue;
    const auto to = PortWithGid(pair.receive.path.remote_gid);
    if (to && (pair.awaited || std::any_of(pair.works.begin(), pair.works.end(), is_signaled)))
      found.push_back({id, pair.port, *to, pair.number});
  }
  return found;
}

// ---- what things are ----

FakeStall FakeFabric::StallOf(const FakeQueuePair& pair) {
  return pair.stall != FakeStall::kNone ? pair.stall : device(pair.port.host, pair.port.device)->stall;
}

bool FakeFabric::Dead(ContextId context) const {
  const auto it = contexts_.find(context);
  return it == contexts_.end() || it->second.dead;
}

bool FakeFabric::Passes(const FakePortName& from, const FakePortName& to, FakePath* way) {
  const FakeDevice *const a = device(from.host, from.device), *const b = device(to.host, to.device);
  const FakePort *const p = port(from), *const q = port(to);
  *way = path(from, to);
  return !a->lost && !b->lost && p->carrier && q->carrier && !p->silent && !q->silent && way->bytes_per_s > 0;
}

std::optional<FakePortName> FakeFabric::PortWithGid(const Gid& gid) {
  for (auto& [key, of] : devices_)
    for (auto& [number, at] : of.ports)
      for (auto& [index, entry] : at.gids)
        if (entry.gid == gid) return FakePortName{key.first, key.second, number};
  return std::nullopt;
}

FakeQueuePair* FakeFabric::Find(QueuePairId id) {
  const auto it = pairs_.find(id);
  return it == pairs_.end() ? nullptr : &it->second;
}

FakeQueuePair* FakeFabric::FindNumber(int host, const std::string& name, uint32_t number) {
  for (auto& [id, pair] : pairs_)
    if (pair.number == number && pair.port.host == host && pair.port.device == name && !Dead(pair.context)) return &pair;
  return nullptr;
}

FakeRegion* FakeFabric::RegionOf(DomainId domain, uint32_t key, bool remote, uint64_t address, uint64_t bytes, uint32_t access) {
  for (auto& [id, region] : regions_) {
    const auto base = reinterpret_cast<uintptr_t>(region.base);
    if (region.domain != domain || (remote ? region.keys.remote_key : region.keys.local_key) != key) continue;
    const bool inside = address >= base && address - base <= region.bytes && bytes <= region.bytes - (address - base);
    return inside && (region.access & access) == access ? &region : nullptr;
  }
  return nullptr;
}

void FakeFabric::Wake(int host) {
  const auto it = wakes_.find(host);
  if (it != wakes_.end()) it->second();
}

void FakeFabric::Event(const FakePortName& of, const AsyncEvent& event) {
  for (auto& [id, context] : contexts_)
    if (context.device.host == of.host && context.device.device == of.device && !context.dead) context.events.push_back(event);
  Wake(of.host);
}

// ---- placement and completions ----

void FakeFabric::Place(FakeQueuePair* target, const FakeRegion* region, std::byte* to, std::vector<std::byte> bytes) {
  const uint64_t number = ++last_id_;
  placements_[number] = {target->id, target->port, target->number, region->keys.id, to, std::move(bytes)};
  ++target->placing;
  Nanos takes = static_cast<Nanos>(time_->Below(static_cast<uint64_t>(options.placement_most) + 1));
  if (options.placement_late_one_in > 0 && time_->Below(static_cast<uint64_t>(options.placement_late_one_in)) == 0)
    takes = static_cast<Nanos>(time_->Below(static_cast<uint64_t>(options.placement_late_most)));
  time_->After(takes, [this, number] { RunPlacement(number); });
}

void FakeFabric::RunPlacement(uint64_t number) {
  auto entry = placements_.extract(number);
  if (entry.empty()) return;
  const Placement& placement = entry.mapped();
  FakeQueuePair* const pair = Find(placement.queue_pair);
  if (regions_.contains(placement.region)) {
    if (pair == nullptr || pair->state == QueuePairState::kReset) ++late_placements_;
    if (on_placing) on_placing(placement.port, placement.number, placement.to, placement.bytes.size());
    if (!placement.bytes.empty()) std::memcpy(placement.to, placement.bytes.data(), placement.bytes.size());
    for (const auto& [id, context] : contexts_)
      if (id == regions_[placement.region].context) Wake(context.device.host);
  }
  if (pair == nullptr) return;
  --pair->placing;
  RunDeliveries(pair);
  FlushReceives(pair);
}

void FakeFabric::RunDeliveries(FakeQueuePair* pair) {
  while (!pair->deliveries.empty()) {
    const FakeQueuePair::Delivery& first = pair->deliveries.front();
    const bool waits = std::any_of(placements_.begin(), placements_.end(),
                                   [&](const auto& entry) { return entry.first <= first.after && entry.second.queue_pair == pair->id; });
    if (waits) return;
    const Completion completion = first.completion;
    pair->deliveries.pop_front();
    Complete(pair->limits.receive_completions, {completion, pair->id, 0});
  }
}

void FakeFabric::FinishPlacements(const std::function<bool(const Placement&)>& filter) {
  std::vector<uint64_t> numbers;
  for (const auto& [number, placement] : placements_)
    if (filter(placement)) numbers.push_back(number);
  for (const uint64_t number : numbers) RunPlacement(number);
}

void FakeFabric::BreakQueue(CompletionQueueId id) {
  FakeCompletionQueue& queue = queues_[id];
  queue.broken = true;
  contexts_[queue.context].events.push_back({.kind = AsyncKind::kCompletionQueueError, .completion_queue = id});
  for (auto& [pair_id, pair] : pairs_)
    if (pair.limits.send_completions == id || pair.limits.receive_completions == id) pair.state = QueuePairState::kError;
  Wake(contexts_[queue.context].device.host);
}

void FakeFabric::Complete(CompletionQueueId id, const FakeCompletion& completion) {
  FakeCompletionQueue& queue = queues_[id];
  const FakePortName at = contexts_[queue.context].device;
  if (queue.broken) return;
  if (queue.queue.size() >= queue.entries) return BreakQueue(id);
  queue.queue.push_back(completion);
  const size_t n = queue.queue.size();
  const auto plain = [&](size_t i) { return queue.queue[i].retires == 0 && queue.queue[i].completion.status == Status::kSuccess; };
  const auto mark = [&](size_t i) { return queue.queue[i].completion.kind == CompletionKind::kReceiveWriteWithImmediate; };
  // One draw for each pair of receives, so that a seed's other events stay where they are.
  if (options.reorder && n >= 2 && plain(n - 1) && plain(n - 2) && time_->Below(2) == 0 && mark(n - 1) && mark(n - 2))
    std::swap(queue.queue[n - 1], queue.queue[n - 2]);
  if (std::exchange(queue.armed, false) && queue.channel != CompletionChannelId{}) ++channels_[queue.channel];
  Wake(at.host);
}

bool FakeFabric::IsRxe(const FakeQueuePair& pair) { return device(pair.port.host, pair.port.device)->info.driver == "rdma_rxe"; }

void FakeFabric::ToError(FakeQueuePair* pair) {
  if (pair->state == QueuePairState::kReset) return;
  if (pair->state == QueuePairState::kError) return FlushReceives(pair);
  pair->state = QueuePairState::kError;
  ++pair->incarnation;
  for (const FakeWork& work : std::exchange(pair->works, {}))
    Complete(pair->limits.send_completions,
             {{.wr_id = work.request.wr_id, .status = Status::kFlushed, .queue_pair_number = pair->number}, pair->id, work.sequence});
  pair->next = 0;
  pair->flush_due = true;
  FlushReceives(pair);
}

// The target's own engine makes these completions, after its present work.
void FakeFabric::FlushReceives(FakeQueuePair* pair) {
  if (!pair->flush_due || pair->placing > 0 || !pair->deliveries.empty()) return;
  for (const FakeReceive& receive : std::exchange(pair->receives, {}))
    Complete(pair->limits.receive_completions,
             {{.wr_id = receive.wr_id, .status = Status::kFlushed, .queue_pair_number = pair->number}, pair->id, 0});
}

}  // namespace r2cc::verbs
