// Which flow's chunks a link carries next, and when there is nothing to carry.

#include "netplugin/flow/send_flows.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <limits>
#include <map>
#include <tuple>
#include <vector>

namespace r2cc::net {
namespace {

constexpr PathEpoch kPath = 7;
constexpr uint64_t kBytes = 16;

struct SendFlowsTest : testing::Test {
  SendFlows::Flow* Open() {
    SendFlows::Flow* flow = flows.Open();
    flow->ledger.set_eager_window(kEagerWindow);
    return flow;
  }
  void Post(SendFlows::Flow* flow) {
    flow->ledger.Post(buffer, sizeof(buffer));
    flows.Note(flow);
  }
  // The flow whose message goes next; 0 if there is none.
  FlowId Next() {
    Chunk chunk;
    return flows.Pull(shares, 0, kPath, &chunk, 0) ? chunk.flow : 0;
  }

  // The same, and the message, of one chunk, is placed at once.
  FlowId NextPlaced() {
    Chunk chunk;
    if (!flows.Pull(shares, 0, kPath, &chunk, 0)) return 0;
    EXPECT_TRUE(flows.Find(chunk.flow)->ledger.AckThrough(chunk.message + 1));
    return chunk.flow;
  }

  const std::array<LinkShare, 1> shares{LinkShare{.usable = true, .weight_permille = 1000}};
  SendFlows flows{{.eager_bytes = kBytes}, StripeMode::kBalance};
  char buffer[kBytes] = {};
};

// A communicator that waits for its turn must not slow another one down.
TEST_F(SendFlowsTest, AStripedFlowStripesTheOthersOnlyWhileItSends) {
  SendFlows::Flow* dealt = Open();
  SendFlows::Flow* other = Open();
  flows.SetDealt(dealt->id, true);
  EXPECT_TRUE(flows.wants_all_links());
  EXPECT_FALSE(flows.dealing());
  Post(other);
  EXPECT_FALSE(flows.dealing());
  Post(dealt);
  EXPECT_TRUE(flows.dealing());
  for (int i = 0; i < 2; ++i) EXPECT_NE(NextPlaced(), 0u);
  flows.Change(dealt);
  EXPECT_FALSE(flows.dealing());
  Post(dealt);
  flows.Close(dealt->id);
  EXPECT_FALSE(flows.dealing() || flows.wants_all_links());
}

TEST_F(SendFlowsTest, NothingIsReadyAsSoonAsTheLastChunkIsTaken) {
  SendFlows::Flow* flow = Open();
  EXPECT_FALSE(flows.ready());
  Post(flow);
  Post(flow);
  EXPECT_TRUE(flows.ready());
  EXPECT_EQ(Next(), flow->id);
  EXPECT_TRUE(flows.ready());
  EXPECT_EQ(Next(), flow->id);
  EXPECT_FALSE(flows.ready());
  EXPECT_EQ(Next(), 0u);
  Post(flow);
  EXPECT_TRUE(flows.ready());
  EXPECT_EQ(Next(), flow->id);
}

TEST_F(SendFlowsTest, FlowsTakeTurnsAndWhoHasNothingLeftIsPassedBy) {
  SendFlows::Flow* a = Open();
  SendFlows::Flow* b = Open();
  SendFlows::Flow* c = Open();
  for (SendFlows::Flow* flow : {a, b, b, c, c}) Post(flow);
  EXPECT_EQ(Next(), a->id);
  const FlowId first = Next(), second = Next();
  EXPECT_EQ(first + second, b->id + c->id);
  EXPECT_NE(first, second);
  EXPECT_EQ(Next(), first);
  EXPECT_EQ(Next(), second);
  EXPECT_FALSE(flows.ready());
}

TEST_F(SendFlowsTest, EqualWeightsAreTurns) {
  SendFlows::Flow* a = Open();
  SendFlows::Flow* b = Open();
  SendFlows::Flow* c = Open();
  std::map<FlowId, int> messages;
  for (SendFlows::Flow* flow : {a, b, c})
    for (int i = 0; i < 20; ++i) Post(flow);
  for (int i = 0; i < 60; ++i) {
    ++messages[Next()];
    const auto [least, most] = std::minmax({messages[a->id], messages[b->id], messages[c->id]});
    EXPECT_LE(most - least, 1) << i;
  }
}

TEST_F(SendFlowsTest, FlowsShareByTheirWeights) {
  SendFlows::Flow* light = Open();
  SendFlows::Flow* heavy = Open();
  ASSERT_TRUE(flows.SetWeight(light->id, 0.5));
  ASSERT_TRUE(flows.SetWeight(heavy->id, 1.5));
  int lights = 0, heavies = 0;
  for (int i = 0; i < 400; ++i) {
    while (light->ledger.ReadyChunks(2) < 2) Post(light);
    while (heavy->ledger.ReadyChunks(2) < 2) Post(heavy);
    NextPlaced() == light->id ? ++lights : ++heavies;
    // A message each, in messages per weight.
    EXPECT_LE(std::abs(lights / 0.5 - heavies / 1.5), 1 / 0.5 + 1 / 1.5) << i;
  }
  EXPECT_EQ(lights, 100);
  EXPECT_EQ(heavies, 300);
}

TEST_F(SendFlowsTest, AnIdleFlowHasNoClaimToWhatItLeftToOthers) {
  SendFlows::Flow* idle = Open();
  SendFlows::Flow* busy = Open();
  Post(idle);
  EXPECT_EQ(NextPlaced(), idle->id);
  for (int i = 0; i < 1000; ++i) {
    Post(busy);
    EXPECT_EQ(NextPlaced(), busy->id);
  }
  for (SendFlows::Flow* flow : {idle, busy})
    for (int i = 0; i < 10; ++i) Post(flow);
  int idles = 0, busies = 0;
  for (int i = 0; i < 20; ++i) {
    NextPlaced() == idle->id ? ++idles : ++busies;
    EXPECT_LE(std::abs(idles - busies), 2) << i;
  }
  EXPECT_EQ(idles, 10);
}

TEST_F(SendFlowsTest, AMessageThatWasBegunIsFinishedFirstWhateverTheWeights) {
  std::array<char, 3 * kChunkAlignment> large;
  const auto post = [&](SendFlows::Flow* flow) {
    const MessageId id = flow->ledger.Post(large.data(), large.size(), kChunkAlignment);
    ASSERT_TRUE(flow->ledger.Grant(id, std::array<uint64_t, 1>{large.size()}));
    flows.Note(flow);
  };
  SendFlows::Flow* light = Open();
  post(light);
  EXPECT_EQ(Next(), light->id);
  SendFlows::Flow* heavy = Open();
  ASSERT_TRUE(flows.SetWeight(heavy->id, 1000));
  post(heavy);
  for (const FlowId expected : {light->id, light->id, heavy->id, heavy->id, heavy->id}) EXPECT_EQ(Next(), expected);
}

TEST_F(SendFlowsTest, BytesAreSharedNotMessages) {
  SendFlows::Flow* small = Open();
  SendFlows::Flow* large = Open();
  std::array<char, 1024> bytes;
  uint64_t of_small = 0, of_large = 0;
  for (int i = 0; i < 1000; ++i) {
    while (small->ledger.ReadyChunks(1) < 1) Post(small);
    if (large->ledger.ReadyChunks(1) < 1) {
      ASSERT_TRUE(large->ledger.Grant(large->ledger.Post(bytes.data(), bytes.size()), std::array<uint64_t, 1>{bytes.size()}));
      flows.Note(large);
    }
    Chunk chunk;
    ASSERT_TRUE(flows.Pull(shares, 0, kPath, &chunk, 0));
    (chunk.flow == small->id ? of_small : of_large) += SendFlows::kHeaderBytes + chunk.bytes;
    ASSERT_TRUE(flows.Find(chunk.flow)->ledger.AckThrough(chunk.message + 1));
  }
  EXPECT_NEAR(static_cast<double>(of_small), static_cast<double>(of_large), 2 * (SendFlows::kHeaderBytes + bytes.size()));
}

TEST_F(SendFlowsTest, EmptyMessagesDoNotGoBeforeAllOthers) {
  SendFlows::Flow* empty = Open();
  SendFlows::Flow* other = Open();
  Post(other);
  for (int i = 0; i < 10; ++i) {
    empty->ledger.Post(nullptr, 0);
    flows.Note(empty);
    Post(other);
  }
  int others = 0;
  for (int i = 0; i < 10; ++i) others += Next() == other->id;
  EXPECT_GE(others, 4);
}

TEST_F(SendFlowsTest, AFlowThatClosesLeavesNothingBehind) {
  SendFlows::Flow* stays = Open();
  SendFlows::Flow* goes = Open();
  ASSERT_TRUE(flows.SetWeight(goes->id, SendFlows::kWeightLeast));
  for (int i = 0; i < 3; ++i) {
    Post(goes);
    Post(stays);
  }
  for (int i = 0; i < 4; ++i) Next();
  const FlowId gone = goes->id;
  flows.Close(gone);
  EXPECT_FALSE(flows.SetWeight(gone, 1));
  SendFlows::Flow* comes = Open();
  while (flows.ready()) EXPECT_EQ(Next(), stays->id);
  for (int i = 0; i < 10; ++i) {
    Post(stays);
    Post(comes);
  }
  int of_comes = 0;
  for (int i = 0; i < 20; ++i) {
    of_comes += Next() == comes->id;
    EXPECT_LE(std::abs(2 * of_comes - (i + 1)), 2) << i;
  }
}

TEST_F(SendFlowsTest, AFlowThatWasLightOwesNoMoreThanItsLastMessageWhenItIsNot) {
  SendFlows::Flow* was_light = Open();
  SendFlows::Flow* other = Open();
  ASSERT_TRUE(flows.SetWeight(was_light->id, 0.001));
  for (int i = 0; i < 30; ++i) {
    Post(was_light);
    Post(other);
  }
  // The first is for the one that opened first.
  EXPECT_EQ(Next(), was_light->id);
  EXPECT_EQ(Next(), other->id);
  ASSERT_TRUE(flows.SetWeight(was_light->id, 1));
  int of_light = 0;
  for (int i = 0; i < 20; ++i) of_light += Next() == was_light->id;
  EXPECT_NEAR(of_light, 10, 1);
}

TEST_F(SendFlowsTest, AWeightIsANumberWithinBounds) {
  SendFlows::Flow* flow = Open();
  for (const double wrong : {0.0, -0.0, -1.0, std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(),
                             std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::denorm_min(), 1e-7, 1e7})
    EXPECT_FALSE(flows.SetWeight(flow->id, wrong)) << wrong;
  for (const double right : {1.0, 1e-6, 1e6, 1.0 / 3}) EXPECT_TRUE(flows.SetWeight(flow->id, right)) << right;
  EXPECT_FALSE(flows.SetWeight(flow->id + 1, 1));
}

TEST_F(SendFlowsTest, AMessageGoesAtOnceWhereNothingIsAheadOfIt) {
  SendFlows::Flow* a = Open();
  SendFlows::Flow* b = Open();
  a->state = b->state = SendFlows::State::kOpen;
  Chunk chunk;
  Post(a);
  EXPECT_FALSE(flows.PostEagerly(b, buffer, kBytes, kPath, &chunk));
  EXPECT_EQ(Next(), a->id);
  std::ignore = flows.TakeChanged();
  ASSERT_TRUE(flows.PostEagerly(b, buffer, kBytes, kPath, &chunk));
  EXPECT_EQ(chunk.flow, b->id);
  EXPECT_FALSE(flows.ready());
  ASSERT_EQ(flows.TakeChanged().size(), 1u);
  b->state = SendFlows::State::kFailed;
  EXPECT_FALSE(flows.PostEagerly(b, buffer, kBytes, kPath, &chunk));
}

TEST_F(SendFlowsTest, ReclaimedChunksAreReadyAgain) {
  SendFlows::Flow* flow = Open();
  Post(flow);
  EXPECT_EQ(Next(), flow->id);
  EXPECT_FALSE(flows.ready());
  EXPECT_EQ(flows.Reclaim(kPath), kBytes);
  EXPECT_TRUE(flows.ready());
  EXPECT_EQ(Next(), flow->id);
}

TEST_F(SendFlowsTest, AFailedFlowIsNotCarried) {
  SendFlows::Flow* flow = Open();
  Post(flow);
  flows.Fail(flow, "gone", true);
  EXPECT_EQ(Next(), 0u);
  EXPECT_FALSE(flows.ready());
}

// Regions are known, and each link's own rail is the link's number.
struct FakeKeys final : RegionKeys {
  bool any() const override { return true; }
  bool Reaches(RegionId, LinkId) const override { return true; }
  bool SendsFrom(RailSet rails, LinkId link) const override { return (rails >> link & 1) != 0; }
};

// One of the own devices has not registered it: that link would be lost with each message.
TEST(SendFlowsKeys, AMessageGoesByRailsThatReadItsBuffer) {
  const FakeKeys keys;
  SendFlows flows({.eager_bytes = 0}, StripeMode::kBalance, &host_memory, &keys);
  const std::array<LinkShare, 2> shares{LinkShare{.usable = true, .weight_permille = 1000},
                                        LinkShare{.usable = true, .weight_permille = 1000}};
  SendFlows::Flow* const flow = flows.Open();
  flow->state = SendFlows::State::kOpen;
  flow->home = 1;
  char buffer[kBytes] = {};
  const std::array<uint64_t, 1> capacities{kBytes};
  const std::array<BufferPlace, 1> places{BufferPlace{.region = 1, .generation = 1, .offset = 0}};
  ASSERT_TRUE(flow->ledger.Grant(0, capacities, places));
  flow->ledger.Post(buffer, kBytes, 128, 0b01);
  flows.Note(flow);
  Chunk chunk;
  EXPECT_FALSE(flows.Pull(shares, 1, kPath, &chunk, 0));
  EXPECT_TRUE(flows.Pull(shares, 0, kPath, &chunk, 0));
  // By no rail that is there: it fails after a while.
  flow->ledger.Post(buffer, kBytes, 128, 0);
  ASSERT_TRUE(flow->ledger.Grant(0, std::array<uint64_t, 2>{kBytes, kBytes}, std::array<BufferPlace, 2>{places[0], places[0]}));
  flows.Note(flow);
  int expired = 0;
  flows.AgeStranded(shares, 5, 5, [&](SendFlows::Flow*) { ++expired; });
  EXPECT_EQ(expired, 1);
}

// A device that was away is back, and the message was posted meanwhile.
TEST(SendFlowsKeys, AMessageGoesByRailsThatReadItsBufferByNow) {
  const FakeKeys keys;
  SendFlows flows({.eager_bytes = 0}, StripeMode::kBalance, &host_memory, &keys);
  const std::array<LinkShare, 1> shares{LinkShare{.usable = true, .weight_permille = 1000}};
  SendFlows::Flow* const flow = flows.Open();
  flow->state = SendFlows::State::kOpen;
  char buffer[kBytes] = {};
  const Memory memory{.id = 5};
  ASSERT_TRUE(
      flow->ledger.Grant(0, std::array<uint64_t, 1>{kBytes}, std::array<BufferPlace, 1>{BufferPlace{.region = 1, .generation = 1}}));
  flow->ledger.Post({buffer, &memory}, kBytes, 128, 0b10);
  flows.Note(flow);
  Chunk chunk;
  EXPECT_FALSE(flows.Pull(shares, 0, kPath, &chunk, 0));
  flow->ledger.SetRails(6, 0b11);
  EXPECT_FALSE(flows.Pull(shares, 0, kPath, &chunk, 0));
  flow->ledger.SetRails(5, 0b11);
  flows.Note(flow);
  EXPECT_TRUE(flows.Pull(shares, 0, kPath, &chunk, 0));
}

// The rail that should have sent it is slower than it was, or stands still.
TEST(SendFlowsStripe, AChunkThatIsLeftToOthersIsAnyonesWhenTheyShouldHaveFinished) {
  SendFlows flows({.eager_bytes = 0}, StripeMode::kBalance);
  const std::array<LinkShare, 2> shares{LinkShare{.usable = true, .weight_permille = 1000, .rate_bytes_per_s = 100e6},
                                        LinkShare{.usable = true, .weight_permille = 1000, .slow = true, .rate_bytes_per_s = 10e6}};
  SendFlows::Flow* const flow = flows.Open();
  flow->state = SendFlows::State::kOpen;
  constexpr uint64_t kLarge = 1'000'000;  // 10 ms of the first link
  std::vector<char> buffer(kLarge);
  const auto post = [&] {
    ASSERT_TRUE(flow->ledger.Grant(flow->ledger.granted_through(), std::array<uint64_t, 1>{kLarge}));
    flow->ledger.Post(buffer.data(), kLarge, kLarge);
    flows.Note(flow);
  };
  Chunk chunk;
  for (int i = 0; i < 3; ++i) {
    const Nanos now = (i + 1) * kNanosPerSecond;
    post();
    EXPECT_FALSE(flows.Pull(shares, 1, kPath, &chunk, now));
    EXPECT_FALSE(flows.Pull(shares, 1, kPath, &chunk, now + 10 * kNanosPerMs - 1));
    EXPECT_EQ(flows.ReadyChunks(shares, 1, 1, now + 10 * kNanosPerMs - 1), 0u);
    EXPECT_EQ(flows.ReadyChunks(shares, 1, 1, now + 10 * kNanosPerMs), 1u);
    EXPECT_TRUE(flows.Pull(shares, 1, kPath, &chunk, now + 10 * kNanosPerMs));
  }
  // With more than the first link sends meanwhile it does not wait.
  for (int i = 0; i < 11; ++i) post();
  EXPECT_TRUE(flows.Pull(shares, 1, kPath, &chunk, 10 * kNanosPerSecond));
  EXPECT_TRUE(flows.Pull(shares, 0, kPath, &chunk, 10 * kNanosPerSecond));
  EXPECT_FALSE(flows.Pull(shares, 1, kPath, &chunk, 10 * kNanosPerSecond)) << "nine are left: the other has sent them sooner";
}

}  // namespace
}  // namespace r2cc::net
