#include "netplugin/transport/verbs/region_table.h"

#include <cerrno>
#include <cstring>
#include <vector>

namespace r2cc::net::verbs {
namespace {

constexpr uint32_t kAccess = kLocalWrite | kRemoteWrite | kRemoteRead | kRelaxedOrdering;

}  // namespace

int RegionTable::Register(const std::shared_ptr<Device>& device, uint16_t rail, const Memory& memory, uint32_t* remote_key,
                          std::string* error) {
  Unregister(memory, rail);
  Entry entry{device, {}};
  Verbs* const verbs = device->verbs();
  const auto base = reinterpret_cast<uintptr_t>(memory.base);
  const int failed =
      memory.kind == MemoryKind::kDmaBuf
          ? verbs->RegisterDmaBuf(device->domain(), memory.dma_buf, memory.dma_buf_offset, memory.bytes, base, kAccess, &entry.region)
          : verbs->Register(device->domain(), memory.base, memory.bytes, kAccess, &entry.region);
  if (failed != 0) {
    *error = "R2CC: the RDMA device " + device->info().name + " cannot register " + std::to_string(memory.bytes) +
             " bytes: " + std::strerror(failed) + LockedMemoryAdvice(failed);
    return failed;
  }
  *remote_key = entry.region.remote_key;
  const std::lock_guard lock(mutex_);
  entries_[{rail, memory.id}] = std::move(entry);
  return 0;
}

void RegionTable::Unregister(const Memory& memory, uint16_t rail) {
  Entry entry;
  {
    const std::lock_guard lock(mutex_);
    auto taken = entries_.extract({rail, memory.id});
    if (taken.empty()) return;
    entry = std::move(taken.mapped());
  }
  if (End(entry)) return;
  const std::lock_guard lock(mutex_);
  undead_.emplace_back(rail, std::move(entry));
}

bool RegionTable::End(const Entry& entry) {
  const int error = entry.device->verbs()->Deregister(entry.region.id);
  if (error == EIO || error == ENODEV) entry.device->Gone();
  return error == 0 || entry.device->gone();
}

std::optional<MemoryRegion> RegionTable::Find(net::RegionId memory, uint16_t rail) const {
  const std::lock_guard lock(mutex_);
  const auto it = entries_.find({rail, memory});
  if (it == entries_.end() || it->second.device->gone()) return std::nullopt;
  return it->second.region;
}

std::optional<uint32_t> RegionTable::LocalKey(net::RegionId memory, uint16_t rail) const {
  const auto region = Find(memory, rail);
  return region ? std::optional(region->local_key) : std::nullopt;
}

std::optional<uint32_t> RegionTable::RemoteKey(net::RegionId memory, uint16_t rail) const {
  const auto region = Find(memory, rail);
  return region ? std::optional(region->remote_key) : std::nullopt;
}

int RegionTable::RevokeAll(uint16_t rail) {
  std::vector<std::pair<Key, Entry>> all;
  std::vector<std::pair<uint16_t, Entry>> undead;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [key, entry] : entries_)
      if (key.first == rail) all.emplace_back(key, entry);
    undead.swap(undead_);
  }
  int result = 0;
  for (const auto& [key, entry] : all) {
    if (!End(entry)) {
      result = EBUSY;
      continue;
    }
    const std::lock_guard lock(mutex_);
    const auto it = entries_.find(key);
    if (it != entries_.end() && it->second.region.id == entry.region.id) entries_.erase(it);
  }
  for (auto& one : undead) {
    if (one.first == rail && End(one.second)) continue;
    if (one.first == rail) result = EBUSY;
    const std::lock_guard lock(mutex_);
    undead_.push_back(std::move(one));
  }
  return result;
}

size_t RegionTable::size() const {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace r2cc::net::verbs
