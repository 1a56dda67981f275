// Rings: whole, half, several side by side.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "base/core/check.h"
#include "plan/schedule/generators.h"
#include "plan/schedule/parts.h"
#include "plan/schedule/shares.h"

namespace r2cc::plan {

Step RingSend(const RingWalk& ring, uint32_t q, uint32_t t, Collective collective) {
  Step step{.kind = StepKind::kSend};
  const bool both = collective == Collective::kAllReduce;
  const bool gathers = collective == Collective::kAllGather || t >= ring.n - 1;
  if (gathers) {
    if (both) t -= ring.n - 1;
    step.block = ring.GatherSend(q, t);
    // Its own chunk's sum came with the reduction's last step. A later chunk came with gathering, and was reduced here before, but for
    // the one whose chain began here.
    step.after_receives = both ? (t == 0 ? 1 : 1 + (step.block != Around(q, -1, ring.n))) : t != 0;
  } else {
    step.block = ring.ReduceSend(q, t);
    step.after_receives = t != 0;
  }
  return step;
}

Step RingReceive(const RingWalk& ring, uint32_t q, uint32_t t, Collective collective) {
  const bool both = collective == Collective::kAllReduce;
  const bool gathers = collective == Collective::kAllGather || t >= ring.n - 1;
  if (!gathers) return {.kind = StepKind::kReceiveReduce, .block = ring.ReduceReceive(q, t)};
  Step step{.kind = StepKind::kReceive, .block = ring.GatherReceive(q, both ? t - (ring.n - 1) : t)};
  if (both) {
    step.after_receives = step.block != Around(q, -1, ring.n);
    step.after_sends = 1;
  }
  return step;
}

namespace {

class Ring final : public Schedule {
 public:
  Ring(Collective collective, Shares shares, std::vector<uint32_t> order, uint32_t channels)
      : collective_(collective),
        ring_{static_cast<uint32_t>(order.size())},
        channels_(channels),
        shares_(std::move(shares)),
        order_(std::move(order)),
        position_(order_.size(), static_cast<uint32_t>(order_.size())) {
    R2CC_CHECK(ring_.n >= 2 && channels_ >= 1);
    for (uint32_t q = 0; q < ring_.n; ++q) {
      R2CC_CHECK(order_[q] < ring_.n && position_[order_[q]] == ring_.n);
      position_[order_[q]] = q;
    }
  }

  std::string name() const override { return channels_ == 1 ? "ring" : "ring x" + std::to_string(channels_); }
  Collective collective() const override { return collective_; }
  uint32_t members() const override { return ring_.n; }
  uint32_t blocks() const override { return ring_.n * channels_; }
  Range RangeOf(uint32_t first, uint32_t count) const override { return shares_.RangeOf(first, count); }
  uint32_t OwnerOf(uint32_t block) const override { return order_[block % ring_.n]; }
  uint32_t Lanes(uint32_t) const override { return channels_; }
  uint32_t Sends(uint32_t, uint32_t) const override { return RingSteps(ring_, collective_); }
  uint32_t Receives(uint32_t, uint32_t) const override { return RingSteps(ring_, collective_); }
  Step Send(uint32_t member, uint32_t lane, uint32_t index) const override {
    return Placed(RingSend(ring_, position_[member], index, collective_), member, lane, 1);
  }
  Step Receive(uint32_t member, uint32_t lane, uint32_t index) const override {
    return Placed(RingReceive(ring_, position_[member], index, collective_), member, lane, -1);
  }
  std::span<const uint32_t> Rotation() const override {
    return shares_.even() ? std::span<const uint32_t>(order_) : std::span<const uint32_t>();
  }

 private:
  Step Placed(Step step, uint32_t member, uint32_t lane, int64_t towards) const {
    step.peer = order_[Around(position_[member], towards, ring_.n)];
    step.peer_lane = lane;
    step.block += lane * ring_.n;
    return step;
  }

  Collective collective_;
  RingWalk ring_;
  uint32_t channels_;
  Shares shares_;
  std::vector<uint32_t> order_;
  std::vector<uint32_t> position_;
};

}  // namespace

std::unique_ptr<Schedule> MakeRing(uint32_t members, uint64_t bytes, std::vector<uint32_t> order, uint32_t channels) {
  if (order.empty()) {
    order.resize(members);
    std::iota(order.begin(), order.end(), 0);
  }
  R2CC_CHECK(order.size() == members);
  return std::make_unique<Ring>(Collective::kAllReduce, Shares(bytes, channels * members), std::move(order), channels);
}

std::unique_ptr<Schedule> MakeRingHalf(Collective half, uint64_t bytes, std::span<const double> shares) {
  R2CC_CHECK(half != Collective::kAllReduce);
  std::vector<uint32_t> order(shares.size());
  std::iota(order.begin(), order.end(), 0);
  return std::make_unique<Ring>(half, Shares(bytes, 1, shares), std::move(order), 1);
}

}  // namespace r2cc::plan
