#include "netplugin/link/announced_regions.h"

#include <utility>

namespace r2cc::net {

uint32_t AnnouncedRegions::GenerationOf(RegionId region) const {
  const auto it = announced_.find(region);
  return it == announced_.end() ? 0 : it->second;
}

void AnnouncedRegions::Use(const std::shared_ptr<const Region>& region, LinkId home, Nanos now) {
  if (GenerationOf(region->id) >= region->generation) return;
  announced_[region->id] = region->generation;
  Announce(region, home, now);
}

bool AnnouncedRegions::Changed(const std::shared_ptr<const Region>& region, Nanos now) {
  const auto it = announced_.find(region->id);
  if (it == announced_.end() || it->second >= region->generation) return false;
  const bool gone = region->keys.empty();
  if (gone)
    announced_.erase(it);
  else
    it->second = region->generation;
  Announce(region, 0, now);
  return !gone;
}

bool AnnouncedRegions::Confirmed(RegionId region, uint32_t generation) {
  control_queue_->AnsweredThrough(FrameType::kRegion, region, generation);
  return generation != Region::kGone && !announced_.contains(region);
}

void AnnouncedRegions::Announce(const std::shared_ptr<const Region>& region, LinkId home, Nanos now) {
  // Who knows these keys need not know those before.
  control_queue_->AnsweredThrough(FrameType::kRegion, region->id, region->generation);
  control_queue_->SendUntilAnswered({FrameType::kRegion, region->id, region->generation}, frames::RegionAnnounced{region}, home, false,
                                    now);
}

}  // namespace r2cc::net
