#include "netplugin/transport/verbs/verbs_transport.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/core/unique_fd.h"
#include "netplugin/transport/verbs/fake_gpus.h"

namespace r2cc::net::verbs {
namespace {

// Rail k is the device mlx5_k, but rail 2 has none.
class VerbsTransportTest : public FakeGpus {
 protected:
  VerbsTransportTest() {
    VerbsTransport::Options& options = options_;
    options.verbs = &faulty_;
    options.clock = &clock_;
    options.random = [this] { return static_cast<uint32_t>(time_.Random()); };
    options.log = [this](LogLevel level, const std::string& line) {
      lines_.push_back(line);
      if (level == LogLevel::kWarn) warnings_.push_back(line);
    };
    options.pause = [this] { time_.RunFor(1'000); };
    options.gpu = &gpu_;
    options.make_control = [this](const std::string&) { return std::make_unique<FakeControlThread>(&time_); };
    options.device_of = [](const Rail& rail, uint8_t*) { return rail.index < 2 ? "mlx5_" + std::to_string(rail.index) : std::string(); };
    options.keys_revoked = [this](uint16_t rail) { revoked_.push_back(rail); };
    options.rail_changed = [this](uint16_t rail) { changed_.push_back(rail); };
    transport_ = std::make_unique<VerbsTransport>(options);
  }
  bool Listen(int rail) { return transport_->Listen({.name = "eth" + std::to_string(rail), .index = rail}, &own_, &error_); }

  bool RegisterGpu(MemoryKind kind, uint16_t rail) {
    Memory memory{.id = 9, .kind = kind, .base = at_, .bytes = 4096};
    memory.gpu = 0;
    if (kind == MemoryKind::kDmaBuf) memory.dma_buf = descriptor_.get();
    Endpoint key;
    error_.clear();
    return transport_->Register(memory, rail, &key, &error_) && !key.empty();
  }

  VerbsTransport::Options options_;
  std::vector<uint16_t> revoked_, changed_;
  std::vector<std::string> lines_, warnings_;
  std::unique_ptr<VerbsTransport> transport_;
  std::byte* const at_ = Allocate(4096);
  const UniqueFd descriptor_{gpu_.DmaBuf(0, at_, 4096)};
  Endpoint own_;
};

TEST_F(VerbsTransportTest, ARailIsItsDevicesPort) {
  ASSERT_TRUE(Listen(0)) << error_;
  RailAddress address;
  EXPECT_TRUE(Decode(own_, &address));
  EXPECT_EQ(transport_->NameOf(0), "mlx5_0");
  EXPECT_EQ(transport_->NameOf(1), "");
  EXPECT_TRUE(transport_->Has({.index = 1}));
  EXPECT_FALSE(transport_->Has({.index = 2}));
  EXPECT_FALSE(Listen(2));
  EXPECT_EQ(error_, "R2CC: rail eth2 has no RDMA device");
}

TEST_F(VerbsTransportTest, WithoutAnAddressItIsThereAndNobodyReachesIt) {
  fabric_.RemoveGid({0, "mlx5_0", 1}, 1);
  EXPECT_TRUE(Listen(0)) << error_;
  EXPECT_TRUE(own_.empty());
}

TEST_F(VerbsTransportTest, TooLittleLockedMemoryIsAnErrorWithItsLimit) {
  faulty_.FailCall(Call::kRegister, 1, ENOMEM);
  EXPECT_FALSE(Listen(0));
  EXPECT_NE(error_.find("the RDMA device mlx5_0 registers no memory: Cannot allocate memory; the limit of locked memory (ulimit -l"),
            std::string::npos)
      << error_;
  EXPECT_NE(error_.find("set R2CC_TRANSPORT=tcp"), std::string::npos);
  EXPECT_EQ(error_.find('\n'), std::string::npos);
}

TEST_F(VerbsTransportTest, TheLimitOfLockedMemoryIsLoggedOnce) {
  faulty_.FailCall(Call::kRegister, 1, ENOMEM, 1);
  EXPECT_FALSE(Listen(0));
  EXPECT_FALSE(Listen(1));
  EXPECT_EQ(error_, "R2CC: the RDMA device mlx5_1 registers no memory: Cannot allocate memory");
  ASSERT_TRUE(Listen(0)) << error_;
  const Memory buffer{.id = 1, .base = at_, .bytes = 4096};
  faulty_.FailCall(Call::kRegister, 1, ENOMEM);
  EXPECT_FALSE(transport_->Register(buffer, 0, &own_, &error_));
  EXPECT_TRUE(warnings_.empty());
  // Another reason is another line.
  faulty_.FailCall(Call::kRegister, 1, EFAULT);
  EXPECT_FALSE(transport_->Register(buffer, 0, &own_, &error_));
  EXPECT_EQ(warnings_.size(), 1u);
}

// The threads run, as when the process has peers. Their locks are held while Listen() is called, and Tick() is the I/O thread's.
class VerbsTransportRunning : public VerbsTransportTest {
 protected:
  void Begin() {
    ASSERT_TRUE(Listen(0) && Listen(1)) << error_;
    transport_->StartThreads(1);
    for (const Call call : {Call::kOpen, Call::kQueryDevice, Call::kQueryPort, Call::kRegister}) faulty_.SlowCall(call, 1);
  }
  // How many calls that may block were made meanwhile.
  uint64_t CallsIn(const std::function<void()>& what) {
    const uint64_t before = faulty_.injected();
    what();
    return faulty_.injected() - before;
  }
  // In the I/O thread none is.
  void TickFor(Nanos time) {
    for (const Nanos end = time_.now() + time; time_.now() < end; time_.RunFor(10 * kNanosPerMs))
      EXPECT_EQ(CallsIn([this] { transport_->Tick(time_.now()); }), 0u);
  }
  void NewGid(int rail, uint8_t last) {
    GidEntry entry{.index = 1, .gid = {}, .type = GidType::kRoceV2};
    entry.gid = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 9, 9, last};
    fabric_.SetGid({0, NameOf(rail), 1}, entry);
  }
};

TEST_F(VerbsTransportRunning, AnEventOfAPortConcernsItsRailAlone) {
  Begin();
  Listen(1);
  const Endpoint before = own_;
  NewGid(1, 7);
  TickFor(100 * kNanosPerMs);
  EXPECT_EQ(changed_, std::vector<uint16_t>{1});
  EXPECT_EQ(CallsIn([this] { EXPECT_TRUE(Listen(1)); }), 0u);
  EXPECT_NE(own_, before);
}

// A GID table of 256 entries that is rebuilt.
TEST_F(VerbsTransportRunning, AStormOfEventsIsOneLook) {
  Begin();
  for (int i = 0; i < 256; ++i) NewGid(1, static_cast<uint8_t>(i));
  EXPECT_EQ(CallsIn([this] { TickFor(100 * kNanosPerMs); }), 1u);
  EXPECT_EQ(changed_, std::vector<uint16_t>{1});
}

TEST_F(VerbsTransportRunning, AnAddressThatIsSetIsLookedAtElsewhere) {
  Begin();
  const Endpoint before = own_;
  fabric_.RemoveGid({0, "mlx5_1", 1}, 1);
  EXPECT_EQ(CallsIn([this] { EXPECT_TRUE(Listen(1)); }), 0u);
  EXPECT_EQ(own_, before) << "where it was is the best guess";
  TickFor(100 * kNanosPerMs);
  EXPECT_TRUE(changed_.empty());
}

TEST_F(VerbsTransportRunning, ALostDeviceIsOpenedAgainAndItsMemoryRegisteredAgain) {
  Begin();
  const Memory buffer{.id = 1, .base = at_, .bytes = 4096};
  ASSERT_TRUE(transport_->Register(buffer, 0, &own_, &error_));
  fabric_.LoseDevice(0, "mlx5_0");
  TickFor(2 * kNanosPerSecond);
  EXPECT_FALSE(transport_->Register(buffer, 0, &own_, &error_));
  fabric_.RestoreDevice(0, "mlx5_0");
  TickFor(5 * kNanosPerSecond);
  EXPECT_EQ(revoked_, std::vector<uint16_t>{0});
  EXPECT_TRUE(transport_->Register(buffer, 0, &own_, &error_)) << error_;
  EXPECT_TRUE(changed_.empty()) << "it is where it was";
}

TEST_F(VerbsTransportRunning, ALostDeviceIsLookedForLessAndLessOften) {
  Begin();
  const bool fails = true;
  faulty_.FailWhile(Call::kOpen, &fails, EACCES);
  faulty_.SlowCall(Call::kOpen, 0);
  fabric_.LoseDevice(0, "mlx5_0");
  transport_->Tick(time_.now());
  fabric_.RestoreDevice(0, "mlx5_0");
  const uint64_t tries = CallsIn([this] { TickFor(60 * kNanosPerSecond); });
  EXPECT_GE(tries, 14u);
  EXPECT_LE(tries, 18u);
  faulty_.Mend();
}

TEST_F(VerbsTransportTest, BothRailsOfADeviceThatIsBackAreRegisteredAgain) {
  options_.device_of = [](const Rail& rail, uint8_t* port) {
    *port = static_cast<uint8_t>(rail.index + 1);
    return std::string("mlx5_9");
  };
  fabric_.AddDevice(0, "mlx5_9", "mlx5_core", 2);
  transport_ = std::make_unique<VerbsTransport>(options_);
  ASSERT_TRUE(Listen(0) && Listen(1)) << error_;
  transport_->StartThreads(1);
  fabric_.LoseDevice(0, "mlx5_9");
  transport_->Tick(time_.now());
  fabric_.RestoreDevice(0, "mlx5_9");
  for (int i = 0; i < 500; ++i) {
    time_.RunFor(10 * kNanosPerMs);
    transport_->Tick(time_.now());
  }
  EXPECT_EQ(revoked_, (std::vector<uint16_t>{0, 1}));
}

TEST_F(VerbsTransportTest, MemoryOfAGpuIsPromisedWhereItWasProved) {
  ASSERT_TRUE(Listen(0) && Listen(1)) << error_;
  EXPECT_TRUE(transport_->Takes(MemoryKind::kHost, 0));
  EXPECT_TRUE(transport_->Takes(MemoryKind::kCuda, 0));
  EXPECT_TRUE(transport_->Takes(MemoryKind::kDmaBuf, 0));
  EXPECT_FALSE(transport_->Takes(MemoryKind::kCuda, 2)) << "no such rail";
  astray_ = true;
  EXPECT_FALSE(transport_->Takes(MemoryKind::kCuda, 1));
  ASSERT_EQ(lines_.size(), 1u);
  EXPECT_NE(lines_[0].find("the RDMA device mlx5_1 does not reach the memory of GPU 0"), std::string::npos) << lines_[0];
}

TEST_F(VerbsTransportTest, DmaBufIsPromisedWhereTheDriverHasIt) {
  fabric_.device(0, "mlx5_0")->limits.dma_buf = false;
  ASSERT_TRUE(Listen(0)) << error_;
  EXPECT_FALSE(transport_->Takes(MemoryKind::kDmaBuf, 0));
  EXPECT_TRUE(transport_->Takes(MemoryKind::kCuda, 0));
}

TEST_F(VerbsTransportTest, MemoryOfAGpuIsRegisteredByItsDmaBufOrElsePlainly) {
  ASSERT_TRUE(Listen(0) && Listen(1)) << error_;
  EXPECT_TRUE(RegisterGpu(MemoryKind::kDmaBuf, 0)) << error_;
  EXPECT_EQ(gpu_.copies, 2) << "one proof";
  gpu_.dma_buf = false;
  EXPECT_TRUE(RegisterGpu(MemoryKind::kDmaBuf, 1)) << error_;
  EXPECT_EQ(gpu_.copies, 4) << "of the other kind";
  EXPECT_TRUE(RegisterGpu(MemoryKind::kCuda, 1)) << error_;
  EXPECT_EQ(gpu_.copies, 4) << "it is proved already";
}

TEST_F(VerbsTransportTest, UnprovedGpuMemoryIsNotRegistered) {
  ASSERT_TRUE(Listen(0)) << error_;
  astray_ = true;
  EXPECT_FALSE(RegisterGpu(MemoryKind::kDmaBuf, 0));
  EXPECT_NE(error_.find("does not reach the memory of GPU 0 by peer memory"), std::string::npos) << error_;
}

}  // namespace
}  // namespace r2cc::net::verbs
