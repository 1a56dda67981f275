// Which of a receiver's sockets its poller watches, over real pairs of them.
#include "netplugin/transport/tcp/recv_peer.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <memory>
#include <string>
#include <utility>

#include "netplugin/transport/tcp/fake_peer.h"

namespace r2cc::net {
namespace {

constexpr FlowId kFlow = 1;
constexpr uint64_t kSession = 5;
constexpr uint64_t kNonce = 6;
// After so many looks at the latest a socket need not be told of.
constexpr int kLooksMost = 100;

struct RecvPeerTest : testing::Test {
  RecvPeerTest() {
    io.nonce = kNonce;
    io.silence = io.deadline = kNanosPerSecond;
    io.rails.emplace_back();
    io.verdict = [](const std::string&, const std::string&) { return RailVerdict{}; };
    io.path_broken = [](const std::string&, const std::string&, const std::string&) { return false; };
    Hello hello{.session = kSession, .incarnation = 1, .sockets = 1};
    hello.rails.resize(1);
    peer = std::make_shared<RecvPeer>(&io, hello, [this](FlowId, uint64_t) { return &comm; });
    hello.kind = ConnectionKind::kControl;
    control = std::make_unique<PacketStream>(Attach(hello));
    hello.kind = ConnectionKind::kBulk;
    sender = std::make_unique<BulkSender>(Attach(hello), tag, false);
    EXPECT_TRUE(control->Send(Encode(Frame{.type = FrameType::kFlowOpen, .flow = kFlow}, tag)));
    EXPECT_TRUE(peer->Service());
  }

  // The sender's end of a connection that the peer has now.
  UniqueFd Attach(const Hello& hello) {
    int fds[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds), 0);
    auto stream = std::make_unique<PacketStream>(UniqueFd(fds[0]));
    std::string reason;
    EXPECT_TRUE(peer->AttachLink(hello, &stream, &reason)) << reason;
    return UniqueFd(fds[1]);
  }

  void Post() { peer->Submit(kFlow, buffer, sizeof(buffer)); }
  void Send() {
    const auto pull = [this](Chunk* chunk) {
      *chunk = {kFlow, sent++, sizeof(buffer), 128, 0, data, sizeof(buffer), true};
      return true;
    };
    uint64_t sent_bytes = 0;
    ASSERT_EQ(sender->Pump(pull, 1, &sent_bytes), BulkSender::Result::kMore);
  }
  // The I/O thread would wake up.
  bool Wakes() const {
    pollfd fd{peer->fd(), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
  }
  bool AllHasCome() const { return comm.done_through == sent; }
  // NCCL's thread looks for one message after another. True if the I/O thread would have woken up for the last one.
  bool WakesAfterLooks(int looks) {
    bool wakes = false;
    for (int i = 0; i < looks; ++i) {
      Post();
      Send();
      wakes = Wakes();
      peer->Help(kFlow);
      EXPECT_TRUE(AllHasCome());
    }
    return wakes;
  }

  FakeClock clock;
  FakeIo io{&clock};
  const uint32_t tag = SessionTag(kNonce, kSession);
  Comm comm;
  std::shared_ptr<RecvPeer> peer;
  std::unique_ptr<PacketStream> control;
  std::unique_ptr<BulkSender> sender;
  MessageId sent = 0;
  std::byte data[8] = {};
  char buffer[8];
};

TEST_F(RecvPeerTest, ASocketThatIsLookedAtNowAndThenStaysWithThePoller) {
  EXPECT_TRUE(WakesAfterLooks(4));
  // What the poller finds is nobody's look.
  for (int i = 0; i < kLooksMost; ++i) {
    Post();
    Send();
    ASSERT_TRUE(Wakes());
    EXPECT_TRUE(peer->Service());
    EXPECT_TRUE(AllHasCome());
  }
}

TEST_F(RecvPeerTest, ASocketThatIsLookedAtAllTheTimeWakesNobody) { EXPECT_FALSE(WakesAfterLooks(kLooksMost)); }

TEST_F(RecvPeerTest, APollReadsWhatItIsNotToldOf) {
  ASSERT_FALSE(WakesAfterLooks(kLooksMost));
  Post();
  Send();
  ASSERT_FALSE(Wakes());
  EXPECT_TRUE(peer->Service());
  EXPECT_TRUE(AllHasCome());
}

TEST_F(RecvPeerTest, WithTheTickAllSocketsAreWatchedAgain) {
  ASSERT_FALSE(WakesAfterLooks(kLooksMost));
  Post();
  Send();
  peer->TickTurn();
  EXPECT_TRUE(AllHasCome());
  Post();
  Send();
  EXPECT_TRUE(Wakes());
  // And they leave again.
  peer->Help(kFlow);
  EXPECT_FALSE(WakesAfterLooks(kLooksMost));
}

}  // namespace
}  // namespace r2cc::net
