// Announces the acceptor's registered memory to its peer: each region once, before or with the first grant that names it, and again when
// its keys have changed. Each announcement is repeated until it is confirmed. Pure: frames leave through the control queue.
#ifndef R2CC_NETPLUGIN_LINK_ANNOUNCED_REGIONS_H_
#define R2CC_NETPLUGIN_LINK_ANNOUNCED_REGIONS_H_

#include <cstdint>
#include <map>
#include <memory>

#include "base/core/clock.h"
#include "netplugin/flow/region_keys.h"
#include "netplugin/link/control_queue.h"

namespace r2cc::net {

class AnnouncedRegions final : public RegionGenerations {
 public:
  explicit AnnouncedRegions(ControlQueue* control_queue) : control_queue_(control_queue) {}

  uint32_t GenerationOf(RegionId region) const override;
  // A flow whose home link is `home` posts a buffer in `region`.
  void Use(const std::shared_ptr<const Region>& region, LinkId home, Nanos now);
  // The region's keys have changed, or it is gone. True: grants that name it have to be repeated.
  bool Changed(const std::shared_ptr<const Region>& region, Nanos now);
  // The peer has the region's keys up to `generation`. True: the region is gone, and the peer has to be told again. A copy of the
  // announcement of its keys may arrive after the news that it is gone, and the peer would keep those keys for ever.
  bool Confirmed(RegionId region, uint32_t generation);

 private:
  void Announce(const std::shared_ptr<const Region>& region, LinkId home, Nanos now);

  ControlQueue* const control_queue_;
  std::map<RegionId, uint32_t> announced_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_ANNOUNCED_REGIONS_H_
