// An answer to a fence that no packet could carry whole: as frames, at the acceptor, and at the initiator.
#include "netplugin/link/fenced_parts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <utility>
#include <vector>

#include "netplugin/link/frame_size.h"
#include "netplugin/link/recv_session.h"
#include "netplugin/link/send_session.h"

namespace r2cc::net {
namespace {

using plan::EvidenceCause;

constexpr uint32_t kTag = 7;
constexpr size_t kOpenMessages = 64;
constexpr Incarnation kFirst = 1;

// By flow and message.
using Arrivals = std::map<std::pair<FlowId, MessageId>, std::vector<bool>>;

void AddTo(Arrivals* all, const frames::Fenced& frame) {
  for (const FlowArrivals& flow : frame.arrivals)
    for (const MessageArrivals& message : flow.partial)
      EXPECT_TRUE(all->emplace(std::pair(flow.flow, message.message), message.placed).second) << "told twice";
}

// As it comes out at the other end.
frames::Fenced Travelled(const frames::Fenced& frame) {
  const Bytes packet = Encode(frame, kTag);
  EXPECT_EQ(packet.size(), kPacketHeaderBytes + BodyBytes(frame));
  EXPECT_EQ(PacketLength(packet), packet.size());
  Frame out;
  EXPECT_TRUE(Decode(packet, kTag, &out));
  return std::get<frames::Fenced>(out);
}

frames::Fenced FencedOf(FlowId flows, size_t messages, size_t chunks) {
  std::mt19937_64 random(1);
  frames::Fenced frame{.link = 3, .incarnation = 5, .cause = 2};
  for (FlowId flow = 1; flow <= flows; ++flow) {
    FlowArrivals& arrivals = frame.arrivals.emplace_back(FlowArrivals{flow, flow, {}});
    for (size_t i = 0; i < messages; ++i) {
      MessageArrivals& message = arrivals.partial.emplace_back(MessageArrivals{flow + i, 128, std::vector<bool>(chunks)});
      for (size_t chunk = 0; chunk < chunks; chunk += 1 + random() % 64) message.placed[chunk] = true;
    }
  }
  return frame;
}

// ---- frames ----

TEST(SplitFenced, AShortAnswerIsOnePart) {
  const frames::Fenced whole = FencedOf(3, 2, 17);
  const std::vector<frames::Fenced> parts = SplitFenced(whole, 9);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].part, 0u);
  EXPECT_EQ(parts[0].parts, 1u);
  EXPECT_EQ(parts[0].answer, 9u);
  EXPECT_EQ(SplitFenced(frames::Fenced{}, 9).size(), 1u);
}

TEST(SplitFenced, EveryPartOfALargeAnswerIsAPacket) {
  const frames::Fenced whole = FencedOf(256, kOpenMessages, kChunksMax);
  ASSERT_GT(BodyBytes(whole), 16u << 20);
  const std::vector<frames::Fenced> parts = SplitFenced(whole, 9);
  Arrivals expected, arrived;
  AddTo(&expected, whole);
  for (uint32_t i = 0; i < parts.size(); ++i) {
    const frames::Fenced part = Travelled(parts[i]);
    EXPECT_EQ(std::pair(part.part, part.parts), std::pair(i, static_cast<uint32_t>(parts.size())));
    EXPECT_EQ(std::tuple(part.link, part.incarnation, part.cause, part.answer), std::tuple(whole.link, whole.incarnation, whole.cause, 9u));
    for (const FlowArrivals& flow : part.arrivals) EXPECT_EQ(flow.placed_through, flow.flow);
    AddTo(&arrived, part);
  }
  EXPECT_EQ(arrived, expected);
}

TEST(SplitFenced, PartsAreFilled) {
  const frames::Fenced whole = FencedOf(10, 10, 80);
  const size_t least = BodyBytes(frames::Fenced{});
  for (const size_t body_bytes : {least + 64, least + 200, least + 1000}) {
    const std::vector<frames::Fenced> parts = SplitFenced(whole, 1, body_bytes);
    Arrivals arrived;
    for (const frames::Fenced& part : parts) {
      EXPECT_LE(BodyBytes(part), body_bytes);
      AddTo(&arrived, part);
    }
    EXPECT_EQ(arrived.size(), 100u);
    // At the worst half of each is empty, and the flow is named again for each message.
    const size_t message_bytes = WireBytes(whole.arrivals[0].partial[0]) + WireBytes(FlowArrivals{});
    EXPECT_LE(parts.size(), 2 * 100 * message_bytes / (body_bytes - least) + 1);
  }
}

TEST(SplitFenced, PartsThatCannotBeAreRefused) {
  frames::Fenced frame = FencedOf(1, 1, 1);
  Frame out;
  for (const auto& [part, parts] : {std::pair(0u, 0u), {1u, 1u}, {7u, 3u}, {0u, kFencedPartsMax + 1}, {~0u, ~0u}}) {
    frame.part = part;
    frame.parts = parts;
    EXPECT_FALSE(Decode(Encode(frame, kTag), kTag, &out)) << part << " of " << parts;
  }
}

// ---- numbers ----

frames::Fenced PartOf(uint64_t answer, uint32_t part, uint32_t parts, Incarnation incarnation = 2, LinkId link = 1) {
  return {.link = link, .incarnation = incarnation, .answer = answer, .part = part, .parts = parts};
}

TEST(FencedParts, AreWholeOnceInAnyOrder) {
  std::mt19937 random(1);
  FencedParts parts;
  for (uint64_t answer = 1; answer <= 20; ++answer) {
    std::vector<uint32_t> order{0, 1, 2, 3, 4};
    std::shuffle(order.begin(), order.end(), random);
    for (size_t i = 0; i < order.size(); ++i) {
      EXPECT_EQ(parts.Add(PartOf(answer, order[i], 5)), i == 4);
      EXPECT_FALSE(parts.Add(PartOf(answer, order[i], 5))) << "again";
    }
  }
}

TEST(FencedParts, PartsOfDifferentAnswersDoNotMix) {
  FencedParts parts;
  EXPECT_FALSE(parts.Add(PartOf(1, 0, 3)));
  EXPECT_FALSE(parts.Add(PartOf(1, 1, 3)));
  EXPECT_FALSE(parts.Add(PartOf(2, 2, 3)));
  EXPECT_FALSE(parts.Add(PartOf(1, 2, 3))) << "older";
  EXPECT_FALSE(parts.Add(PartOf(2, 1, 3)));
  EXPECT_TRUE(parts.Add(PartOf(2, 0, 3)));
  // Another incarnation, another link.
  EXPECT_FALSE(parts.Add(PartOf(3, 0, 2, 2)));
  EXPECT_FALSE(parts.Add(PartOf(4, 1, 2, 3)));
  EXPECT_FALSE(parts.Add(PartOf(5, 0, 2, 2))) << "an earlier incarnation";
  EXPECT_FALSE(parts.Add(PartOf(4, 0, 2, 3, 9)));
  EXPECT_TRUE(parts.Add(PartOf(4, 0, 2, 3)));
  // One number with two meanings.
  EXPECT_FALSE(parts.Add(PartOf(6, 0, 3, 3)));
  EXPECT_FALSE(parts.Add(PartOf(6, 1, 2, 3)));
  EXPECT_FALSE(parts.Add(PartOf(6, 2, 3, 3)));
  EXPECT_TRUE(parts.Add(PartOf(7, 0, 1, 3)));
}

// ---- sessions ----

TEST(FencedParts, AnAcceptorWithMuchUnderWayAnswersInPacketsThatThePeerAccepts) {
  constexpr FlowId kFlows = 20;
  constexpr uint32_t kChunkBytes = kChunkAlignment;
  RecvSession session({.peer = "peer"}, 0);
  session.OobUp(0);
  ASSERT_EQ(session.Greet(0, kFirst, 0, 0, 0), RecvSession::Admission::kAccepted);
  Arrivals expected;
  std::byte buffer[1];
  for (FlowId flow = 1; flow <= kFlows; ++flow) {
    session.Receive(kOobChannel, frames::FlowOpen{.flow = flow}, 0);
    session.AcceptFlow(flow, 0);
    for (MessageId message = 0; message < kOpenMessages; ++message) {
      session.Post(flow, buffer, kChunksMax * kChunkBytes, 0);
      const auto index = static_cast<uint32_t>((flow * kOpenMessages + message) % kChunksMax);
      const Chunk chunk{flow, message, kChunksMax * kChunkBytes, kChunkBytes, index, nullptr, kChunkBytes, false};
      std::byte* to = nullptr;
      ASSERT_TRUE(session.Begin(0, kFirst, chunk, &to));
      session.Finish(0, kFirst, chunk);
      expected[{flow, message}].resize(kChunksMax);
      expected[{flow, message}][index] = true;
    }
  }
  session.TakeActions();
  frames::Fence fence{.link = 0, .incarnation = kFirst};
  session.Receive(kOobChannel, fence, 0);
  session.LinkClosed(0, kFirst, true, 0);
  Arrivals arrived;
  FencedParts parts;
  size_t whole = 0;
  for (const SessionAction& action : session.TakeActions()) {
    if (action.kind != SessionAction::Kind::kSend || TypeOf(action.frame) != FrameType::kFenced) continue;
    const frames::Fenced part = Travelled(std::get<frames::Fenced>(action.frame));
    EXPECT_GT(part.parts, 1u);
    AddTo(&arrived, part);
    whole += parts.Add(part);
  }
  EXPECT_EQ(whole, 1u);
  EXPECT_EQ(arrived, expected);
}

struct InitiatorWithPartsTest : testing::Test {
  static constexpr uint32_t kChunkBytes = 1024;
  static constexpr uint32_t kChunks = 12;

  InitiatorWithPartsTest() {
    session.OobUp("peer", std::vector<RailInfo>(1, RailInfo{.up = true, .endpoints = {{}}}), 0);
    session.link_input().Connected(0, kFirst, 0);
    session.Receive(kOobChannel, frames::Proved{.link = 0, .incarnation = kFirst, .ok = true}, 0);
    for (int i = 0; i < 2; ++i) {
      const FlowId flow = session.OpenFlow(1, 0, 0);
      session.Receive(kOobChannel, frames::FlowOpened{.flow = flow, .ok = true}, 0);
      FlowReport grant{.flow = flow, .grants = true};
      grant.capacities = {sizeof(data)};
      session.Receive(kOobChannel, grant, 0);
      session.Post(flow, data, sizeof(data), 0);
      flows.push_back(flow);
    }
    Chunk chunk;
    while (session.Pull(0, kFirst, &chunk, 0)) ++pulled;
    session.LinkTrouble(0, kFirst, EvidenceCause::kLinkDown, 0);
    session.TakeActions();
  }

  // An answer in two parts, a flow in each: of the first message of either all but the last chunk has arrived.
  std::vector<frames::Fenced> Answer(uint64_t number) const {
    frames::Fenced frame{.link = 0, .incarnation = kFirst};
    std::vector<bool> placed(kChunks, true);
    placed.back() = false;
    for (const FlowId flow : flows) frame.arrivals.push_back({flow, 0, {{0, kChunkBytes, placed}}});
    const size_t body_bytes = BodyBytes(frame) - 1;
    return SplitFenced(frame, number, body_bytes);
  }
  // Bytes to replay, or none if the fence is not over.
  std::vector<uint64_t> Replayed(const frames::Fenced& part) {
    session.Receive(kOobChannel, Travelled(part), 0);
    std::vector<uint64_t> replayed;
    for (const SessionAction& action : session.TakeActions()) {
      if (action.kind == SessionAction::Kind::kLinkFenced) replayed.push_back(action.report.replayed_bytes);
      if (action.kind == SessionAction::Kind::kSend && TypeOf(action.frame) == FrameType::kFencedAck) ++confirmed;
    }
    return replayed;
  }

  SendSession session{{.local_rails = 1, .chunk_base_bytes = kChunkBytes}, 0};
  std::byte data[kChunks * kChunkBytes] = {};
  std::vector<FlowId> flows;
  uint32_t pulled = 0;
  int confirmed = 0;
};

TEST_F(InitiatorWithPartsTest, ReplaysWhenAllPartsOfOneAnswerAreThere) {
  ASSERT_EQ(pulled, 2 * kChunks);
  const std::vector<frames::Fenced> first = Answer(1), second = Answer(2);
  ASSERT_EQ(first.size(), 2u);
  EXPECT_TRUE(Replayed(first[1]).empty());
  EXPECT_TRUE(Replayed(first[1]).empty());
  EXPECT_TRUE(Replayed(second[0]).empty()) << "a part of each of two answers is no answer";
  EXPECT_TRUE(Replayed(first[0]).empty()) << "older";
  EXPECT_EQ(confirmed, 0);
  EXPECT_EQ(Replayed(second[1]), std::vector<uint64_t>{2 * kChunkBytes});
  EXPECT_EQ(confirmed, 1);
  // Told again, and confirmed again, nothing more is replayed.
  const std::vector<frames::Fenced> third = Answer(3);
  EXPECT_TRUE(Replayed(third[0]).empty());
  EXPECT_TRUE(Replayed(third[1]).empty());
  EXPECT_EQ(confirmed, 2);
}

}  // namespace
}  // namespace r2cc::net
