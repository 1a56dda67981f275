#include "netplugin/transport/control_channels.h"

#include <algorithm>
#include <utility>

namespace r2cc::net {

void ControlChannels::Flush(FunctionRef<void(ChannelId)> broken) {
  if (!std::exchange(queued_, false)) return;
  for (size_t i = 0; i < channels_.size(); ++i)
    if (channels_[i] != nullptr && !channels_[i]->Flush()) broken(kOobChannel + static_cast<ChannelId>(i));
}

bool ControlChannels::flushed(FunctionRef<bool(ChannelId)> up) const {
  bool all = true;
  for (size_t i = 0; i < channels_.size(); ++i) {
    if (channels_[i] == nullptr) continue;
    const bool flushed = channels_[i]->flushed();
    if (flushed && up(kOobChannel + static_cast<ChannelId>(i))) return true;
    all &= flushed;
  }
  return all;
}

void ControlChannels::HalfClose() {
  for (ControlChannel* const channel : channels_)
    if (channel != nullptr) channel->HalfClose();
}

}  // namespace r2cc::net
