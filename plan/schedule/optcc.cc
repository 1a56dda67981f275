// OptCC's four stages and four patterns.
#include <numeric>
#include <utility>

#include "base/core/check.h"
#include "plan/schedule/generators.h"
#include "plan/schedule/parts.h"
#include "plan/schedule/shares.h"

namespace r2cc::plan {
namespace {

// Stages: S1 reduces a segment on the ring of the healthy members, S2 brings the owners' sums of its sections to the degraded member,
// S3 brings what that one has to the healthy ones, S4 gathers on the ring.
//   inside (patterns A, C): S1 S2 S3 S4. The degraded member adds its own to the owners' sums and sends the total back.
//   around (patterns B, D): S3 S1 S4 S2. Its raw section enters where the section's chain begins; the total comes to it last.
// Patterns of either kind take turns, so that both directions of the degraded member's port are busy while the ring works for another
// segment. Time to the right, a unit being what the ring needs for S1 or S4 when b is at the crossing; four segments make a group:
//
//   port out (S3)  B--- D--- A--- C---
//   ring           A1 C1 B1 B4 D1 D4 A4 .. C4 ..        .. : S1 of the next group's A and C
//   port in (S2)      A--- C--- B--- D---
//
// Members 0..h-1 are healthy, h is the degraded one. Lanes of a healthy member: 0 the ring, 1 the exchange. Lane i of the degraded one
// is for member i.
class Staged final : public Schedule {
 public:
  Staged(uint32_t healthy, uint64_t bytes, uint32_t segments) : ring_{healthy}, segments_(segments), shares_(bytes, segments * healthy) {
    R2CC_CHECK(healthy >= 2 && segments >= 1);
    around_.resize(segments);
    wheel_.resize(healthy);
    std::iota(wheel_.begin(), wheel_.end(), 0);
    const auto group = [&](uint32_t first) {
      const uint32_t left = segments - first;
      Group g{first, first, first, first, left > 4 ? 4 : left};
      if (g.size >= 2) g.b = first + (g.size >= 3 ? 2 : 1);
      if (g.size >= 3) g.c = first + 1;
      if (g.size >= 4) g.d = first + 3;
      return g;
    };
    const auto ring_work = [&](uint32_t segment, Collective half) { ring_order_.push_back({segment, half}); };
    const auto begin_inside = [&](uint32_t first, bool second) {  // S1 of A or C
      if (first >= segments) return;
      const Group g = group(first);
      if (!second) ring_work(g.a, Collective::kReduceScatter);
      if (second && g.size >= 3) ring_work(g.c, Collective::kReduceScatter);
    };
    begin_inside(0, false);
    begin_inside(0, true);
    for (uint32_t first = 0; first < segments; first += 4) {
      const Group g = group(first);
      for (const auto& [segment, size] : {std::pair{g.b, 2U}, std::pair{g.d, 4U}}) {
        if (g.size < size) continue;
        around_[segment] = true;
        ring_work(segment, Collective::kReduceScatter);
        ring_work(segment, Collective::kAllGather);
        out_order_.push_back(segment);
      }
      out_order_.push_back(g.a);
      in_order_.push_back(g.a);
      ring_work(g.a, Collective::kAllGather);
      begin_inside(first + 4, false);
      if (g.size >= 3) {
        out_order_.push_back(g.c);
        in_order_.push_back(g.c);
        ring_work(g.c, Collective::kAllGather);
      }
      begin_inside(first + 4, true);
      if (g.size >= 2) in_order_.push_back(g.b);
      if (g.size >= 4) in_order_.push_back(g.d);
    }
  }

  std::string name() const override { return "optcc k=" + std::to_string(segments_); }
  uint32_t members() const override { return ring_.n + 1; }
  uint32_t blocks() const override { return segments_ * ring_.n; }
  Range RangeOf(uint32_t first, uint32_t count) const override { return shares_.RangeOf(first, count); }
  uint32_t Lanes(uint32_t member) const override { return member == ring_.n ? ring_.n : 2; }
  uint32_t Sends(uint32_t member, uint32_t lane) const override {
    return member < ring_.n && lane == 0 ? 2 * segments_ * (ring_.n - 1) : segments_;
  }
  uint32_t Receives(uint32_t member, uint32_t lane) const override { return Sends(member, lane); }

  Step Send(uint32_t member, uint32_t lane, uint32_t index) const override {
    Step step{.kind = StepKind::kSend};
    if (member < ring_.n && lane == 0) {
      const Work& work = ring_order_[index / (ring_.n - 1)];
      step = RingSend(ring_, member, index % (ring_.n - 1), work.half);
      // The former content of the section: the raw section of the degraded member, or the ring's, or (gathering inside) also the total.
      if (work.half == Collective::kReduceScatter)
        step.after_receives = around_[work.segment] || step.after_receives > 0;
      else if (around_[work.segment])
        step.after_receives = step.block == member ? 1 : 2;
      else
        step.after_receives = step.block == member ? 2 : 1 + (step.block != Around(member, -1, ring_.n));
      step.peer = Around(member, 1, ring_.n);
      return In(step, work.segment);
    }
    if (member < ring_.n) {
      step.block = member;
      step.after_receives = 1;
      return In(Exchange(step, member), in_order_[index]);
    }
    const uint32_t segment = out_order_[index];
    step.block = Entry(lane, segment);
    step.after_receives = !around_[segment];
    return In(Exchange(step, lane, member), segment);
  }

  Step Receive(uint32_t member, uint32_t lane, uint32_t index) const override {
    Step step;
    if (member < ring_.n && lane == 0) {
      const Work& work = ring_order_[index / (ring_.n - 1)];
      step = RingReceive(ring_, member, index % (ring_.n - 1), work.half);
      if (work.half == Collective::kAllGather) {
        step.after_receives = around_[work.segment] || step.block != Around(member, -1, ring_.n);
        step.after_sends = 1;
      }
      step.peer = Around(member, -1, ring_.n);
      return In(step, work.segment);
    }
    if (member < ring_.n) {
      const uint32_t segment = out_order_[index];
      step.kind = around_[segment] ? StepKind::kReceiveReduce : StepKind::kReceive;
      step.block = Entry(member, segment);
      step.after_receives = step.after_sends = !around_[segment];
      return In(Exchange(step, member), segment);
    }
    const uint32_t segment = in_order_[index];
    step.kind = around_[segment] ? StepKind::kReceive : StepKind::kReceiveReduce;
    step.block = lane;
    step.after_sends = around_[segment];
    return In(Exchange(step, lane, member), segment);
  }

  // In proportion to what the lane carries; the exchange has 1/h of each segment each way.
  double Weight(uint32_t member, uint32_t lane) const override {
    const double h = ring_.n;
    return member < ring_.n && lane == 0 ? 2 * (h - 1) / h : 1 / h;
  }
  std::span<const uint32_t> Rotation() const override { return wheel_; }

 private:
  struct Group {
    uint32_t a, b, c, d, size;
  };
  struct Work {
    uint32_t segment;
    Collective half;
  };

  // The section in which the degraded member's bytes come to healthy member i: its own, or the one whose chain begins with it.
  uint32_t Entry(uint32_t i, uint32_t segment) const { return around_[segment] ? Around(i, -1, ring_.n) : i; }
  Step Exchange(Step step, uint32_t healthy) const {
    step.peer = ring_.n;
    step.peer_lane = healthy;
    return step;
  }
  Step Exchange(Step step, uint32_t healthy, uint32_t /*degraded*/) const {
    step.peer = healthy;
    step.peer_lane = 1;
    return step;
  }
  Step In(Step step, uint32_t segment) const {
    step.block += segment * ring_.n;
    return step;
  }

  RingWalk ring_;
  uint32_t segments_;
  Shares shares_;
  std::vector<bool> around_;  // by segment
  std::vector<Work> ring_order_;
  std::vector<uint32_t> out_order_;
  std::vector<uint32_t> in_order_;
  std::vector<uint32_t> wheel_;
};

}  // namespace

std::unique_ptr<Schedule> MakeStaged(uint32_t healthy, uint64_t bytes, uint32_t segments) {
  return std::make_unique<Staged>(healthy, bytes, segments);
}

}  // namespace r2cc::plan
