// Flows share links by their weights: sessions with all links up. With a mutant switched on, the test proves that it sees one.

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "netplugin/flow/mutant.h"
#include "netplugin/link/send_session.h"

namespace r2cc::net {
namespace {

constexpr uint32_t kChunkBytes = 1024;
constexpr size_t kGranted = 2000;  // messages of each flow: more than any test sends

// The sender's end. Its flows always have messages ready, each of so many chunks.
class Sender {
 public:
  explicit Sender(LinkId links, uint32_t chunks_in_a_message = 1)
      : links_(links), data_(chunks_in_a_message * kChunkBytes), session_(Options(links), now_) {
    session_.OobUp("peer", std::vector<RailInfo>(links, RailInfo{.up = true, .endpoints = {{}}}), now_);
    for (auto actions = session_.TakeActions(); !actions.empty(); actions = session_.TakeActions())
      for (const SessionAction& action : actions) {
        if (action.kind == SessionAction::Kind::kOpenLink) session_.link_input().Connected(action.link, action.incarnation, now_);
        if (action.kind == SessionAction::Kind::kProveLink)
          session_.Receive(action.link, frames::Proved{.link = action.link, .incarnation = action.incarnation, .ok = true}, now_);
      }
  }

  FlowId Open(uint16_t rail, double weight) {
    const FlowId flow = session_.OpenFlow(1, rail, now_);
    session_.Receive(kOobChannel, frames::FlowOpened{.flow = flow, .ok = true}, now_);
    EXPECT_TRUE(session_.SetWeight(flow, weight));
    weights_[flow] = weight;
    FlowReport grant{.flow = flow, .grants = true};
    grant.capacities.assign(kGranted, data_.size());
    session_.Receive(kOobChannel, grant, now_);
    for (int i = 0; i < 2; ++i) Post(flow);
    return flow;
  }
  SendSession& session() { return session_; }
  void Lose(LinkId link) {
    session_.LinkTrouble(link, session_.links().incarnation(link), plan::EvidenceCause::kLinkDown, now_);
    EXPECT_TRUE(session_.links().spread());
  }
  // The links pull so many chunks, in turn.
  void Pull(int chunks, std::vector<LinkId> links) {
    for (int i = 0; i < chunks; ++i) {
      const LinkId link = links[static_cast<size_t>(i) % links.size()];
      Chunk chunk;
      ASSERT_TRUE(session_.Pull(link, session_.links().incarnation(link), &chunk, now_));
      bytes_[chunk.flow] += chunk.bytes;
      if (chunk.index == 0) Post(chunk.flow);
      farthest_apart_ = std::max(farthest_apart_, Apart());
    }
  }
  void Forget() {
    bytes_.clear();
    farthest_apart_ = 0;
  }
  uint64_t bytes(FlowId flow) { return bytes_[flow]; }
  // By how much the bytes per weight of two flows ever differed, over what fair queueing allows them: a message each.
  double farthest_apart() const { return farthest_apart_; }

 private:
  static SendSession::Options Options(LinkId links) {
    SendSession::Options options;
    options.local_rails = links;
    options.chunk_base_bytes = kChunkBytes;
    return options;
  }
  void Post(FlowId flow) { session_.Post(flow, data_.data(), data_.size(), now_); }
  double Apart() {
    double apart = 0;
    for (const auto& [a, weight_a] : weights_)
      for (const auto& [b, weight_b] : weights_) {
        const auto message = static_cast<double>(data_.size());
        const double by = static_cast<double>(bytes_[a]) / weight_a - static_cast<double>(bytes_[b]) / weight_b;
        apart = std::max(apart, by / (message / weight_a + message / weight_b));
      }
    return apart;
  }

  const LinkId links_;
  Nanos now_ = kNanosPerSecond;
  std::vector<std::byte> data_;
  SendSession session_;
  std::map<FlowId, double> weights_;
  std::map<FlowId, uint64_t> bytes_;
  double farthest_apart_ = 0;
};

struct FairWeightsTest : testing::Test {
  ~FairWeightsTest() override { mutant = Mutant::kNothing; }
};

TEST_F(FairWeightsTest, FlowsOfOneLinkShareItByTheirWeights) {
  for (const Mutant bug : {Mutant::kNothing, Mutant::kWeightIgnored}) {
    mutant = bug;
    Sender sender(2);
    const FlowId light = sender.Open(0, 1), heavy = sender.Open(0, 3);
    sender.Pull(400, {0});
    if (bug == Mutant::kNothing) {
      EXPECT_EQ(sender.bytes(light), 100u * kChunkBytes);
      EXPECT_EQ(sender.bytes(heavy), 300u * kChunkBytes);
      EXPECT_LE(sender.farthest_apart(), 1);
    } else {
      EXPECT_EQ(sender.bytes(light), sender.bytes(heavy)) << "not mutant";
      EXPECT_GT(sender.farthest_apart(), 1) << "not seen";
    }
  }
}

TEST_F(FairWeightsTest, FlowsShareByWeightWhileChunksAreStriped) {
  for (const Mutant bug : {Mutant::kNothing, Mutant::kWeightIgnored}) {
    mutant = bug;
    constexpr uint32_t kChunksInAMessage = 5;
    Sender sender(3, kChunksInAMessage);
    const FlowId light = sender.Open(0, 1), heavy = sender.Open(1, 3), middle = sender.Open(2, 2);
    sender.Lose(2);
    sender.Pull(600 * kChunksInAMessage, {0, 1});
    if (bug == Mutant::kNothing) {
      EXPECT_LE(sender.farthest_apart(), 1);
      EXPECT_EQ(sender.bytes(light), 100u * kChunksInAMessage * kChunkBytes);
      EXPECT_EQ(sender.bytes(middle), 200u * kChunksInAMessage * kChunkBytes);
      EXPECT_EQ(sender.bytes(heavy), 300u * kChunksInAMessage * kChunkBytes);
    } else {
      EXPECT_GT(sender.farthest_apart(), 1) << "not seen";
    }
  }
}

TEST_F(FairWeightsTest, FlowsShareByWeightIfOneOfThemWantsToBeStriped) {
  Sender sender(2);
  const FlowId light = sender.Open(0, 1), heavy = sender.Open(1, 3);
  sender.session().SetDealt(light, true);
  EXPECT_TRUE(sender.session().links().spread());
  sender.Pull(400, {0, 1});
  EXPECT_EQ(sender.bytes(light), 100u * kChunkBytes);
  EXPECT_EQ(sender.bytes(heavy), 300u * kChunkBytes);
  sender.session().SetDealt(heavy, true);
  sender.session().SetDealt(light, false);
  EXPECT_TRUE(sender.session().links().spread());
  sender.session().CloseFlow(heavy, 0);
  EXPECT_FALSE(sender.session().links().spread()) << "nobody wants it any more";
}

// How much a flow had of its own link says nothing of what it may have of another's.
TEST_F(FairWeightsTest, FlowsThatMeetBecauseALinkIsLostBeginEqual) {
  Sender sender(2);
  const FlowId little = sender.Open(0, 1), much = sender.Open(1, 1);
  sender.Pull(3, {0});
  sender.Pull(1000, {1});
  EXPECT_EQ(sender.bytes(little), 3u * kChunkBytes);
  EXPECT_EQ(sender.bytes(much), 1000u * kChunkBytes);
  sender.Lose(1);
  sender.Forget();
  sender.Pull(100, {0});
  EXPECT_EQ(sender.bytes(little), 50u * kChunkBytes);
  EXPECT_EQ(sender.bytes(much), 50u * kChunkBytes);
  EXPECT_LE(sender.farthest_apart(), 1);
}

}  // namespace
}  // namespace r2cc::net
