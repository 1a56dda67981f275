#include "netplugin/transport/control_channels.h"

#include <algorithm>
#include <utility>

namespace r2cc::net {

void ControlChannels::Flush(FunctionRef<void(ChannelId)> broken) {
  if (!std::exchange(queued_, false)) return;
  for (size_t i = 0; i < channels_.size(); ++i)
    if (channels_[i] != nullptr && !channels_[i]->Flush()) broken(kOobChannel + static_cast<ChannelId>(i));
}

bool ControlChannels::flushed() const {
  return std::all_of(channels_.begin(), channels_.end(),
                     [](const ControlChannel* channel) { return channel == nullptr || channel->flushed(); });
}

void ControlChannels::HalfClose() {
  for (ControlChannel* const channel : channels_)
    if (channel != nullptr) channel->HalfClose();
}

}  // namespace r2cc::net
