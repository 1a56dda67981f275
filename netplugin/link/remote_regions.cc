#include "netplugin/link/remote_regions.h"

#include "netplugin/flow/mutant.h"

namespace r2cc::net {

void RemoteRegions::SetLink(LinkId link, uint16_t local_rail, uint16_t remote_rail, TransportKind kind) {
  if (link >= ways_.size()) ways_.resize(size_t{link} + 1);
  ways_[link] = Way{local_rail, remote_rail, kind};
}

bool RemoteRegions::Announced(const std::shared_ptr<const Region>& region) {
  const auto it = regions_.find(region->id);
  if (it == regions_.end()) {
    if (region->keys.empty()) return true;
    if (region->keys.size() != rails_ || regions_.size() >= kRegionsMax) return false;
    regions_.emplace(region->id, region);
    return true;
  }
  const Region& known = *it->second;
  if (region->generation < known.generation) return true;
  if (region->generation == known.generation) return *region == known;
  if (region->keys.empty()) {
    if (!IsActive(Mutant::kRegionKept)) regions_.erase(it);
    return true;
  }
  if (region->keys.size() != rails_ || region->base != known.base || region->bytes != known.bytes) return false;
  auto next = std::make_shared<Region>(*region);
  if (IsActive(Mutant::kKeyStale)) next->keys = known.keys;
  it->second = std::move(next);
  return true;
}

RemoteRegions::Known RemoteRegions::Judge(const BufferPlace& place, uint64_t capacity_bytes) const {
  if (place.region == 0) return Known::kYes;
  const Region* const region = Find(place.region);
  if (region == nullptr || region->generation < place.generation) return Known::kNotYet;
  return place.offset <= region->bytes && capacity_bytes <= region->bytes - place.offset ? Known::kYes : Known::kNever;
}

const Endpoint* RemoteRegions::KeyOf(RegionId id, LinkId link) const {
  const Region* const region = Find(id);
  if (region == nullptr || link >= ways_.size() || !ways_[link].has_value()) return nullptr;
  for (const RailEndpoint& key : region->keys[ways_[link]->rail])
    if (key.transport == ways_[link]->kind) return &key.bytes;
  return nullptr;
}

const Region* RemoteRegions::Find(RegionId id) const {
  const auto it = regions_.find(id);
  return it == regions_.end() ? nullptr : it->second.get();
}

}  // namespace r2cc::net
