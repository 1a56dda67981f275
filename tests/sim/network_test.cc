// The simulated kernel and wires, as far as the simulation rests on them.

#include "tests/sim/network.h"

#include <gtest/gtest.h>

#include <numeric>
#include <utility>
#include <vector>

#include "tests/sim/machine_clock.h"

namespace r2cc::sim {
namespace {

class NetworkTest : public testing::Test, public Network::Host {
 protected:
  NetworkTest() {
    network_.AddHost(0, this);
    network_.AddHost(1, this);
  }

  void Arrived(Port local) override {
    if (!stopped_) accepted_.push_back(network_.Accept(local));
  }

  void RunFor(Nanos duration) {
    const Nanos until = timeline_.now() + duration;
    while (timeline_.next() <= until) timeline_.RunNext();
    timeline_.At(until, [] {});
    timeline_.RunNext();
  }

  std::shared_ptr<Socket> Connected() {
    auto socket = network_.Connect(kHere, kThere, false);
    RunFor(10 * kNanosPerMs);
    EXPECT_TRUE(socket->connected());
    return socket;
  }

  // Writes as there is room and reads at the other end until nothing moves; true if all arrived, in order.
  bool Move(Socket* from, Socket* to, size_t bytes, Nanos patience) {
    std::vector<uint8_t> data(bytes), got;
    std::iota(data.begin(), data.end(), uint8_t{1});
    size_t sent = 0;
    for (const Nanos until = timeline_.now() + patience; timeline_.now() < until && got.size() < bytes; RunFor(kNanosPerMs)) {
      sent += from->Write(data.data() + sent, bytes - sent);
      std::vector<uint8_t> part(to->Readable());
      to->Read(part.data(), part.size());
      got.insert(got.end(), part.begin(), part.end());
    }
    return got == data;
  }

  static constexpr Port kHere{0, 0}, kThere{1, 0};
  Timeline timeline_{1};
  Network network_{&timeline_};
  std::vector<std::shared_ptr<Socket>> accepted_;
  bool stopped_ = false;  // nobody accepts
};

TEST_F(NetworkTest, BytesArriveInOrderThroughSmallBuffers) {
  network_.set_send_buffer_bytes(3000);
  network_.set_receive_buffer_bytes(5000);
  network_.SetPath(kHere, kThere, {.delay = 20'000, .jitter = 5 * kNanosPerMs});
  const auto socket = Connected();
  EXPECT_TRUE(Move(socket.get(), accepted_[0].get(), 300'000, 10 * kNanosPerSecond));
}

TEST_F(NetworkTest, AWriterFeelsTheEndOfRoomWhenNobodyReads) {
  network_.set_send_buffer_bytes(3000);
  network_.set_receive_buffer_bytes(5000);
  const auto socket = Connected();
  const std::vector<uint8_t> data(100'000);
  size_t taken = 0;
  for (int i = 0; i < 100; ++i, RunFor(kNanosPerMs)) taken += socket->Write(data.data(), data.size());
  EXPECT_EQ(taken, 8000u);
  EXPECT_EQ(socket->Room(), 0u);
}

TEST_F(NetworkTest, SilenceDelaysAndLosesNothing) {
  const auto socket = Connected();
  network_.Block(kHere, kThere);
  const uint8_t byte = 7;
  socket->Write(&byte, 1);
  RunFor(kNanosPerSecond);
  EXPECT_EQ(accepted_[0]->Readable(), 0u);
  EXPECT_FALSE(socket->broken());
  network_.Unblock(kHere, kThere);
  RunFor(6 * kNanosPerSecond);
  EXPECT_EQ(accepted_[0]->Readable(), 1u);
}

TEST_F(NetworkTest, AShortHoldDoesNotEndALongerOne) {
  const auto socket = Connected();
  const uint8_t byte = 7;
  network_.Hold(kHere, kThere, timeline_.now() + 100 * kNanosPerMs);
  network_.Hold(kHere, kThere, timeline_.now() + 10 * kNanosPerMs);
  socket->Write(&byte, 1);
  RunFor(90 * kNanosPerMs);
  EXPECT_EQ(accepted_[0]->Readable(), 0u);
  RunFor(20 * kNanosPerMs);
  EXPECT_EQ(accepted_[0]->Readable(), 1u);
}

TEST_F(NetworkTest, AResetIsLostInSilenceAndComesWithTheNextByte) {
  const auto socket = Connected();
  network_.Block(kThere, kHere);
  accepted_[0]->Reset();
  RunFor(kNanosPerSecond);
  EXPECT_FALSE(socket->broken());
  network_.Unblock(kThere, kHere);
  RunFor(kNanosPerSecond);
  EXPECT_FALSE(socket->broken());
  const uint8_t byte = 7;
  socket->Write(&byte, 1);
  RunFor(kNanosPerSecond);
  EXPECT_TRUE(socket->broken());
}

// The kernel sends bytes again until somebody acknowledges or resets them.
TEST_F(NetworkTest, BytesToNobodyAreResetThoughTheFirstResetIsLost) {
  const auto socket = Connected();
  network_.SetPath(kThere, kHere, {.delay = 20 * kNanosPerMs});
  accepted_[0]->Close();
  RunFor(kNanosPerSecond);
  const uint8_t byte = 7;
  socket->Write(&byte, 1);
  RunFor(10 * kNanosPerMs);  // the reset is on its way
  network_.Block(kThere, kHere);
  RunFor(kNanosPerSecond);
  EXPECT_FALSE(socket->broken());
  network_.Unblock(kThere, kHere);
  RunFor(6 * kNanosPerSecond);
  EXPECT_TRUE(socket->broken());
}

TEST_F(NetworkTest, BytesWrittenBeforeAnOrderlyCloseArrive) {
  const auto socket = Connected();
  const std::vector<uint8_t> data(20'000);
  EXPECT_EQ(socket->Write(data.data(), data.size()), data.size());
  socket->Close();
  RunFor(kNanosPerSecond);
  EXPECT_EQ(accepted_[0]->Readable(), data.size());
  std::vector<uint8_t> got(data.size());
  accepted_[0]->Read(got.data(), got.size());
  EXPECT_TRUE(accepted_[0]->ended());
}

TEST_F(NetworkTest, ConnectsAreRefusedUnansweredOrAnsweredByTheKernelAlone) {
  network_.Refuse(kThere, true);
  const auto refused = network_.Connect(kHere, kThere, false);
  RunFor(kNanosPerMs);
  EXPECT_TRUE(refused->refused());
  network_.Refuse(kThere, false);

  network_.BlockPort(kThere);
  const auto unanswered = network_.Connect(kHere, kThere, false);
  RunFor(5 * kNanosPerSecond);
  EXPECT_FALSE(unanswered->connected() || unanswered->broken());
  network_.UnblockPort(kThere);

  network_.Swallow(kThere, true);
  const auto swallowed = network_.Connect(kHere, kThere, false);
  RunFor(kNanosPerMs);
  EXPECT_TRUE(swallowed->connected());
  EXPECT_TRUE(accepted_.empty());
}

TEST_F(NetworkTest, AFullQueueIsSilentUntilSomebodyAccepts) {
  network_.set_backlog(2);
  stopped_ = true;
  const auto first = network_.Connect(kHere, kThere, false), second = network_.Connect(kHere, kThere, false);
  RunFor(10 * kNanosPerMs);
  EXPECT_TRUE(first->connected() && second->connected());
  // Who has hung up still has his place.
  first->Reset();
  const auto third = network_.Connect(kHere, kThere, false);
  RunFor(10 * kNanosPerSecond);
  EXPECT_FALSE(third->connected() || third->broken());
  EXPECT_EQ(network_.Waiting(kThere), 2u);
  const uint8_t byte = 7;
  second->Write(&byte, 1);
  EXPECT_TRUE(network_.Accept(kThere)->broken());
  EXPECT_EQ(network_.Accept(kThere)->Readable(), 0u) << "the byte is on its way";
  RunFor(10 * kNanosPerSecond);
  EXPECT_TRUE(third->connected());
}

TEST_F(NetworkTest, AQueuedConnectionTakesBytesAndEndsWithItsListener) {
  stopped_ = true;
  const auto socket = Connected();
  const uint8_t byte = 7;
  socket->Write(&byte, 1);
  RunFor(10 * kNanosPerMs);
  EXPECT_EQ(socket->Unacknowledged(), 0u);
  network_.KillHost(1, true);
  RunFor(10 * kNanosPerMs);
  EXPECT_TRUE(socket->broken());
}

TEST_F(NetworkTest, AKilledProcessEndsItsConnectionsUnlessAChildHoldsThem) {
  const auto plain = Connected();
  network_.KillHost(1, false);
  RunFor(10 * kNanosPerMs);
  EXPECT_TRUE(plain->ended() || plain->broken());
  const auto after = network_.Connect(kHere, kThere, false);
  RunFor(10 * kNanosPerMs);
  EXPECT_TRUE(after->refused());
}

TEST_F(NetworkTest, AForkedChildKeepsConnectionsOpenAndSilent) {
  const auto socket = Connected();
  network_.KillHost(1, true);
  const uint8_t byte = 7;
  socket->Write(&byte, 1);
  RunFor(60 * kNanosPerSecond);
  EXPECT_FALSE(socket->ended() || socket->broken());
  EXPECT_EQ(socket->Unacknowledged(), 0u);
}

TEST_F(NetworkTest, KeepAliveEndsAConnectionToAHostThatVanished) {
  const auto socket = network_.Connect(kHere, kThere, true);
  RunFor(10 * kNanosPerMs);
  network_.BlockPort(kThere);
  RunFor(5 * kNanosPerSecond);
  EXPECT_FALSE(socket->broken());
  RunFor(5 * kNanosPerSecond);
  EXPECT_TRUE(socket->broken());
}

TEST(MachineClock, KnowsWhenItShowsATime) {
  Random random(1);
  for (int i = 0; i < 1000; ++i) {
    const MachineClock clock{random.Between(-kNanosPerSecond, 1000 * kNanosPerSecond), random.Between(-1000, 1000)};
    const Nanos local = clock.ahead + random.Between(1, 1000 * kNanosPerSecond);
    const Nanos when = clock.When(local);
    EXPECT_GE(clock.At(when), local);
    EXPECT_LE(clock.At(when - 2), local) << "a nanosecond is lost where it is rounded";
  }
}

}  // namespace
}  // namespace r2cc::sim
