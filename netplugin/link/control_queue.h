// Brings control frames to the peer on whatever lanes there are, and again until they are answered. Pure: frames leave as actions.
#ifndef R2CC_NETPLUGIN_LINK_COURIER_H_
#define R2CC_NETPLUGIN_LINK_COURIER_H_

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

  void set_links(size_t links) { links_.resize(links, LaneState::kDown); }

  // Frames may go on it; whether the peer gets them has not been seen.
  void Open(Lane lane) { StateOf(lane) = LaneState::kOpen; }
  // Something came over it that the peer sends only once it has heard us there. At an acceptor the out-of-band lane, its last choice, is up
  // when it is greeted.
  void Up(Lane lane) { StateOf(lane) = LaneState::kUp; }
  void Down(Lane lane) { StateOf(lane) = LaneState::kDown; }
  // Open or up.
  bool open(Lane lane) const { return StateOf(lane) != LaneState::kDown; }
  bool up(Lane lane) const { return StateOf(lane) == LaneState::kUp; }
  bool any_open() const;

  // Frames may be of any size: what does not fit into one packet leaves in parts.
  void Send(Lane lane, const Frame& frame);
  // On the lane of link `home` if it is up, else on another link's, else out of band; on one that is merely open if none is up. False if
  // there is no lane.
  bool SendBest(const Frame& frame, LinkId home);
  // As a grant or an acknowledgement, on the best lane.
  bool Report(FlowReport report, LinkId home) override;
  // On every lane that is open. False if there is none.
  bool SendAll(const Frame& frame);

  // What the frame is about: its answer names the same, a flow, an incarnation of a link, or a generation of a region.
  using Key = std::tuple<FrameType, uint32_t, Incarnation>;  // flow or link; 0 for flows
  // Sends `frame` on the best lane, or on all, and again on all of them whenever a lane went or kResendAfter passed, until Answered():
  // the lane that was best may have died without a word.
  void SendUntilAnswered(const Key& key, Frame frame, LinkId home, bool all_lanes, Nanos now);
  void Answered(const Key& key) { kept_.erase(key); }
  // Also answers for all earlier incarnations of the link, or generations of the region.
  void AnsweredThrough(FrameType type, uint32_t about, Incarnation incarnation);
  // Says on this lane, too, what is kept of the type.
  void Repeat(FrameType type, Lane lane);
  void Forget() { kept_.clear(); }
  bool idle() const { return kept_.empty(); }

  void Resend(Nanos now);
  // Sends again what is due; `refresh` may bring a frame up to date before it goes.
  void Tick(Nanos now, const std::function<void(const Key&, Frame*)>& refresh = {});

 private:
  struct Kept {
    Frame frame;
    LinkId home = 0;
    bool all_lanes = false;
    Nanos sent = 0;  // 0: not yet
  };

  enum class LaneState : uint8_t { kDown, kOpen, kUp };

  LaneState& StateOf(Lane lane) { return lane == kOobLane ? oob_ : links_.at(static_cast<size_t>(lane)); }
  LaneState StateOf(Lane lane) const { return lane == kOobLane ? oob_ : links_.at(static_cast<size_t>(lane)); }
  void Put(Lane lane, Frame frame);
  bool SendOnLink(const Frame& frame, LinkId home, LaneState least);
  void Send(Kept* kept, Nanos now);

  std::vector<Action>* const actions_;
  std::vector<LaneState> links_;
  LaneState oob_ = LaneState::kDown;
  uint64_t answers_ = 0;  // counts kFenced, so that the parts of one are told from those of others
  std::map<Key, Kept> kept_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_COURIER_H_
