// Owner shares sent straight: the schedule that meets the lower bound for any bandwidths.
#include <algorithm>
#include <map>
#include <utility>

#include "base/core/check.h"
#include "plan/schedule/generators.h"
#include "plan/schedule/parts.h"
#include "plan/schedule/shares.h"

namespace r2cc::plan {
namespace {

// Blocks are of members that own something. A member that owns nothing is sent nothing to add up and has no sums to send: two such members
// need no path between them.
//
// Members that are alike form a wheel, so that the schedule has a rotation. Lanes of the i-th of n on the wheel: lane o-1 sends to the
// member o places on and receives from the one o places back; lane n-1+s is for the s-th member outside the wheel. Lanes of the s-th
// outside: lane i for the i-th on the wheel, lane n+r for the r-th outside (that of itself stays empty).
class Direct final : public Schedule {
 public:
  Direct(Collective collective, uint64_t bytes, uint32_t segments, std::span<const double> shares, std::span<const double> like)
      : collective_(collective), segments_(segments), shares_(bytes, segments, Owned(shares)), share_(shares.begin(), shares.end()) {
    R2CC_CHECK(shares.size() >= 2 && (like.empty() || like.size() == shares.size()));
    for (uint32_t i = 0; i < shares.size(); ++i) {
      piece_.push_back(static_cast<uint32_t>(owners_.size()));
      if (shares[i] > 0) owners_.push_back(i);
    }
    std::map<std::pair<double, double>, std::vector<uint32_t>> alike;
    for (uint32_t i = 0; i < shares.size(); ++i) alike[{shares[i], like.empty() ? shares[i] : like[i]}].push_back(i);
    const auto most =
        std::max_element(alike.begin(), alike.end(), [](const auto& a, const auto& b) { return a.second.size() < b.second.size(); });
    wheel_ = most->second;
    place_.resize(shares.size());
    on_wheel_.assign(shares.size(), false);
    for (uint32_t i = 0; i < wheel_.size(); ++i) {
      place_[wheel_[i]] = i;
      on_wheel_[wheel_[i]] = true;
    }
    for (uint32_t i = 0; i < shares.size(); ++i) {
      if (on_wheel_[i]) continue;
      place_[i] = static_cast<uint32_t>(outside_wheel_.size());
      outside_wheel_.push_back(i);
    }
  }

  std::string name() const override { return "direct k=" + std::to_string(segments_); }
  Collective collective() const override { return collective_; }
  uint32_t members() const override { return static_cast<uint32_t>(share_.size()); }
  uint32_t blocks() const override { return Owners() * segments_; }
  Range RangeOf(uint32_t first, uint32_t count) const override { return shares_.RangeOf(first, count); }
  uint32_t OwnerOf(uint32_t block) const override { return owners_[block % Owners()]; }
  uint32_t Lanes(uint32_t member) const override { return on_wheel_[member] ? members() - 1 : members(); }
  uint32_t Sends(uint32_t member, uint32_t lane) const override {
    return Used(member, lane) ? HalvesOf(member, To(member, lane, 1).peer) * segments_ : 0;
  }
  uint32_t Receives(uint32_t member, uint32_t lane) const override {
    return Used(member, lane) ? HalvesOf(To(member, lane, -1).peer, member) * segments_ : 0;
  }

  Step Send(uint32_t member, uint32_t lane, uint32_t index) const override {
    Step step = To(member, lane, 1);
    const auto [gathers, segment] = Turn(member, step.peer, index);
    step.kind = StepKind::kSend;
    step.block = segment * Owners() + piece_[gathers ? member : step.peer];
    step.after_receives = gathers && collective_ == Collective::kAllReduce ? members() - 1 : 0;
    return step;
  }
  Step Receive(uint32_t member, uint32_t lane, uint32_t index) const override {
    Step step = To(member, lane, -1);
    const auto [gathers, segment] = Turn(step.peer, member, index);
    step.kind = gathers ? StepKind::kReceive : StepKind::kReceiveReduce;
    step.block = segment * Owners() + piece_[gathers ? step.peer : member];
    step.after_sends = gathers && collective_ == Collective::kAllReduce;
    return step;
  }

  // In proportion to what the lane carries, so that a slot's transfers end together and no port idles.
  double Weight(uint32_t member, uint32_t lane) const override {
    constexpr double kNothingToSend = 1e-9;  // neither end owns anything: no transfers
    return std::max(kNothingToSend, share_[member] + share_[To(member, lane, 1).peer]);
  }
  std::span<const uint32_t> Rotation() const override { return wheel_; }

 private:
  static std::vector<double> Owned(std::span<const double> shares) {
    std::vector<double> owned(shares.begin(), shares.end());
    std::erase(owned, 0);
    return owned;
  }
  uint32_t Owners() const { return static_cast<uint32_t>(owners_.size()); }
  // The transfers of one member to another, for each segment: what that one adds up, the sum that this one has, both or neither.
  bool Reduces(uint32_t to) const { return collective_ != Collective::kAllGather && share_[to] > 0; }
  bool Gathers(uint32_t from) const { return collective_ != Collective::kReduceScatter && share_[from] > 0; }
  uint32_t HalvesOf(uint32_t from, uint32_t to) const { return uint32_t{Reduces(to)} + uint32_t{Gathers(from)}; }
  uint32_t Wheel() const { return static_cast<uint32_t>(wheel_.size()); }
  bool Used(uint32_t member, uint32_t lane) const { return on_wheel_[member] || lane != Wheel() + place_[member]; }

  // The other end of a lane: where it sends (towards 1) or from where it receives (-1).
  Step To(uint32_t member, uint32_t lane, int64_t towards) const {
    const uint32_t n = Wheel();
    Step step;
    if (!on_wheel_[member]) {
      step.peer = lane < n ? wheel_[lane] : outside_wheel_[lane - n];
      step.peer_lane = (lane < n ? n - 1 : n) + place_[member];
    } else if (lane >= n - 1) {
      step.peer = outside_wheel_[lane - (n - 1)];
      step.peer_lane = place_[member];
    } else {
      step.peer = wheel_[Around(place_[member], towards * (int64_t{lane} + 1), n)];
      step.peer_lane = lane;
    }
    return step;
  }

  struct TurnOf {
    bool gathers;
    uint32_t segment;
  };
  // reduce 0, reduce 1, gather 0, reduce 2, gather 1, ..., gather k-2, gather k-1.
  TurnOf Turn(uint32_t from, uint32_t to, uint32_t index) const {
    if (HalvesOf(from, to) == 1) return {Gathers(from), index};
    if (index == 0) return {false, 0};
    if (index == 2 * segments_ - 1) return {true, segments_ - 1};
    return index % 2 == 1 ? TurnOf{false, (index + 1) / 2} : TurnOf{true, index / 2 - 1};
  }

  Collective collective_;
  uint32_t segments_;
  Shares shares_;
  std::vector<double> share_;
  std::vector<uint32_t> owners_;
  std::vector<uint32_t> piece_;  // of each segment, by owner
  std::vector<uint32_t> wheel_;
  std::vector<uint32_t> outside_wheel_;
  std::vector<uint32_t> place_;  // of each member on the wheel, or outside it
  std::vector<bool> on_wheel_;
};

}  // namespace

std::unique_ptr<Schedule> MakeDirect(Collective collective, uint64_t bytes, uint32_t segments, std::span<const double> shares,
                                     std::span<const double> like) {
  return std::make_unique<Direct>(collective, bytes, segments, shares, like);
}

}  // namespace r2cc::plan
