// Sends control frames to the peer on the channels that are there, and repeats them until they are answered. Pure: frames leave as actions.
#ifndef R2CC_NETPLUGIN_LINK_CONTROL_QUEUE_H_
#define R2CC_NETPLUGIN_LINK_CONTROL_QUEUE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <tuple>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/flow/flow_report.h"
#include "netplugin/link/action.h"

namespace r2cc::net {

class ControlQueue final : public FlowReportSink {
 public:
  // Frames become kSend actions in `*actions`.
  explicit ControlQueue(std::vector<SessionAction>* actions) : actions_(actions) {}

  void set_links(size_t links) { links_.resize(links, ChannelState::kDown); }

  // Frames may be sent on it; no evidence yet that the peer receives them.
  void Open(ChannelId channel) { StateOf(channel) = ChannelState::kOpen; }
  // A frame came over it that the peer sends only after it has received ours there. At an acceptor the out-of-band channel, its last
  // choice, is up when the peer has greeted it.
  void Up(ChannelId channel) { StateOf(channel) = ChannelState::kUp; }
  void Down(ChannelId channel) { StateOf(channel) = ChannelState::kDown; }
  // Open or up.
  bool open(ChannelId channel) const { return StateOf(channel) != ChannelState::kDown; }
  bool up(ChannelId channel) const { return StateOf(channel) == ChannelState::kUp; }
  bool any_open() const;

  // Frames may be of any size: what does not fit into one packet leaves in parts.
  void Send(ChannelId channel, const Frame& frame);
  // On the channel of link `home` if that is up, then on another link's, then out of band. If none is up, on one that is only open. False
  // if there is no channel.
  bool SendBest(const Frame& frame, LinkId home);
  // Sends it as a grant or an acknowledgement, on the best channel.
  bool Report(FlowReport report, LinkId home) override;
  // On every channel that is open. False if there is none.
  bool SendAll(const Frame& frame);

  // The subject of the frame, which its answer also names: a flow, an incarnation of a link, or a generation of a region.
  using Key = std::tuple<FrameType, uint32_t, Incarnation>;  // flow or link; 0 for flows
  // Sends `frame` on the best channel, or on all, and again on all of them whenever a channel is lost or kResendAfter has passed, until
  // Answered(): the best channel may have died without notice.
  void SendUntilAnswered(const Key& key, Frame frame, LinkId home, bool all_channels, Nanos now);
  void Answered(const Key& key) { kept_.erase(key); }
  // Also answers for all earlier incarnations of the link, or generations of the region.
  void AnsweredThrough(FrameType type, uint32_t about, Incarnation incarnation);
  // Sends the kept frames of the type on this channel, too.
  void Repeat(FrameType type, ChannelId channel);
  void Forget() { kept_.clear(); }
  bool idle() const { return kept_.empty(); }

  void Resend(Nanos now);
  // Sends again what is due; `refresh` may bring a frame up to date before it goes.
  void Tick(Nanos now, const std::function<void(const Key&, Frame*)>& refresh = {});

 private:
  struct Kept {
    Frame frame;
    LinkId home = 0;
    bool all_channels = false;
    Nanos sent = 0;  // 0: not sent yet
  };

  enum class ChannelState : uint8_t { kDown, kOpen, kUp };

  ChannelState& StateOf(ChannelId channel) { return channel == kOobChannel ? oob_ : links_.at(static_cast<size_t>(channel)); }
  ChannelState StateOf(ChannelId channel) const { return channel == kOobChannel ? oob_ : links_.at(static_cast<size_t>(channel)); }
  void Put(ChannelId channel, Frame frame);
  bool SendOnLink(const Frame& frame, LinkId home, ChannelState least);
  void Send(Kept* kept, Nanos now);

  std::vector<SessionAction>* const actions_;
  std::vector<ChannelState> links_;
  ChannelState oob_ = ChannelState::kDown;
  uint64_t answers_ = 0;  // counts kFenced, to distinguish the parts of one from those of others
  std::map<Key, Kept> kept_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_CONTROL_QUEUE_H_
