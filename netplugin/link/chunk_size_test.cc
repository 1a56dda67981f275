// How large the chunks of a session are, from what its links are seen to move.

#include <gtest/gtest.h>

#include <vector>

#include "netplugin/link/send_session.h"

namespace r2cc::net {
namespace {

// The sender's end, with all links up and one flow open on the first.
class Sender {
 public:
  explicit Sender(const SendSession::Options& options) : links_(options.local_rails), session_(options, now_) {
    flow_ = session_.OpenFlow(1, 0, now_);
    session_.OobUp("peer", std::vector<RailInfo>(links_, RailInfo{"", "", 0, true}), now_);
    Obey();
    session_.Receive(kOobLane, Frame{.type = FrameType::kFlowOpened, .flow = flow_, .ok = true}, now_);
    EXPECT_EQ(session_.link_state(0), InitiatorState::kUp);
    EXPECT_EQ(session_.link_state(1), InitiatorState::kUp);
  }

  // For a while all links are busy and move so much.
  void MoveAt(double bytes_per_s, bool bulk = true) {
    constexpr Nanos kStep = 25 * kNanosPerMs;
    for (int i = 0; i < 4; ++i) {
      now_ += kStep;
      busy_ += kStep;
      delivered_ += bytes_per_s * kStep / kNanosPerSecond;
      for (LinkId link = 0; link < links_; ++link)
        session_.LinkRate(link, session_.incarnation(link), static_cast<uint64_t>(delivered_), busy_, bulk, now_);
    }
  }
  // Of the next message.
  uint32_t ChunkBytes() {
    const MessageId id = session_.Post(flow_, data_.data(), data_.size(), now_);
    Frame grant{.type = FrameType::kGrant, .flow = flow_};
    grant.numbers.assign(id + 1, data_.size());
    session_.Receive(kOobLane, grant, now_);
    Chunk chunk;
    uint32_t bytes = 0;
    for (LinkId link = 0; link < links_; ++link)
      while (session_.Pull(link, session_.incarnation(link), &chunk))
        if (chunk.message == id) bytes = chunk.chunk_bytes;
    return bytes;
  }
  void Lose(LinkId link) {
    session_.LinkTrouble(link, session_.incarnation(link), plan::EvidenceCause::kLinkDown, now_);
    EXPECT_TRUE(session_.spread());
  }

 private:
  void Obey() {
    for (auto actions = session_.TakeActions(); !actions.empty(); actions = session_.TakeActions())
      for (const Action& action : actions) {
        if (action.kind == Action::Kind::kOpenLink) session_.LinkConnected(action.link, action.incarnation, now_);
        if (action.kind == Action::Kind::kProveLink)
          session_.Receive(action.link, {.type = FrameType::kProved, .link = action.link, .incarnation = action.incarnation, .ok = true},
                           now_);
      }
  }

  const LinkId links_;
  Nanos now_ = kNanosPerSecond;
  Nanos busy_ = 0;
  double delivered_ = 0;
  std::vector<std::byte> data_ = std::vector<std::byte>(1 << 20);
  SendSession session_;
  FlowId flow_ = 0;
};

SendSession::Options Following(LinkId links = 2) {
  SendSession::Options options;
  options.local_rails = links;
  options.chunks_follow_rate = true;
  return options;
}

TEST(ChunkSize, FollowsTheRateOfTheFlowsOwnLink) {
  Sender sender(Following());
  EXPECT_EQ(sender.ChunkBytes(), kChunkBytesBase) << "not known yet";
  sender.MoveAt(4e9);
  EXPECT_EQ(sender.ChunkBytes(), 512u * 1024);
}

TEST(ChunkSize, IsNoLargerThanUsualWhileChunksAreDealtOutToAllLinks) {
  Sender sender(Following());
  sender.MoveAt(4e9);
  sender.Lose(1);
  EXPECT_EQ(sender.ChunkBytes(), kChunkBytesBase);
}

TEST(ChunkSize, FollowsTheSlowestLinkThatChunksAreDealtOutTo) {
  Sender sender(Following());
  sender.MoveAt(16e6);
  EXPECT_EQ(sender.ChunkBytes(), kChunkBytesBase) << "each flow keeps to its own link";
  sender.Lose(1);
  EXPECT_EQ(sender.ChunkBytes(), 32u * 1024);
}

TEST(ChunkSize, SmallMessagesTellNothingOfARate) {
  Sender sender(Following());
  sender.MoveAt(4e9, false);
  EXPECT_EQ(sender.ChunkBytes(), kChunkBytesBase);
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

}  // namespace
}  // namespace r2cc::net
