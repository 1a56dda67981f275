// What a control socket takes while its peer does not read.
#include "netplugin/transport/tcp/control_socket.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <memory>
#include <span>
#include <vector>

#include "netplugin/link/fenced_parts.h"

namespace r2cc::net {
namespace {

constexpr uint32_t kTag = 7;

struct ControlSocketTest : testing::Test {
  ControlSocketTest() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    socket.Open(std::make_unique<PacketStream>(UniqueFd(fds[0])));
    peer = std::make_unique<PacketStream>(UniqueFd(fds[1]));
  }

  // The peer reads all that there is.
  std::vector<Frame> Received() {
    std::vector<Frame> frames;
    for (bool more = true; more;) {
      const size_t before = frames.size();
      socket.Poll();
      EXPECT_EQ(peer->Read([&](std::span<const uint8_t> packet) {
        EXPECT_TRUE(Decode(packet, kTag, &frames.emplace_back()));
        return true;
      }),
                PacketStream::State::kOpen);
      more = frames.size() > before || peer->more() || !socket.flushed();
    }
    return frames;
  }

  Poller poller;
  ControlSocket socket{&poller, kTag, {[](const Frame&) {}, [](plan::EvidenceCause) { ADD_FAILURE() << "it broke"; }}};
  std::unique_ptr<PacketStream> peer;
};

TEST_F(ControlSocketTest, TheAnswerToAFenceGoesWholeOrNotAtAll) {
  frames::Fenced fenced{.link = 1, .incarnation = 2};
  for (FlowId flow = 1; flow <= 40; ++flow)
    fenced.arrivals.push_back({flow, 0, std::vector<MessageArrivals>(64, {0, 128, std::vector<bool>(kChunksMax, true)})});
  const std::vector<frames::Fenced> parts = SplitFenced(fenced, 1);
  ASSERT_GT(parts.size(), 2u);
  for (const frames::Fenced& part : parts) socket.Queue(part);
  // Behind what the peer has not read it is told again in vain, but what is told once is not lost.
  for (const frames::Fenced& part : SplitFenced(fenced, 2)) socket.Queue(part);
  socket.Queue(frames::Ping{});
  socket.Queue(FlowReport{});
  ASSERT_TRUE(socket.Flush());
  const std::vector<Frame> received = Received();
  ASSERT_EQ(received.size(), parts.size() + 1);
  FencedParts collected;
  for (size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(collected.Add(std::get<frames::Fenced>(received[i])), i + 1 == parts.size());
  EXPECT_EQ(TypeOf(received.back()), FrameType::kAck);
  socket.Queue(frames::Ping{});
  ASSERT_TRUE(socket.Flush());
  EXPECT_EQ(Received().size(), 1u);
}

}  // namespace
}  // namespace r2cc::net
