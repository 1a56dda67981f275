#include "health/io/verbs_rdma_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/core/verbs/fake_fabric.h"
#include "base/core/verbs/fake_verbs.h"
#include "base/core/verbs/faulty_verbs.h"
#include "base/fake_executor.h"

namespace r2cc::health {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using verbs::AsyncEvent;
using verbs::AsyncKind;
using verbs::ContextId;
using verbs::PortState;

// Counts what is open and what is acknowledged; hidden devices are not listed, and make no event.
class CountingVerbs : public verbs::FaultyVerbs {
 public:
  using FaultyVerbs::FaultyVerbs;

  int Devices(std::vector<verbs::DeviceInfo>* devices) override {
    const int error = FaultyVerbs::Devices(devices);
    std::erase_if(*devices, [this](const auto& device) { return hidden.contains(device.name); });
    return error;
  }
  int Open(const std::string& device, ContextId* context, int* async_fd) override {
    const int error = FaultyVerbs::Open(device, context, async_fd);
    if (error == 0) ++open;
    return error;
  }
  int Close(ContextId context) override {
    --open;
    return FaultyVerbs::Close(context);
  }
  int ReadAsyncEvent(ContextId context, AsyncEvent* event) override {
    const int error = FaultyVerbs::ReadAsyncEvent(context, event);
    if (error == 0) ++unacknowledged;
    return error;
  }
  void AckAsyncEvent(ContextId context, const AsyncEvent& event) override {
    --unacknowledged;
    FaultyVerbs::AckAsyncEvent(context, event);
  }

  std::set<std::string> hidden;
  int open = 0;
  int unacknowledged = 0;
};

class VerbsRdmaWatchTest : public testing::Test {
 protected:
  VerbsRdmaWatchTest() {
    fabric_.AddDevice(0, "mlx5_0");
    fabric_.AddDevice(0, "mlx5_1", "mlx5_core", 2);
  }
  void Start() {
    watch_ = std::make_unique<VerbsRdmaWatch>(VerbsRdmaWatch::Seams{&verbs_, &core_, &blocking_,
                                                                    [this](int, std::function<void()> readable) {
                                                                      readable_.push_back(std::move(readable));
                                                                      return absl::OkStatus();
                                                                    },
                                                                    [this](int) { ++unwatched_; }});
    watch_->Start({[this](const std::string& device, uint8_t port, AsyncKind kind) {
                     reports_.push_back(device + "/" + std::to_string(port) + " event " + std::to_string(static_cast<int>(kind)));
                   },
                   [this](const std::string& device, const std::vector<RdmaPort>& ports) { reports_.push_back(device + TextOf(ports)); }});
    EXPECT_THAT(Reports(), IsEmpty()) << "reported from within Start";
    Settle();
  }
  static std::string TextOf(const std::vector<RdmaPort>& ports) {
    if (ports.empty()) return " gone";
    std::string words;
    for (const RdmaPort& port : ports)
      words +=
          (port.info.state == PortState::kActive ? " up " : " down ") + std::to_string(static_cast<int>(port.info.bits_per_second / 1e9));
    return words;
  }
  // Runs the work of both threads, one after the other.
  void Settle() {
    for (int i = 0; i < 4; ++i) {
      blocking_.RunPosted();
      core_.RunPosted();
    }
  }
  // The core sees that descriptors are readable.
  void Wake() {
    for (size_t i = 0; i < readable_.size(); ++i) readable_[i]();
  }
  void PassSweep() {
    core_.Advance(kRdmaSweepInterval);
    Settle();
  }
  std::vector<std::string> Reports() { return std::exchange(reports_, {}); }
  static std::string Event(const std::string& port, AsyncKind kind) { return port + " event " + std::to_string(static_cast<int>(kind)); }

  verbs::FakeTimeline time_;
  verbs::FakeFabric fabric_{&time_};
  verbs::FakeVerbs fake_{&fabric_, 0};
  CountingVerbs verbs_{&fake_};
  FakeExecutor core_;
  FakeExecutor blocking_;
  std::vector<std::function<void()>> readable_;
  int unwatched_ = 0;
  std::vector<std::string> reports_;
  std::unique_ptr<VerbsRdmaWatch> watch_;
};

TEST_F(VerbsRdmaWatchTest, ReportsAllPortsAndSweepsThem) {
  Start();
  EXPECT_THAT(Reports(), ElementsAre("mlx5_0 up 100", "mlx5_1 up 100 up 100"));
  // A speed that changed without an event.
  fabric_.port({0, "mlx5_1", 2})->info.bits_per_second = 25e9;
  PassSweep();
  EXPECT_THAT(Reports(), ElementsAre("mlx5_0 up 100", "mlx5_1 up 100 up 25"));
}

TEST_F(VerbsRdmaWatchTest, EventsAreReportedAtOnceAndThePortIsQueried) {
  Start();
  Reports();
  fabric_.SetCarrier({0, "mlx5_1", 2}, false);
  Wake();
  EXPECT_EQ(verbs_.unacknowledged, 0);
  EXPECT_THAT(Reports(), ElementsAre(Event("mlx5_1/2", AsyncKind::kPortError))) << "nobody waits for what may block";
  Settle();
  EXPECT_THAT(Reports(), ElementsAre("mlx5_1 up 100 down 100"));
}

TEST_F(VerbsRdmaWatchTest, WhileADeviceIsAskedWhatHappensAsksOnceMore) {
  Start();
  Reports();
  for (int i = 0; i < 3; ++i) {
    fabric_.SetCarrier({0, "mlx5_0", 1}, i % 2 != 0);
    Wake();
  }
  Reports();
  Settle();
  EXPECT_THAT(Reports(), ElementsAre("mlx5_0 down 100", "mlx5_0 down 100"));
}

TEST_F(VerbsRdmaWatchTest, APortThatFlapsLeavesTheCoreTimeForOthers) {
  Start();
  Reports();
  for (int i = 0; i < 40; ++i) fabric_.SetCarrier({0, "mlx5_0", 1}, i % 2 != 0);
  readable_[0]();
  EXPECT_EQ(Reports().size(), 16u);
  readable_[0]();
  readable_[0]();
  EXPECT_EQ(Reports().size(), 24u);
  EXPECT_EQ(verbs_.unacknowledged, 0);
}

TEST_F(VerbsRdmaWatchTest, ADeviceThatDiesIsClosedAndOpenedWhenItIsBack) {
  Start();
  Reports();
  fabric_.LoseDevice(0, "mlx5_0");
  Wake();
  EXPECT_THAT(Reports(), ElementsAre(Event("mlx5_0/0", AsyncKind::kDeviceFatal), "mlx5_0 gone"));
  EXPECT_EQ(unwatched_, 1);
  Settle();
  EXPECT_EQ(verbs_.open, 1);
  Wake();  // of the former device
  PassSweep();
  EXPECT_THAT(Reports(), ElementsAre("mlx5_1 up 100 up 100"));
  fabric_.RestoreDevice(0, "mlx5_0");
  PassSweep();
  EXPECT_THAT(Reports(), ElementsAre("mlx5_0 up 100", "mlx5_1 up 100 up 100"));
  fabric_.SetCarrier({0, "mlx5_0", 1}, false);
  Wake();
  EXPECT_THAT(Reports(), ElementsAre(Event("mlx5_0/1", AsyncKind::kPortError)));
}

// Some drivers let a device go only when nobody has it open any more.
TEST_F(VerbsRdmaWatchTest, ADeviceThatIsNoLongerListedIsClosed) {
  Start();
  Reports();
  verbs_.hidden.insert("mlx5_0");
  PassSweep();
  EXPECT_THAT(Reports(), ElementsAre("mlx5_0 gone", "mlx5_1 up 100 up 100"));
  EXPECT_EQ(verbs_.open, 1);
}

// The event was lost with the device.
TEST_F(VerbsRdmaWatchTest, ADeviceThatCannotBeAskedIsGone) {
  Start();
  Reports();
  fabric_.LoseDevice(0, "mlx5_0");
  fabric_.RestoreDevice(0, "mlx5_0");  // another one of that name: the context is as dead as before
  PassSweep();
  EXPECT_THAT(Reports(), ElementsAre("mlx5_0 gone", "mlx5_1 up 100 up 100"));
  PassSweep();
  EXPECT_THAT(Reports(), ElementsAre("mlx5_0 up 100", "mlx5_1 up 100 up 100"));
}

TEST_F(VerbsRdmaWatchTest, ADeviceThatMayNotBeOpenedIsTriedAgain) {
  verbs_.FailCall(verbs::Call::kOpen, 1, EACCES);
  Start();
  EXPECT_THAT(Reports(), ElementsAre("mlx5_1 up 100 up 100"));
  PassSweep();
  EXPECT_THAT(Reports(), ElementsAre("mlx5_0 up 100", "mlx5_1 up 100 up 100"));
}

// The thread that may block is blocked.
TEST_F(VerbsRdmaWatchTest, ASweepWaitsForTheOneBefore) {
  Start();
  Reports();
  for (int i = 0; i < 5; ++i) core_.Advance(kRdmaSweepInterval);
  Settle();
  EXPECT_THAT(Reports(), ElementsAre("mlx5_0 up 100", "mlx5_1 up 100 up 100"));
}

TEST_F(VerbsRdmaWatchTest, ItsEndClosesAllAndPendingAnswersAreDropped) {
  Start();
  Reports();
  fabric_.SetCarrier({0, "mlx5_0", 1}, false);
  Wake();
  Reports();
  watch_.reset();
  EXPECT_EQ(unwatched_, 2);
  Settle();
  EXPECT_EQ(verbs_.open, 0);
  EXPECT_THAT(Reports(), IsEmpty());
}

}  // namespace
}  // namespace r2cc::health
