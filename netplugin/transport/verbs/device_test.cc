#include "netplugin/transport/verbs/device.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <future>
#include <optional>
#include <string>
#include <vector>

#include "netplugin/transport/verbs/fake_control_thread.h"
#include "netplugin/transport/verbs/fake_types.h"

namespace r2cc::net::verbs {
namespace {

constexpr uint8_t kPorts = 2;

class DeviceTest : public testing::Test {
 protected:
  DeviceTest() : fabric_(&time_), fake_(&fabric_, 0), faulty_(&fake_) { fabric_.AddDevice(0, "mlx5_0", "mlx5_core", kPorts); }

  std::shared_ptr<Device> Open(std::string* error) {
    return Device::Open(&faulty_, {"mlx5_0", "mlx5_core", 1}, std::make_unique<FakeControlThread>(&time_), error);
  }
  // Two listeners of each port, with queue pairs and completion queues of their own.
  void ListenAll() {
    for (uint64_t i = 0; i < 4; ++i) {
      Device::Listener listener{
          static_cast<uint8_t>(1 + i / 2), static_cast<QueuePairId>(100 + i), static_cast<CompletionQueueId>(200 + i), nullptr, {}};
      listener.notify = [this, i](Device::Trouble trouble) { notified_.push_back({i, trouble}); };
      tokens_.push_back(device_->Listen(std::move(listener)));
    }
  }
  std::vector<std::pair<uint64_t, Device::Trouble>> After(const AsyncEvent& event) {
    faulty_.Inject(device_->context(), event);
    device_->ReadEvents([this](uint8_t port) { changed_.push_back(port); });
    return std::exchange(notified_, {});
  }

  using Notified = std::vector<std::pair<uint64_t, Device::Trouble>>;
  FakeTimeline time_;
  FakeFabric fabric_;
  FakeVerbs fake_;
  FaultyVerbs faulty_;
  std::string error_;
  std::shared_ptr<Device> device_;
  std::vector<Device::Token> tokens_;
  Notified notified_;
  std::vector<uint8_t> changed_;
};

TEST_F(DeviceTest, EventsGoToWhomTheyAreAbout) {
  ASSERT_NE(device_ = Open(&error_), nullptr) << error_;
  ListenAll();
  using enum Device::Trouble;
  EXPECT_EQ(After({.kind = AsyncKind::kPortError, .port = 2}), (Notified{{2, kPort}, {3, kPort}}));
  EXPECT_EQ(After({.kind = AsyncKind::kQueuePairFatal, .queue_pair = QueuePairId{101}}), (Notified{{1, kQueuePair}}));
  EXPECT_EQ(After({.kind = AsyncKind::kCompletionQueueError, .completion_queue = CompletionQueueId{203}}), (Notified{{3, kDevice}}));
  EXPECT_EQ(After({.kind = AsyncKind::kQueuePairAccessError, .queue_pair = QueuePairId{999}}), Notified{});
  EXPECT_EQ(After({.kind = AsyncKind::kOther}), Notified{});
  device_->Unlisten(tokens_[2]);
  EXPECT_EQ(After({.kind = AsyncKind::kPortError, .port = 2}), (Notified{{3, kPort}}));
  EXPECT_TRUE(changed_.empty());
  EXPECT_EQ(After({.kind = AsyncKind::kPortActive, .port = 1}), Notified{});
  EXPECT_EQ(After({.kind = AsyncKind::kGidChange, .port = 2}), Notified{});
  EXPECT_EQ(changed_, (std::vector<uint8_t>{1, 2}));
  EXPECT_FALSE(device_->lost());
  EXPECT_EQ(After({.kind = AsyncKind::kDeviceFatal}).size(), 3u);
  EXPECT_TRUE(device_->lost());
  EXPECT_EQ(After({.kind = AsyncKind::kDeviceFatal}), Notified{});  // once
}

// Acknowledged in the reader: what an event is about can be destroyed by whoever hears of it.
TEST_F(DeviceTest, EventsAreAcknowledgedBeforeTheyAreReported) {
  ASSERT_NE(device_ = Open(&error_), nullptr);
  CompletionQueueId queue{};
  QueuePairInfo pair;
  ASSERT_EQ(fake_.CreateCompletionQueue(device_->context(), 8, {}, &queue), 0);
  int failed = 0;
  const auto domain = Domain::Allocate(device_, &failed);
  ASSERT_EQ(fake_.CreateQueuePair(domain->id(), {queue, queue, 4, 4, 1, 1, 0}, &pair), 0);
  int destroyed = -1;
  device_->Listen({1, pair.id, queue, nullptr, [&](Device::Trouble) { destroyed = fake_.DestroyQueuePair(pair.id); }});
  fabric_.BreakQueuePair(0, pair.number, AsyncKind::kQueuePairFatal);
  device_->ReadEvents([](uint8_t) {});
  EXPECT_EQ(destroyed, 0);
  EXPECT_EQ(fabric_.hangs(), 0);
  EXPECT_EQ(fake_.DestroyCompletionQueue(queue), 0);
}

TEST_F(DeviceTest, TheGidIsReadAgain) {
  ASSERT_NE(device_ = Open(&error_), nullptr);
  PortInfo info;
  GidEntry gid;
  ASSERT_EQ(device_->LookAt(2, {}, &info, &gid), 0);
  EXPECT_EQ(gid.index, 1u);
  GidEntry moved = gid;
  moved.index = 3;
  fabric_.RemoveGid({0, "mlx5_0", 2}, 1);
  EXPECT_EQ(device_->LookAt(2, {}, &info, &gid), ENETUNREACH);
  fabric_.SetGid({0, "mlx5_0", 2}, moved);
  ASSERT_EQ(device_->LookAt(2, {}, &info, &gid), 0);
  EXPECT_EQ(gid.index, 3u);
  EXPECT_EQ(device_->LookAt(9, {}, &info, &gid), EINVAL);
}

TEST_F(DeviceTest, ADeviceThatCannotBeOpenedIsLoggedInOneLine) {
  faulty_.FailCall(Call::kOpen, 1, EACCES);
  EXPECT_EQ(Open(&error_), nullptr);
  EXPECT_NE(error_.find("mlx5_0"), std::string::npos);
  EXPECT_NE(error_.find("R2CC_TRANSPORT=tcp"), std::string::npos);
  EXPECT_EQ(error_.find('\n'), std::string::npos);
  fabric_.LoseDevice(0, "mlx5_0");
  EXPECT_EQ(Open(&error_), nullptr);
  EXPECT_NE(error_.find("No such device"), std::string::npos);
}

// A fact of the device, not of a call: mlx5 says EIO of a command in a bad state, too.
TEST_F(DeviceTest, IsGoneAfterAFatalEventIfItAnswersNoQuery) {
  ASSERT_NE(device_ = Open(&error_), nullptr);
  const bool fails = true;
  faulty_.FailWhile(Call::kQueryDevice, &fails, EIO);
  EXPECT_FALSE(device_->Answers(1));
  EXPECT_FALSE(device_->IsGone()) << "it has not said so";
  faulty_.Mend();
  After({.kind = AsyncKind::kDeviceFatal});
  EXPECT_FALSE(device_->IsGone()) << "it answers";
  fabric_.LoseDevice(0, "mlx5_0");
  EXPECT_TRUE(device_->IsGone());
  EXPECT_TRUE(device_->gone());
}

TEST_F(DeviceTest, UsersOfADomainAreNotifiedThatItIsRetired) {
  ASSERT_NE(device_ = Open(&error_), nullptr);
  int failed = 0;
  const auto domain = Domain::Allocate(device_, &failed), other = Domain::Allocate(device_, &failed);
  for (const Domain* const of : {domain.get(), other.get()})
    device_->Listen({1, {}, {}, of, [this, of, &other](Device::Trouble trouble) { notified_.push_back({of == other.get(), trouble}); }});
  device_->Retire(other.get());
  EXPECT_EQ(notified_, (Notified{{1, Device::Trouble::kQueuePair}}));
}

// Its last user may be a job of its own control thread: a fence of a device that was lost and replaced, which takes long.
TEST_F(DeviceTest, EndsWhereverItsLastReferenceDoes) {
  const SteadyClock clock;
  for (const JobKind kind : {JobKind::kClose, JobKind::kOpen}) {
    auto device = Device::Open(&fake_, {"mlx5_0", "mlx5_core", 1}, std::make_unique<RealControlThread>(&clock, "r2cc-test"), &error_);
    ASSERT_NE(device, nullptr);
    device->control()->Start();
    ControlThread* const control = device->control();
    const ContextId context = device->context();
    std::promise<void> go, ended;
    control->Submit(kind, [&, held = std::move(device)](Nanos) mutable -> std::optional<Nanos> {
      go.get_future().wait();
      held = nullptr;
      ended.set_value();
      return std::nullopt;
    });
    go.set_value();
    ended.get_future().wait();
    EXPECT_EQ(fake_.Close(context), EINVAL) << "it was closed";
  }
}

TEST(DriverTable, NamesWhoseResetProvesNothing) {
  EXPECT_FALSE(ResetWaits("rdma_rxe"));
  EXPECT_TRUE(ResetWaits("mlx5_core"));
  EXPECT_TRUE(ResetWaits(""));
}

}  // namespace
}  // namespace r2cc::net::verbs
