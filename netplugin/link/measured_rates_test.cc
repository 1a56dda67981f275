// What a session makes of what its links are seen to move: how large its chunks are, and how many of them a slow link carries.

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
      while (session_.Pull(link, session_.links().incarnation(link), &chunk, now_))
        if (chunk.message == id) bytes = chunk.chunk_bytes;
    return bytes;
  }
  // Of the chunks of some messages, those by the second link over those by the first. Each link has room as soon as it has sent a chunk, at
  // these rates; the first one that has room also takes the last.
  double SecondOverFirst(double first_bytes_per_s, double second_bytes_per_s) {
    for (int i = 0; i < 32; ++i) Post();
    const double rates[] = {first_bytes_per_s, second_bytes_per_s};
    Nanos room_at[] = {now_, now_};
    int chunks[] = {0, 0};
    for (bool pulled = true; pulled || room_at[0] > now_ || room_at[1] > now_;) {
      if (!pulled) now_ = std::min(room_at[0] > now_ ? room_at[0] : room_at[1], room_at[1] > now_ ? room_at[1] : room_at[0]);
      pulled = false;
      for (LinkId link = 0; link < 2; ++link) {
        Chunk chunk;
        if (room_at[link] > now_ || !session_.Pull(link, session_.links().incarnation(link), &chunk, now_)) continue;
        room_at[link] = now_ + static_cast<Nanos>(chunk.bytes / rates[link] * kNanosPerSecond);
        ++chunks[link];
        pulled = true;
      }
    }
    return static_cast<double>(chunks[1]) / chunks[0];
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
      while (session_.Pull(link, session_.links().incarnation(link), &chunk, now_)) {
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

TEST(ChunkSize, IsNoLargerThanUsualWhileChunksAreStriped) {
  Sender sender(Following());
  sender.MoveAt(4e9);
  sender.Lose(1);
  EXPECT_EQ(sender.ChunkBytes(), tuning::kChunkBytesBase);
}

TEST(ChunkSize, SmallMessagesShowNoRate) {
  Sender sender(Following());
  sender.MoveAt(4e9, false);
  EXPECT_EQ(sender.ChunkBytes(), tuning::kChunkBytesBase);
}

TEST(ChunkSize, KeepsTheSizeFromTheEnvironment) {
  SendSession::Options options = Following();
  options.chunks_follow_rate = false;
  options.chunk_base_bytes = 4096;
  Sender sender(options);
  sender.MoveAt(4e9);
  EXPECT_EQ(sender.ChunkBytes(), 4096u);
}

TEST(Rates, TheRateOfALostLinkMakesNoOtherLinkSlow) {
  Sender sender(Following(3));
  sender.MoveAt({100e6, 100e6, 300e6}, 3);  // a moment, as of a cross-rail link that carries what its rails have saved
  sender.Lose(2);
  for (int i = 0; i < 20; ++i) sender.MoveAt({100e6, 100e6, 0}, 2);
  EXPECT_EQ(sender.reported_slow(), 0);
}

TEST(SlowLink, CarriesWhatItCan) {
  Sender sender(Following());
  sender.MoveAt({400e6, 100e6}, 40);
  ASSERT_TRUE(sender.spread());
  EXPECT_EQ(sender.reported_slow(), 1);
  EXPECT_NEAR(sender.SecondOverFirst(400e6, 100e6), 0.25, 0.02);
  // It is sound again before anybody has measured that.
  EXPECT_NEAR(sender.SecondOverFirst(400e6, 400e6), 1, 0.1);
}

TEST(SlowLink, IsSlowWhereFlowsKeepToTheirLinks) {
  SendSession::Options options = Following();
  options.mode = StripeMode::kMigrate;
  Sender sender(options);
  sender.MoveAt({400e6, 100e6}, 40);
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(sender.spread());
    sender.MoveOnEach();
    sender.MoveAt({400e6, 100e6}, 2);
  }
}

TEST(SlowLink, IsSoundAgainWhenItMovesAsMuchAsTheOthers) {
  for (const bool limited : {true, false}) {
    Sender sender(Following());
    sender.MoveAt({400e6, 100e6}, 40);
    ASSERT_TRUE(sender.spread());
    for (int i = 0; i < 20 && sender.spread(); ++i) sender.MoveAt({400e6, 400e6}, 2, {true, limited});
    EXPECT_FALSE(sender.spread()) << "each flow keeps to its own link; limited " << limited;
  }
}

}  // namespace
}  // namespace r2cc::net
