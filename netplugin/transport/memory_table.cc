#include "netplugin/transport/memory_table.h"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace r2cc::net {

const Memory* MemoryTable::Register(const Memory& like, std::string* error) {
  const MutexLock changing(changing_);
  Entry entry{.memory = std::make_unique<Memory>(like), .dma_buf = {}, .region = {}};
  Memory& memory = *entry.memory;
  if (memory.kind == MemoryKind::kDmaBuf) {
    entry.dma_buf = UniqueFd(fcntl(like.dma_buf, F_DUPFD_CLOEXEC, 0));
    memory.dma_buf = entry.dma_buf.get();
    if (memory.dma_buf < 0) {
      *error = std::string("R2CC: cannot keep the descriptor of a dma-buf: ") + std::strerror(errno);
      return nullptr;
    }
  }
  memory.id = last_id_ + 1;
  auto region = std::make_shared<Region>(Region{memory.id, 1, reinterpret_cast<uintptr_t>(memory.base), memory.bytes, {}});
  region->keys.resize(rails_);
  const bool device = memory.kind != MemoryKind::kHost;
  bool any = false, plain = !device;
  for (Transport* const transport : transports_)
    for (uint16_t rail = 0; rail < rails_; ++rail) {
      Endpoint key;
      const bool reached = transport->Register(memory, rail, &key, error);
      any |= reached;
      plain &= reached && key.empty();
      if (reached) region->keys[rail].push_back({transport->kind(), std::move(key)});
    }
  if (device && std::any_of(region->keys.begin(), region->keys.end(), [](const auto& keys) { return keys.empty(); })) {
    if (!any && !promised_) return nullptr;
    for (Transport* const transport : transports_)
      for (uint16_t rail = 0; rail < rails_; ++rail) transport->Unregister(memory, rail);
    *error += "; it is copied through host memory";
    plain = true;
  }
  if (!any && !device) return nullptr;
  if (plain) {
    memory.id = 0;
    return entry.memory.release();
  }
  ++last_id_;
  entry.region = std::move(region);
  const MutexLock lock(mutex_);
  return entries_.emplace(memory.id, std::move(entry)).first->second.memory.get();
}

bool MemoryTable::Takes(MemoryKind kind) {
  const MutexLock changing(changing_);
  for (uint16_t rail = 0; rail < rails_; ++rail)
    if (std::none_of(transports_.begin(), transports_.end(), [&](Transport* transport) { return transport->Takes(kind, rail); }))
      return false;
  if (kind != MemoryKind::kHost) promised_ = true;
  return true;
}

void MemoryTable::Unregister(const Memory* memory) {
  if (memory->id == 0) {
    delete memory;
    return;
  }
  const Region gone{.id = memory->id, .generation = Region::kGone};
  UniqueFd dma_buf;
  {
    const MutexLock changing(changing_);
    {
      const MutexLock lock(mutex_);
      const auto it = entries_.find(memory->id);
      if (it == entries_.end()) return;
      dma_buf = std::move(it->second.dma_buf);
      retired_.push_back(std::move(it->second.memory));
      if (retired_.size() > kRetiredMost) retired_.pop_front();
      entries_.erase(it);
    }
    for (Transport* const transport : transports_)
      for (uint16_t rail = 0; rail < rails_; ++rail) transport->Unregister(*memory, rail);
  }
  notify_(gone);
}

std::shared_ptr<const Region> MemoryTable::Find(RegionId region) const {
  const MutexLock lock(mutex_);
  const auto it = entries_.find(region);
  return it == entries_.end() ? nullptr : it->second.region;
}

RailSet MemoryTable::RailsThatRead(const Buffer& from) const {
  const auto region = from.memory == nullptr || from.memory->id == 0 ? nullptr : Find(from.memory->id);
  return region == nullptr ? kAllRails : RailsOf(*region);
}

RailSet MemoryTable::RailsOf(const Region& region) {
  if (region.keys.empty()) return kAllRails;
  RailSet rails = 0;
  for (size_t rail = 0; rail < region.keys.size(); ++rail)
    for (const RailEndpoint& key : region.keys[rail])
      if (!key.bytes.empty()) rails |= RailSet{1} << rail;
  return rails;
}

void MemoryTable::ChangeAll(const std::function<void(const Memory&, Region*)>& change) {
  std::vector<std::shared_ptr<const Region>> changed;
  {
    const MutexLock changing(changing_);
    // Nobody else adds to them or takes from them.
    std::vector<Entry*> entries;
    {
      const MutexLock lock(mutex_);
      for (auto& [id, entry] : entries_) entries.push_back(&entry);
    }
    for (Entry* const entry : entries) {
      auto region = std::make_shared<Region>(*entry->region);
      change(*entry->memory, region.get());
      if (region->keys == entry->region->keys) continue;
      ++region->generation;
      changed.push_back(region);
      const MutexLock lock(mutex_);
      entry->region = std::move(region);
    }
  }
  for (const auto& region : changed) notify_(*region);
}

void MemoryTable::DeviceBack(TransportKind kind, uint16_t rail) {
  ChangeAll([&](const Memory& memory, Region* region) {
    std::vector<RailEndpoint>& keys = region->keys[rail];
    std::erase_if(keys, [kind](const RailEndpoint& key) { return key.transport == kind; });
    for (Transport* const transport : transports_) {
      Endpoint key;
      std::string error;
      if (transport->kind() == kind && transport->Register(memory, rail, &key, &error)) keys.push_back({kind, std::move(key)});
    }
  });
}

}  // namespace r2cc::net
