// An AllReduce of a core, then an exchange with members outside it.
#include <algorithm>
#include <utility>

#include "base/core/check.h"
#include "plan/schedule/cost.h"
#include "plan/schedule/parts.h"
#include "plan/schedule/shares.h"

namespace r2cc::plan {
namespace {

// Two binary trees over the core's servers, laid out as heaps: the first from the first server down, the second from the last one up, so
// that a member with children in one is (but for the middle) a leaf in the other, and each server's port carries the vector about once.
// Inside a server the bytes go from member to member. Even blocks go down the first tree, odd ones down the second.
//
// Lanes of a core member: 0 the ring; 1, 2, 3 the first tree: to the first child (and from the parent), to the second, to the next member
// of the server; 4, 5, 6 the second tree; 7+g for chain g: a root receives contributions there, a leaf sends sums.
// Lanes of a chain's member: 0 contributions, 1 sums.
class Partial final : public Schedule {
 public:
  Partial(uint32_t core, uint32_t per_server, std::vector<uint32_t> chain_lengths, uint64_t bytes, uint32_t chunks)
      : ring_{core}, per_server_(per_server), shares_(bytes, R2ccPieces(core, chunks)), blocks_(R2ccPieces(core, chunks)), chunks_(chunks) {
    R2CC_CHECK(core >= 2 && chunks >= 1 && per_server >= 1 && core % per_server == 0);
    for (const uint32_t length : chain_lengths) {
      R2CC_CHECK(length >= 1);
      chain_first_.push_back(core + static_cast<uint32_t>(chain_of_.size()));
      chain_of_.insert(chain_of_.end(), length, static_cast<uint32_t>(chain_first_.size()) - 1);
    }
    chain_first_.push_back(members());
    // A chunk is whole before any of it comes back: its last piece comes first.
    for (uint32_t chunk = 0, first = 0; chunk < chunks; ++chunk) {
      const auto end = static_cast<uint32_t>(uint64_t{blocks_} * (chunk + 1) / chunks);
      for (uint32_t block = end; block > first;) {
        back_.push_back(--block);
        back_in_tree_[block % 2].push_back(block);
      }
      first = end;
    }
  }

  std::string name() const override { return "partial K=" + std::to_string(chunks_); }
  uint32_t members() const override { return ring_.n + static_cast<uint32_t>(chain_of_.size()); }
  uint32_t blocks() const override { return blocks_; }
  Range RangeOf(uint32_t first, uint32_t count) const override { return shares_.RangeOf(first, count); }
  uint32_t Lanes(uint32_t member) const override { return member < ring_.n ? kChainLane + Chains() : 2; }

  uint32_t Sends(uint32_t member, uint32_t lane) const override {
    if (member >= ring_.n) return lane == 0 || member + 1 < ChainEnd(member) ? blocks_ : 0;
    if (lane == 0) return RingSteps(ring_, Collective::kAllReduce);
    if (lane < kChainLane) return Child(member, TreeOf(lane), WhichOf(lane)) < ring_.n ? InTree(TreeOf(lane)) : 0;
    return Returns(member, lane - kChainLane, 0) * InTree(0) + Returns(member, lane - kChainLane, 1) * InTree(1);
  }
  uint32_t Receives(uint32_t member, uint32_t lane) const override {
    if (member >= ring_.n) return lane == 1 || member > ChainBegin(member) ? blocks_ : 0;
    if (lane == 0) return RingSteps(ring_, Collective::kAllReduce);
    if (lane < kChainLane) return WhichOf(lane) == 0 && Place(member, TreeOf(lane)) != 0 ? InTree(TreeOf(lane)) : 0;
    for (uint32_t tree = 0; tree < 2; ++tree)
      if (Place(member, tree) == 0) return InTree(tree);
    return 0;
  }

  Step Send(uint32_t member, uint32_t lane, uint32_t index) const override {
    if (member >= ring_.n) return ChainSend(member, lane, index);
    if (lane == 0) return InRing(RingSend(ring_, member, index, Collective::kAllReduce), Around(member, 1, ring_.n));
    Step step{.kind = StepKind::kSend};
    uint32_t tree = 0;
    if (lane < kChainLane) {
      tree = TreeOf(lane);
      step.block = 2 * index + tree;
      step.peer = Child(member, tree, WhichOf(lane));
      step.peer_lane = LaneOf(tree, 0);
    } else {
      const bool first = Returns(member, lane - kChainLane, 0);
      const bool both = first && Returns(member, lane - kChainLane, 1);
      step.block = both ? back_[index] : back_in_tree_[!first][index];
      tree = step.block % 2;
      step.peer = chain_first_[lane - kChainLane];
      step.peer_lane = 1;
    }
    step.after_receives = ring_.AllReceives(member, ChunkOf(step.block)) + (Place(member, tree) == 0 ? Chains() : 1);
    return step;
  }
  Step Receive(uint32_t member, uint32_t lane, uint32_t index) const override {
    if (member >= ring_.n) return ChainReceive(member, lane, index);
    if (lane == 0) return InRing(RingReceive(ring_, member, index, Collective::kAllReduce), Around(member, -1, ring_.n));
    Step step;
    uint32_t tree = 0;
    if (lane < kChainLane) {
      tree = TreeOf(lane);
      const uint32_t place = Place(member, tree);
      const uint32_t server = place / per_server_;
      const bool inside = place % per_server_ > 0;
      step.kind = StepKind::kReceive;
      step.peer = Core(inside ? place - 1 : (server - 1) / 2 * per_server_, tree);
      step.peer_lane = LaneOf(tree, inside ? 2 : (server - 1) % 2);
    } else {
      tree = Place(member, 0) == 0 ? 0 : 1;
      step.kind = StepKind::kReceiveReduce;
      step.peer = chain_first_[lane - kChainLane + 1] - 1;
      step.peer_lane = 0;
    }
    step.block = 2 * index + tree;
    step.after_receives = ring_.AllReceives(member, ChunkOf(step.block));
    step.after_sends = ring_.AllSends(member, ChunkOf(step.block));
    return step;
  }
  // A degraded member's port is what everybody waits for in the end, so it must never idle: the exchange takes what the rings leave of
  // it, and the trees through the core take what the exchange leaves of theirs.
  double Weight(uint32_t member, uint32_t lane) const override {
    if (member < ring_.n && lane == 0) return 1;
    return member >= ring_.n || lane >= kChainLane ? 1e-3 : 1e-6;
  }

 private:
  static constexpr uint32_t kChainLane = 7;

  uint32_t Chains() const { return static_cast<uint32_t>(chain_first_.size()) - 1; }
  uint32_t ChainBegin(uint32_t member) const { return chain_first_[chain_of_[member - ring_.n]]; }
  uint32_t ChainEnd(uint32_t member) const { return chain_first_[chain_of_[member - ring_.n] + 1]; }
  // A tree's lane to a core member's first or second child or to the next member of its server.
  static uint32_t LaneOf(uint32_t tree, uint32_t which) { return 1 + 3 * tree + which; }
  static uint32_t TreeOf(uint32_t lane) { return (lane - 1) / 3; }
  static uint32_t WhichOf(uint32_t lane) { return (lane - 1) % 3; }
  uint32_t InTree(uint32_t tree) const { return (blocks_ + 1 - tree) / 2; }
  uint32_t ChunkOf(uint32_t block) const { return block / (blocks_ / ring_.n); }

  // Core member <-> place in a tree: servers in the heap's order, each server's members in a row.
  uint32_t Place(uint32_t member, uint32_t tree) const { return tree == 0 ? member : ring_.n - 1 - member; }
  uint32_t Core(uint32_t place, uint32_t tree) const { return Place(place, tree); }
  // ring_.n or more if there is none.
  uint32_t Child(uint32_t member, uint32_t tree, uint32_t which) const {
    const uint32_t place = Place(member, tree);
    if (which == 2) return (place + 1) % per_server_ != 0 ? Core(place + 1, tree) : ring_.n;
    const uint32_t child = (2 * (place / per_server_) + 1 + which) * per_server_;
    return place % per_server_ == 0 && child < ring_.n ? Core(child, tree) : ring_.n;
  }
  // The member that sends chain g the sums of a tree's blocks: the last member of a leaf; for the first chain, of that with the fewest
  // children in the other tree.
  uint32_t Returner(uint32_t g, uint32_t tree) const {
    const uint32_t servers = ring_.n / per_server_;
    return Core((servers / 2 + g % (servers - servers / 2)) * per_server_ + per_server_ - 1, tree);
  }
  bool Returns(uint32_t member, uint32_t g, uint32_t tree) const { return Returner(g, tree) == member; }

  Step InRing(Step step, uint32_t peer) const {
    const uint32_t per_chunk = blocks_ / ring_.n;
    step.peer = peer;
    step.block *= per_chunk;
    step.blocks = per_chunk;
    return step;
  }

  Step ChainSend(uint32_t member, uint32_t lane, uint32_t index) const {
    const bool first = member == ChainBegin(member);
    const bool last = member + 1 == ChainEnd(member);
    Step step{.kind = StepKind::kSend, .peer = member + 1, .peer_lane = lane, .block = lane == 0 ? index : back_[index]};
    if (lane == 0 && last) {
      step.peer = Core(0, index % 2);
      step.peer_lane = kChainLane + chain_of_[member - ring_.n];
    }
    step.after_receives = (first ? 0 : 1) + lane;
    return step;
  }
  Step ChainReceive(uint32_t member, uint32_t lane, uint32_t index) const {
    const bool first = member == ChainBegin(member);
    const uint32_t g = chain_of_[member - ring_.n];
    Step step{.kind = lane == 0 ? StepKind::kReceiveReduce : StepKind::kReceive,
              .peer = member - 1,
              .peer_lane = lane,
              .block = lane == 0 ? index : back_[index]};
    if (lane == 1 && first) {
      step.peer = Returner(g, step.block % 2);
      step.peer_lane = kChainLane + g;
    }
    if (lane == 1) {
      step.after_receives = first ? 0 : 1;
      step.after_sends = 1;
    }
    return step;
  }

  RingWalk ring_;
  uint32_t per_server_;
  Shares shares_;
  uint32_t blocks_;
  uint32_t chunks_;
  std::vector<uint32_t> back_;             // blocks in the order in which their sums come back to the chains
  std::vector<uint32_t> back_in_tree_[2];  // of them, those of each tree
  std::vector<uint32_t> chain_of_;         // by member, from the core's end on
  std::vector<uint32_t> chain_first_;      // and one more: the number of members
};

}  // namespace

std::unique_ptr<Schedule> MakePartial(uint32_t core, uint32_t per_server, std::vector<uint32_t> chain_lengths, uint64_t bytes,
                                      uint32_t chunks) {
  return std::make_unique<Partial>(core, per_server, std::move(chain_lengths), bytes, chunks);
}

}  // namespace r2cc::plan
