#include "netplugin/transport/verbs/region_table.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <vector>

#include "netplugin/flow/mutant.h"

namespace r2cc::net::verbs {
namespace {

constexpr uint32_t kAccess = kLocalWrite | kRemoteWrite | kRemoteRead | kRelaxedOrdering;

}  // namespace

int RegionTable::Register(const std::shared_ptr<Domain>& domain, uint16_t rail, const Memory& memory, uint32_t* remote_key,
                          std::string* error) {
  Unregister(memory, rail);
  Entry entry{domain, {}};
  Device* const device = domain->device().get();
  Verbs* const verbs = device->verbs();
  const auto base = reinterpret_cast<uintptr_t>(memory.base);
  bool revoked = false;
  {
    const MutexLock lock(mutex_);
    revoked = domain->revoked();
    if (!revoked) ++registering_[domain.get()];
  }
  int failed = ESTALE;
  if (!revoked && memory.kind == MemoryKind::kDmaBuf)
    failed = verbs->RegisterDmaBuf(domain->id(), memory.dma_buf, memory.dma_buf_offset, memory.bytes, base, kAccess, &entry.region);
  else if (!revoked)
    failed = verbs->Register(domain->id(), memory.base, memory.bytes, kAccess, &entry.region);
  if (!revoked) {
    const MutexLock lock(mutex_);
    if (--registering_[domain.get()] == 0) registering_.erase(domain.get());
    if (failed == 0 && domain->revoked()) {
      failed = ESTALE;
      undead_.push_back(std::move(entry));
    } else if (failed == 0) {
      *remote_key = entry.region.remote_key;
      entries_[{rail, memory.id}] = std::move(entry);
    }
  }
  if (failed != 0)
    *error = "R2CC: the RDMA device " + device->info().name + " cannot register " + std::to_string(memory.bytes) +
             " bytes: " + std::strerror(failed) + LockedMemoryAdvice(failed);
  return failed;
}

void RegionTable::Unregister(const Memory& memory, uint16_t rail) {
  Entry entry;
  {
    const MutexLock lock(mutex_);
    auto taken = entries_.extract({rail, memory.id});
    if (taken.empty()) return;
    entry = std::move(taken.mapped());
  }
  if (End(entry)) return;
  const MutexLock lock(mutex_);
  undead_.push_back(std::move(entry));
}

// An error is no proof that the device is gone.
bool RegionTable::End(const Entry& entry) {
  Device* const device = entry.domain->device().get();
  return device->verbs()->Deregister(entry.region.id) == 0 || device->IsGone();
}

std::optional<MemoryRegion> RegionTable::Find(net::RegionId memory, uint16_t rail) const {
  const MutexLock lock(mutex_);
  const auto it = entries_.find({rail, memory});
  if (it == entries_.end() || it->second.domain->device()->lost()) return std::nullopt;
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

// Whoever ends a region takes it out first, with the lock: libibverbs frees what it deregisters, and must not be asked twice.
int RegionTable::RevokeAll(Domain* domain) {
  std::vector<Entry> taken;
  int result = 0;
  {
    const MutexLock lock(mutex_);
    if (!IsActive(Mutant::kSameDomain)) domain->Revoke();
    if (registering_.contains(domain)) result = EBUSY;
    const auto of = [domain](const Entry& entry) { return entry.domain.get() == domain; };
    for (auto it = entries_.begin(); it != entries_.end();)
      if (of(it->second)) {
        taken.push_back(std::move(it->second));
        it = entries_.erase(it);
      } else {
        ++it;
      }
    const auto undead = std::stable_partition(undead_.begin(), undead_.end(), [&](const Entry& entry) { return !of(entry); });
    std::move(undead, undead_.end(), std::back_inserter(taken));
    undead_.erase(undead, undead_.end());
  }
  for (Entry& entry : taken) {
    if (End(entry)) continue;
    result = EBUSY;
    const MutexLock lock(mutex_);
    undead_.push_back(std::move(entry));
  }
  return result;
}

size_t RegionTable::size() const {
  const MutexLock lock(mutex_);
  return entries_.size();
}

}  // namespace r2cc::net::verbs
