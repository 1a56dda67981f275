#include "netplugin/transport/verbs/flusher.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>
#include <vector>

#include "netplugin/transport/verbs/fake_gpus.h"

namespace r2cc::net::verbs {
namespace {

class FlusherTest : public FakeGpus {
 protected:
  // Jobs that are not done hold the device, which holds them.
  ~FlusherTest() override {
    flusher_ = nullptr;
    time_.RunFor(kNanosPerSecond);
    domain_->device()->control()->Stop();
  }
  bool Poll() {
    return flusher_->Poll([this](const FlushName& name) { done_.push_back(name.message); });
  }
  void Flush(MessageId message) { flusher_->Flush({.flow = 1, .message = message, .round = 1}, memory_, region_.remote_key); }

  const std::shared_ptr<Domain> domain_ = OpenDomain(0);
  std::byte* const memory_ = Allocate(4096);
  const MemoryRegion region_ = Register(domain_.get(), memory_, 4096);
  std::vector<std::string> lines_;
  std::unique_ptr<Flusher> flusher_ =
      std::make_unique<Flusher>(domain_, LoopbackPair::Options{}, [this](LogLevel, const std::string& line) { lines_.push_back(line); });
  std::vector<MessageId> done_;
};

TEST_F(FlusherTest, FlushedBytesAreSeenAndReportedInOrder) {
  EXPECT_TRUE(Poll());
  gpu_.Placing("mlx5_0", memory_, 4);
  std::memcpy(memory_, "here", 4);
  for (MessageId message = 0; message < 100; ++message) Flush(message);
  EXPECT_TRUE(flusher_->outstanding());
  EXPECT_TRUE(Poll()) << "its queue pair is still being made";
  for (int i = 0; i < 20; ++i) {
    time_.RunFor(kNanosPerMs);
    ASSERT_TRUE(Poll());
  }
  ASSERT_EQ(done_.size(), 100u);
  for (MessageId message = 0; message < 100; ++message) EXPECT_EQ(done_[message], message);
  EXPECT_FALSE(flusher_->outstanding());
  EXPECT_EQ(Seen(memory_, 4), "here");
}

TEST_F(FlusherTest, AnotherDevicesBytesAreNotSeen) {
  gpu_.Placing("mlx5_1", memory_, 4);
  std::memcpy(memory_, "here", 4);
  Flush(0);
  for (int i = 0; i < 5; ++i) {
    time_.RunFor(kNanosPerMs);
    ASSERT_TRUE(Poll());
  }
  EXPECT_EQ(done_.size(), 1u);
  EXPECT_EQ(Seen(memory_, 4), std::string(4, '\0'));
}

TEST_F(FlusherTest, WithoutAQueuePairItFailsAndALogLineHasTheReason) {
  faulty_.FailCall(Call::kCreateQueuePair, 1, ENOSPC);
  Flush(0);
  time_.RunFor(kNanosPerMs);
  EXPECT_FALSE(Poll());
  EXPECT_TRUE(done_.empty());
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("cannot make a queue pair on the RDMA device mlx5_0"), std::string::npos) << lines_[0];
}

TEST_F(FlusherTest, ItMayEndBeforeItsQueuePairIsMade) {
  Flush(0);
  flusher_ = nullptr;
  time_.RunFor(kNanosPerSecond);
  EXPECT_EQ(fabric_.hangs(), 0);
}

}  // namespace
}  // namespace r2cc::net::verbs
