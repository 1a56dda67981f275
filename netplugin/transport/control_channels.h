// Holds the control channels of one peer: the out-of-band one and that of each link. With the peer's lock.
#ifndef R2CC_NETPLUGIN_TRANSPORT_CONTROL_CHANNELS_H_
#define R2CC_NETPLUGIN_TRANSPORT_CONTROL_CHANNELS_H_

#include <vector>

#include "base/core/function_ref.h"
#include "netplugin/link/action.h"
#include "netplugin/transport/links.h"

namespace r2cc::net {

class ControlChannels {
 public:
  // The channel must outlive this.
  explicit ControlChannels(ControlChannel* oob) : channels_{oob} {}
  void Resize(size_t links) { channels_.resize(IndexOf(static_cast<ChannelId>(links))); }
  // Null: the link has none.
  void Set(LinkId link, ControlChannel* channel) { channels_[IndexOf(link)] = channel; }

  // For the next Flush().
  void Queue(ChannelId id, const Frame& frame) {
    queued_ = true;
    if (ControlChannel* const channel = channels_[IndexOf(id)]; channel != nullptr) channel->Queue(frame);
  }
  bool queued() const { return queued_; }
  // False if the link has no channel.
  bool Poll(LinkId link) {
    ControlChannel* const channel = channels_[IndexOf(link)];
    if (channel != nullptr) channel->Poll();
    return channel != nullptr;
  }
  // Calls `broken` for each broken channel.
  void Flush(FunctionRef<void(ChannelId)> broken);
  // The kernel has all queued frames, or at least those of one channel that is `up`: a peer that still asks gets its answer there. A
  // connection that loses nearly all packets may have kept copies of a frame for as long as its peer was stopped.
  bool flushed(FunctionRef<bool(ChannelId)> up) const;
  void HalfClose();

 private:
  static size_t IndexOf(ChannelId id) { return static_cast<size_t>(id - kOobChannel); }

  std::vector<ControlChannel*> channels_;  // by channel
  bool queued_ = false;                    // some channel may have queued frames
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_CONTROL_CHANNELS_H_
