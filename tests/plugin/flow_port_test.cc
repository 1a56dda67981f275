// FlowPort over TCP on the loopback: two engines of one process, and a rail that is lost in mid-transfer.

#include "netplugin/transport/flow_port.h"

#include <gtest/gtest.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/plugin/engine_node.h"

namespace r2cc::net {
namespace {

constexpr size_t kBytes = 1 << 20;
constexpr uint64_t kWindow = 4;
constexpr int64_t kLostAfterMs = 100;
constexpr auto kLimit = std::chrono::seconds(60);

uint8_t PatternAt(uint64_t message, size_t at) { return static_cast<uint8_t>(message * 31 + at * 7 + at / 251); }

// A flow between two nodes, whose ends post as fast as they may.
class Transfer {
 public:
  Transfer(EngineNode* from, EngineNode* to, uint16_t rail) : from_(from), to_(to), out_(kWindow * kBytes), in_(kWindow * kBytes) {
    Handle handle;
    const uint64_t listen = to->engine->Listen(&handle);
    std::string error;
    auto send = from->engine->Connect(handle, rail, &error);
    EXPECT_NE(send, nullptr) << error;
    std::unique_ptr<RecvComm> recv;
    for (const auto until = Now() + kLimit; recv == nullptr && Now() < until;) recv = to->engine->Accept(listen);
    to->engine->CloseListen(listen);
    EXPECT_NE(recv, nullptr);
    sender_ = from->engine->GiveTo(&from->port, std::move(send));
    receiver_ = to->engine->GiveTo(&to->port, std::move(recv));
    EXPECT_TRUE(from->port.SetWeight(sender_, 2));
    EXPECT_FALSE(to->port.SetWeight(receiver_, 2));
  }
  void Step() {
    const uint64_t sent = from_->port.DoneThrough(sender_);
    for (; posted_ < sent + kWindow; ++posted_) {
      uint8_t* const at = out_.data() + posted_ % kWindow * kBytes;
      for (size_t i = 0; i < kBytes; ++i) at[i] = PatternAt(posted_, i);
      EXPECT_TRUE(from_->port.Send(sender_, at, kBytes));
    }
    for (const uint64_t done = to_->port.DoneThrough(receiver_); received_ < done; ++received_) {
      const uint8_t* const at = in_.data() + received_ % kWindow * kBytes;
      size_t wrong = 0;
      for (size_t i = 0; i < kBytes; ++i) wrong += at[i] != PatternAt(received_, i);
      EXPECT_EQ(wrong, 0u) << "message " << received_;
    }
    for (; taken_ < received_ + kWindow; ++taken_)
      EXPECT_TRUE(to_->port.Receive(receiver_, in_.data() + taken_ % kWindow * kBytes, kBytes));
    EXPECT_EQ(from_->port.Error(sender_), "");
    EXPECT_EQ(to_->port.Error(receiver_), "");
  }
  uint64_t received() const { return received_; }
  // The receiver goes first: then the sender hears of it.
  void Close() {
    to_->port.Close(receiver_);
    for (const auto until = Now() + kLimit; from_->port.Error(sender_).empty() && Now() < until;) from_->port.DoneThrough(sender_);
    EXPECT_NE(from_->port.Error(sender_), "");
    from_->port.Close(sender_);
  }
  static std::chrono::steady_clock::time_point Now() { return std::chrono::steady_clock::now(); }

 private:
  EngineNode *const from_, *const to_;
  std::vector<uint8_t> out_, in_;
  FlowRef sender_ = 0, receiver_ = 0;
  uint64_t posted_ = 0, taken_ = 0, received_ = 0;
};

TEST(FlowPortOverTcp, ARailThatIsLostInMidTransferLosesNothing) {
  EngineNode from("a", {{"127.0.0.2", kLostAfterMs}}), to("b");
  ASSERT_TRUE(from.engine != nullptr && to.engine != nullptr);
  Transfer first(&from, &to, 0), second(&from, &to, 1);
  const auto until = Transfer::Now() + kLimit;
  uint64_t enough = 0;  // so many after the loss
  while (Transfer::Now() < until && (enough == 0 || first.received() < enough)) {
    first.Step();
    second.Step();
    if (enough == 0 && from.HasFailedOver()) enough = first.received() + 20;
  }
  EXPECT_GT(enough, 0u) << "no rail was lost";
  EXPECT_GE(first.received(), enough);
  EXPECT_GT(second.received(), 0u);
  first.Close();
  second.Close();
}

}  // namespace
}  // namespace r2cc::net
