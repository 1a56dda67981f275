// What a session makes of what its links are seen to move: how large its chunks are, and how many of them a slow link may carry.

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "netplugin/flow/tuning.h"
#include "netplugin/link/send_session.h"

namespace r2cc::net {
namespace {

// The sender's end, with all links up and one flow open on the first.
class Sender {
 public:
  explicit Sender(const SendSession::Options& options) : links_(options.local_rails), session_(options, now_) {
    flow_ = session_.OpenFlow(1, 0, now_);
    session_.OobUp("peer", std::vector<RailInfo>(links_, RailInfo{.up = true, .endpoints = {{}}}), now_);
    Obey();
    session_.Receive(kOobChannel, frames::FlowOpened{.flow = flow_, .ok = true}, now_);
    EXPECT_EQ(session_.links().state(0), InitiatorState::kUp);
    EXPECT_EQ(session_.links().state(1), InitiatorState::kUp);
  }

  // For a while all links are busy and move so much; those that are not in `limited` could move more.
  void MoveAt(double bytes_per_s, bool bulk = true) { MoveAt(std::vector<double>(links_, bytes_per_s), 4, {true, true, true, true}, bulk); }
  void MoveAt(const std::vector<double>& bytes_per_s, int steps, std::vector<bool> limited = {true, true, true, true}, bool bulk = true) {
    constexpr Nanos kStep = 25 * kNanosPerMs;
    for (int i = 0; i < steps; ++i) {
      now_ += kStep;
      busy_ += kStep;
      for (LinkId link = 0; link < links_; ++link) {
        delivered_[link] += bytes_per_s[link] * kStep / kNanosPerSecond;
        session_.link_input().Rate(link, session_.links().incarnation(link), static_cast<uint64_t>(delivered_[link]), busy_, limited[link],
                                   bulk, now_);
      }
      session_.Tick(now_);
      for (const SessionAction& action : session_.TakeActions()) reported_slow_ += action.kind == SessionAction::Kind::kLinkSlow;
    }
  }
  // Of the next message.
  uint32_t ChunkBytes() {
    const MessageId id = Post();
    Chunk chunk;
    uint32_t bytes = 0;
    for (LinkId link = 0; link < links_; ++link)
      while (session_.Pull(link, session_.links().incarnation(link), &chunk))
        if (chunk.message == id) bytes = chunk.chunk_bytes;
    return bytes;
  }
  // Of the chunks of some messages, those by the second link, which takes all that it may, over those by the first.
  double SecondOverFirst() {
    constexpr int kMessages = 32;
    for (int i = 0; i < kMessages; ++i) Post();
    Chunk chunk;
    int first = 0, second = 0;
    for (; session_.Pull(0, session_.links().incarnation(0), &chunk); ++first)
      while (session_.Pull(1, session_.links().incarnation(1), &chunk)) ++second;
    return static_cast<double>(second) / first;
  }
  // A flow at home on each link moves a message, as far as the links may carry it.
  void MoveOnEach() {
    if (second_ == 0) {
      second_ = session_.OpenFlow(2, 1, now_);
      session_.Receive(kOobChannel, frames::FlowOpened{.flow = second_, .ok = true}, now_);
    }
    Post(flow_);
    Post(second_);
    Chunk chunk;
    for (LinkId link = 0; link < links_; ++link)
      while (session_.Pull(link, session_.links().incarnation(link), &chunk)) {
      }
  }
  void Lose(LinkId link) {
    session_.LinkTrouble(link, session_.links().incarnation(link), plan::EvidenceCause::kLinkDown, now_);
    EXPECT_TRUE(session_.links().spread());
  }
  bool spread() const { return session_.links().spread(); }
  int reported_slow() const { return reported_slow_; }

 private:
  MessageId Post() { return Post(flow_); }
  MessageId Post(FlowId flow) {
    const MessageId id = session_.Post(flow, data_.data(), data_.size(), now_);
    FlowReport grant{.flow = flow, .grants = true};
    grant.capacities.assign(id + 1, data_.size());
    session_.Receive(kOobChannel, grant, now_);
    return id;
  }
  void Obey() {
    for (auto actions = session_.TakeActions(); !actions.empty(); actions = session_.TakeActions())
      for (const SessionAction& action : actions) {
        if (action.kind == SessionAction::Kind::kOpenLink) session_.link_input().Connected(action.link, action.incarnation, now_);
        if (action.kind == SessionAction::Kind::kProveLink)
          session_.Receive(action.link, frames::Proved{.link = action.link, .incarnation = action.incarnation, .ok = true}, now_);
      }
  }

  const LinkId links_;
  Nanos now_ = kNanosPerSecond;
  Nanos busy_ = 0;
  std::vector<double> delivered_ = std::vector<double>(links_);
  std::vector<std::byte> data_ = std::vector<std::byte>(1 << 20);
  SendSession session_;
  FlowId flow_ = 0, second_ = 0;
  int reported_slow_ = 0;
};

SendSession::Options Following(LinkId links = 2) {
  SendSession::Options options;
  options.local_rails = links;
  options.chunks_follow_rate = true;
  return options;
}

TEST(ChunkSize, FollowsTheRateOfTheFlowsOwnLink) {
  Sender sender(Following());
  EXPECT_EQ(sender.ChunkBytes(), tuning::kChunkBytesBase) << "not known yet";
  sender.MoveAt(4e9);
  EXPECT_EQ(sender.ChunkBytes(), 512u * 1024);
}

TEST(ChunkSize, IsNoLargerThanUsualWhileChunksAreDealtOutToAllLinks) {
  Sender sender(Following());
  sender.MoveAt(4e9);
  sender.Lose(1);
  EXPECT_EQ(sender.ChunkBytes(), tuning::kChunkBytesBase);
}

TEST(ChunkSize, FollowsTheSlowestLinkThatChunksAreDealtOutTo) {
  Sender sender(Following());
  sender.MoveAt(16e6);
  EXPECT_EQ(sender.ChunkBytes(), tuning::kChunkBytesBase) << "each flow keeps to its own link";
  sender.Lose(1);
  EXPECT_EQ(sender.ChunkBytes(), 32u * 1024);
}

TEST(ChunkSize, SmallMessagesTellNothingOfARate) {
  Sender sender(Following());
  sender.MoveAt(4e9, false);
  EXPECT_EQ(sender.ChunkBytes(), tuning::kChunkBytesBase);
}

TEST(ChunkSize, EachLinkHasAsManyChunksOfAMessageThatAllShare) {
  Sender sender(Following(4));
  sender.MoveAt(4e9);
  sender.Lose(1);
  const uint32_t chunk_bytes = sender.ChunkBytes();
  EXPECT_EQ(ChunkCount(1 << 20, chunk_bytes), 9u) << chunk_bytes;
}

TEST(ChunkSize, StaysWhatTheEnvironmentSays) {
  SendSession::Options options = Following();
  options.chunks_follow_rate = false;
  options.chunk_base_bytes = 4096;
  Sender sender(options);
  sender.MoveAt(4e9);
  EXPECT_EQ(sender.ChunkBytes(), 4096u);
}

TEST(Rates, OfALinkThatIsGoneMakeNoOtherSlow) {
  Sender sender(Following(3));
  sender.MoveAt({100e6, 100e6, 300e6}, 3);  // a moment, as of a cross-rail link that carries what its rails have saved
  sender.Lose(2);
  for (int i = 0; i < 20; ++i) {
    sender.SecondOverFirst();
    sender.MoveAt({100e6, 100e6, 0}, 2);
  }
  EXPECT_EQ(sender.reported_slow(), 0);
}

TEST(Cap, OfASlowLinkIsATenthAboveWhatItMoves) {
  Sender sender(Following());
  sender.MoveAt({400e6, 100e6}, 40);
  ASSERT_TRUE(sender.spread());
  EXPECT_NEAR(sender.SecondOverFirst(), 0.35, 0.02);
}

// Busy all the time with the few chunks that it may have, it seems to move just those.
TEST(Cap, RisesWhereItHoldsALinkBack) {
  Sender sender(Following());
  sender.MoveAt({400e6, 100e6}, 40);
  double carried = 0.25;
  for (int i = 0; i < 40 && sender.spread(); ++i) {
    carried = sender.SecondOverFirst();
    sender.MoveAt({400e6, 400e6 * std::min(carried, 1.0)}, 2, {true, false});
  }
  EXPECT_FALSE(sender.spread()) << carried;
}

// What a link carries for flows that keep to it says nothing of what it could.
TEST(Cap, IsNotRaisedWhereFlowsKeepToTheirLinks) {
  SendSession::Options options = Following();
  options.mode = StripeMode::kMigrate;
  Sender sender(options);
  sender.MoveAt({400e6, 100e6}, 40);
  ASSERT_TRUE(sender.spread());
  for (int i = 0; i < 20; ++i) {
    sender.MoveOnEach();
    sender.MoveAt({400e6, 100e6}, 2);
    EXPECT_TRUE(sender.spread()) << "still slow";
  }
}

TEST(Cap, IsGoneWhenALinkIsSoundAgain) {
  Sender sender(Following());
  sender.MoveAt({400e6, 100e6}, 40);
  ASSERT_TRUE(sender.spread());
  for (int i = 0; i < 20 && sender.spread(); ++i) {
    sender.SecondOverFirst();
    sender.MoveAt({400e6, 400e6}, 2);
  }
  EXPECT_FALSE(sender.spread()) << "each flow keeps to its own link";
}

}  // namespace
}  // namespace r2cc::net
