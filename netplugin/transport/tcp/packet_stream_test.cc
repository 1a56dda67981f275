// Packets out of a stream whose other end writes as fast as we read. tests/fuzz has every way to cut a stream.
#include "netplugin/transport/tcp/packet_stream.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <memory>
#include <span>
#include <utility>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

constexpr uint32_t kTag = 7;

struct PacketStreamTest : testing::Test {
  PacketStreamTest() {
    int fds[2] = {-1, -1};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds), 0);
    far = UniqueFd(fds[0]);
    reader = std::make_unique<PacketStream>(UniqueFd(fds[1]));
  }

  // Writes of `waiting` what the socket takes.
  void Fill() {
    while (written < waiting.size()) {
      const ssize_t n = send(far.get(), waiting.data() + written, waiting.size() - written, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (n <= 0) return;
      written += static_cast<size_t>(n);
    }
  }
  void Expect(const Frame& frame) {
    const Bytes packet = Encode(frame, kTag);
    waiting.insert(waiting.end(), packet.begin(), packet.end());
  }
  // The bytes that it hands over.
  size_t Read() {
    size_t bytes = 0;
    EXPECT_EQ(reader->Read([&](std::span<const uint8_t> packet) {
      EXPECT_TRUE(std::equal(packet.begin(), packet.end(), waiting.begin() + static_cast<ptrdiff_t>(read)));
      read += packet.size();
      bytes += packet.size();
      return true;
    }),
              PacketStream::State::kOpen);
    return bytes;
  }
  bool Readable() const {
    pollfd fd{reader->fd(), POLLIN, 0};
    return poll(&fd, 1, 0) == 1;
  }

  UniqueFd far;
  std::unique_ptr<PacketStream> reader;
  Bytes waiting;
  size_t written = 0, read = 0;
};

TEST_F(PacketStreamTest, AReadEndsAfterItsBudgetHoweverMuchThereIs) {
  constexpr size_t kWaitingBytes = 4 << 20;
  for (uint64_t i = 0; waiting.size() < kWaitingBytes; ++i) Expect(FlowReport{.flow = 1, .placed_through = i});
  size_t reads = 0;
  for (; read < waiting.size(); ++reads) {
    Fill();
    ASSERT_TRUE(Readable());
    const size_t bytes = Read();
    ASSERT_LE(bytes, tuning::kControlBytesMost + kPacketHeaderBytes + 64);  // and a packet that had begun before
    // Who is not told that there is more finds the socket readable.
    ASSERT_TRUE(reader->more() || written == waiting.size());
  }
  EXPECT_GE(reads, kWaitingBytes / tuning::kControlBytesMost);
  Read();
  EXPECT_FALSE(reader->more());
  EXPECT_FALSE(Readable());
}

TEST_F(PacketStreamTest, APacketOfManyReadsComesOutWhole) {
  FlowReport large{.flow = 1, .grants = true};
  large.capacities.resize(4 * tuning::kControlBytesMost / sizeof(uint64_t));
  for (int i = 0; i < 2; ++i) {
    Expect(large);
    Expect(FlowReport{.flow = 1, .placed_through = 5});
  }
  for (size_t reads = 0; read < waiting.size(); ++reads) {
    ASSERT_LT(reads, 1000u);
    Fill();
    Read();
  }
}

}  // namespace
}  // namespace r2cc::net
