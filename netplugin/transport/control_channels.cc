#include "netplugin/transport/control_channels.h"

#include <algorithm>

namespace r2cc::net {

void ControlChannels::Flush(FunctionRef<void(Lane)> broken) {
  if (!std::exchange(queued_, false)) return;
  if (!oob_->Flush()) broken(kOobLane);
  for (size_t link = 0; link < links_.size(); ++link)
    if (links_[link] != nullptr && !links_[link]->Flush()) broken(static_cast<Lane>(link));
}

bool ControlChannels::flushed() const {
  return oob_->flushed() && std::all_of(links_.begin(), links_.end(), [](const Link* link) { return link == nullptr || link->flushed(); });
}

void ControlChannels::HalfClose() {
  oob_->HalfClose();
  for (Link* const link : links_)
    if (link != nullptr) link->HalfClose();
}

}  // namespace r2cc::net
