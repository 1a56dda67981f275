#include "plan/page/attach.h"

#include "plan/page/text.h"

namespace r2cc::plan {

bool Valid(const AttachRequest& request) {
  if (request.magic != kAttachMagic || request.rail_count > kAttachRailsMax || !SoundText(request.job) || !SoundText(request.release))
    return false;
  for (uint32_t i = 0; i < request.rail_count; ++i) {
    const AttachRail& rail = request.rails[i];
    if (!SoundText(rail.name) || !SoundText(rail.address) || !SoundText(rail.pci)) return false;
  }
  return true;
}

bool Valid(const AttachReply& reply) {
  if (reply.magic != kAttachMagic || reply.rail_count > kAttachRailsMax) return false;
  if (reply.status > static_cast<uint32_t>(AttachStatus::kWrongVersion)) return false;
  if (!SoundText(reply.node) || !SoundText(reply.reason)) return false;
  for (uint32_t i = 0; i < reply.rail_count; ++i)
    if (!SoundText(reply.nics[i])) return false;
  return true;
}

}  // namespace r2cc::plan
