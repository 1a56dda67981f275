#include "netplugin/transport/verbs/loopback_pair.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "netplugin/transport/verbs/fake_gpus.h"

namespace r2cc::net::verbs {
namespace {

class LoopbackPairTest : public FakeGpus {
 protected:
  uint32_t EndedAfter(LoopbackPair* pair, Nanos time) {
    time_.RunFor(time);
    uint32_t all = 0, ended = 0;
    do {
      EXPECT_TRUE(pair->Poll(&ended));
      all += ended;
    } while (ended > 0);
    return all;
  }

  const std::shared_ptr<Domain> domain_ = OpenDomain(0);
  std::byte* const memory_ = Allocate(4096);
  const MemoryRegion region_ = Register(domain_.get(), memory_, 4096);
};

TEST_F(LoopbackPairTest, TheGpuSeesItsWritesAfterTheFlush) {
  LoopbackPair pair(domain_, {});
  ASSERT_TRUE(pair.Make(&error_)) << error_;
  char text[] = "bytes";
  MemoryRegion host = Register(domain_.get(), reinterpret_cast<std::byte*>(text), sizeof(text));
  ASSERT_EQ(pair.Write(reinterpret_cast<uintptr_t>(memory_), region_.remote_key, text, host.local_key, 5), 0);
  EXPECT_EQ(EndedAfter(&pair, kNanosPerMs), 1u);
  EXPECT_EQ(Seen(memory_, 5), std::string(5, '\0'));
  ASSERT_EQ(pair.Flush(memory_ + 100, region_.remote_key), 0);
  EXPECT_EQ(EndedAfter(&pair, kNanosPerMs), 1u);
  EXPECT_EQ(Seen(memory_, 5), "bytes");
}

TEST_F(LoopbackPairTest, TakesItsLimitOfRequestsAndThenMoreAgain) {
  LoopbackPair pair(domain_, {});
  ASSERT_TRUE(pair.Make(&error_)) << error_;
  for (uint32_t i = 0; i < LoopbackPair::kRequests; ++i) ASSERT_EQ(pair.Flush(memory_, region_.remote_key), 0) << i;
  EXPECT_EQ(pair.Flush(memory_, region_.remote_key), ENOMEM);
  EXPECT_EQ(EndedAfter(&pair, kNanosPerMs), LoopbackPair::kRequests);
  EXPECT_EQ(pair.Flush(memory_, region_.remote_key), 0);
}

TEST_F(LoopbackPairTest, AKeyThatIsRevokedFails) {
  LoopbackPair pair(domain_, {});
  ASSERT_TRUE(pair.Make(&error_)) << error_;
  ASSERT_EQ(domain_->device()->verbs()->Deregister(region_.id), 0);
  ASSERT_EQ(pair.Flush(memory_, region_.remote_key), 0);
  time_.RunFor(kNanosPerMs);
  uint32_t ended = 0;
  EXPECT_FALSE(pair.Poll(&ended));
}

// A queue pair reaches its own domain alone.
TEST_F(LoopbackPairTest, ARegionOfAnotherDomainIsNotReached) {
  int failed = 0;
  LoopbackPair pair(Domain::Allocate(domain_->device(), &failed), {});
  ASSERT_TRUE(pair.Make(&error_)) << error_;
  ASSERT_EQ(pair.Flush(memory_, region_.remote_key), 0);
  time_.RunFor(kNanosPerMs);
  uint32_t ended = 0;
  EXPECT_FALSE(pair.Poll(&ended));
}

TEST_F(LoopbackPairTest, EachStepThatFailsIsALineThatNamesTheDevice) {
  for (const Call call : {Call::kRegister, Call::kCreateCompletionQueue, Call::kCreateQueuePair, Call::kReadyToReceive}) {
    faulty_.FailCall(call, 1, EINVAL);
    LoopbackPair pair(domain_, {});
    EXPECT_FALSE(pair.Make(&error_));
    EXPECT_EQ(error_.rfind("R2CC: cannot ", 0), 0u);
    EXPECT_NE(error_.find("mlx5_0: Invalid argument"), std::string::npos) << error_;
  }
}

}  // namespace
}  // namespace r2cc::net::verbs
