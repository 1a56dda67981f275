// Brings control frames to the peer on whatever channels there are, and again until they are answered. Pure: frames leave as actions.
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
  explicit ControlQueue(std::vector<Action>* actions) : actions_(actions) {}

  void set_links(size_t links) { links_.resize(links, ChannelState::kDown); }

  // Frames may go on it; whether the peer gets them has not been seen.
  void Open(ChannelId channel) { StateOf(channel) = ChannelState::kOpen; }
  // Something came over it that the peer sends only once it has heard us there. At an acceptor the out-of-band channel, its last choice, is
  // up when it is greeted.
  void Up(ChannelId channel) { StateOf(channel) = ChannelState::kUp; }
  void Down(ChannelId channel) { StateOf(channel) = ChannelState::kDown; }
  // Open or up.
  bool open(ChannelId channel) const { return StateOf(channel) != ChannelState::kDown; }
  bool up(ChannelId channel) const { return StateOf(channel) == ChannelState::kUp; }
  bool any_open() const;

  // Frames may be of any size: what does not fit into one packet leaves in parts.
  void Send(ChannelId channel, const Frame& frame);
  // On the channel of link `home` if it is up, else on another link's, else out of band; on one that is merely open if none is up. False if
  // there is no channel.
  bool SendBest(const Frame& frame, LinkId home);
  // As a grant or an acknowledgement, on the best channel.
  bool Report(FlowReport report, LinkId home) override;
  // On every channel that is open. False if there is none.
  bool SendAll(const Frame& frame);

  // What the frame is about: its answer names the same, a flow, an incarnation of a link, or a generation of a region.
  using Key = std::tuple<FrameType, uint32_t, Incarnation>;  // flow or link; 0 for flows
  // Sends `frame` on the best channel, or on all, and again on all of them whenever a channel went or kResendAfter passed, until
  // Answered(): the channel that was best may have died without a word.
  void SendUntilAnswered(const Key& key, Frame frame, LinkId home, bool all_channels, Nanos now);
  void Answered(const Key& key) { kept_.erase(key); }
  // Also answers for all earlier incarnations of the link, or generations of the region.
  void AnsweredThrough(FrameType type, uint32_t about, Incarnation incarnation);
  // Says on this channel, too, what is kept of the type.
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
    Nanos sent = 0;  // 0: not yet
  };

  enum class ChannelState : uint8_t { kDown, kOpen, kUp };

  ChannelState& StateOf(ChannelId channel) { return channel == kOobChannel ? oob_ : links_.at(static_cast<size_t>(channel)); }
  ChannelState StateOf(ChannelId channel) const { return channel == kOobChannel ? oob_ : links_.at(static_cast<size_t>(channel)); }
  void Put(ChannelId channel, Frame frame);
  bool SendOnLink(const Frame& frame, LinkId home, ChannelState least);
  void Send(Kept* kept, Nanos now);

  std::vector<Action>* const actions_;
  std::vector<ChannelState> links_;
  ChannelState oob_ = ChannelState::kDown;
  uint64_t answers_ = 0;  // counts kFenced, so that the parts of one are told from those of others
  std::map<Key, Kept> kept_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_CONTROL_QUEUE_H_
