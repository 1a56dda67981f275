// libibverbs behind our seam, on soft-RoCE devices whose cables are pulled. In a guest.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <net/if.h>
#include <poll.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/core/verbs/libibverbs.h"
#include "tests/rigs/one_guest/verbs_end.h"

namespace r2cc::rig {
namespace {

using testing::Contains;
using testing::SizeIs;
using testing::UnorderedElementsAre;
using verbs::AsyncEvent;
using verbs::AsyncKind;
using verbs::Completion;
using verbs::CompletionKind;
using verbs::Status;

constexpr int kPatienceMs = 10000;  // waits end as soon as what they wait for is there
constexpr size_t kBytes = 65536;

class VerbsInGuest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(verbs_.missing(), ""); }

  // The kinds of events of the end's port, until `last` came or patience ended.
  std::vector<AsyncKind> EventsUntil(const VerbsEnd& end, AsyncKind last) {
    std::vector<AsyncKind> kinds;
    pollfd readable{.fd = end.async_fd(), .events = POLLIN, .revents = 0};
    while (poll(&readable, 1, kPatienceMs) == 1) {
      AsyncEvent event;
      if (verbs_.ReadAsyncEvent(end.context(), &event) != 0) break;
      verbs_.AckAsyncEvent(end.context(), event);
      EXPECT_EQ(event.port, 1);
      kinds.push_back(event.kind);
      if (event.kind == last) break;
    }
    return kinds;
  }

  verbs::PortState StateOf(const VerbsEnd& end) {
    verbs::PortInfo info;
    EXPECT_EQ(verbs_.QueryPort(end.context(), 1, &info), 0);
    return info.state;
  }

  static std::vector<Completion> Await(size_t count, const std::function<std::vector<Completion>()>& poll_queue) {
    const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kPatienceMs);
    std::vector<Completion> all;
    while (all.size() < count && std::chrono::steady_clock::now() < until)
      for (const Completion& completion : poll_queue()) all.push_back(completion);
    return all;
  }

  verbs::Libibverbs verbs_;
};

TEST_F(VerbsInGuest, EachNodeHasADeviceForEachRail) {
  std::vector<verbs::DeviceInfo> devices;
  ASSERT_EQ(verbs_.Devices(&devices), 0);
  std::vector<std::string> names;
  for (const verbs::DeviceInfo& device : devices) {
    names.push_back(device.name);
    EXPECT_EQ(device.driver, "rdma_rxe");
    const VerbsEnd end(&verbs_, device.name, kBytes);
    verbs::PortInfo port;
    ASSERT_EQ(verbs_.QueryPort(end.context(), 1, &port), 0);
    EXPECT_EQ(port.state, verbs::PortState::kActive);
    EXPECT_EQ(port.link_layer, verbs::LinkLayer::kEthernet);
    EXPECT_EQ(port.mtu_bytes, 4096u);
    // As the kernel has it: "10 Gb/sec (1X FDR10)".
    std::ifstream rate("/sys/class/infiniband/" + device.name + "/ports/1/rate");
    double rate_gbps = 0;
    ASSERT_TRUE(rate >> rate_gbps);
    EXPECT_EQ(port.bits_per_second, rate_gbps * 1e9);
    // rxe0a is of v0a.
    EXPECT_EQ(AddressOf(&verbs_, end.context()).interface_index, if_nametoindex(("v" + device.name.substr(3)).c_str()));
  }
  EXPECT_THAT(names, UnorderedElementsAre("rxe0a", "rxe0b", "rxe1a", "rxe1b"));
}

TEST_F(VerbsInGuest, ACableThatIsPulledAndPluggedInShowsAtBothEnds) {
  const VerbsEnd a(&verbs_, "rxe0a", kBytes);
  const VerbsEnd b(&verbs_, "rxe0b", kBytes);
  const VerbsEnd other(&verbs_, "rxe1a", kBytes);
  ASSERT_EQ(std::system("ip link set v0a down"), 0);
  for (const VerbsEnd* end : {&a, &b}) {
    EXPECT_THAT(EventsUntil(*end, AsyncKind::kPortError), Contains(AsyncKind::kPortError));
    EXPECT_EQ(StateOf(*end), verbs::PortState::kDown);
  }
  EXPECT_EQ(StateOf(other), verbs::PortState::kActive);
  ASSERT_EQ(std::system("ip link set v0a up"), 0);
  for (const VerbsEnd* end : {&a, &b}) {
    EXPECT_THAT(EventsUntil(*end, AsyncKind::kPortActive), Contains(AsyncKind::kPortActive));
    EXPECT_EQ(StateOf(*end), verbs::PortState::kActive);
  }
}

TEST_F(VerbsInGuest, AWriteWithImmediateArrivesAndErrFlushesWhatIsPosted) {
  VerbsEnd a(&verbs_, "rxe1a", kBytes);
  VerbsEnd b(&verbs_, "rxe1b", kBytes);
  VerbsEnd::Connect(&a, &b, {});
  b.PostReceive();
  b.PostReceive();
  a.memory().assign(kBytes, 0x5a);
  ASSERT_EQ(a.Write(kBytes, true), 0);
  const std::vector<Completion> sent = Await(1, [&] { return a.PollSends(); });
  const std::vector<Completion> received = Await(1, [&] { return b.PollReceives(); });
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].status, Status::kSuccess);
  ASSERT_THAT(received, SizeIs(1));
  EXPECT_EQ(received[0].kind, CompletionKind::kReceiveWriteWithImmediate);
  EXPECT_EQ(received[0].wr_id, 1u);
  EXPECT_EQ(received[0].immediate, kBytes);
  EXPECT_EQ(received[0].bytes, kBytes);
  EXPECT_EQ(b.memory(), a.memory());

  ASSERT_EQ(verbs_.SetState(b.pair(), verbs::QueuePairState::kError), 0);
  const std::vector<Completion> flushed = Await(1, [&] { return b.PollReceives(); });
  ASSERT_THAT(flushed, SizeIs(1));
  EXPECT_EQ(flushed[0].status, Status::kFlushed);
  EXPECT_EQ(flushed[0].wr_id, 2u);
}

TEST_F(VerbsInGuest, AKeyThatIsNoneIsRefusedAndNothingIsWritten) {
  VerbsEnd a(&verbs_, "rxe1a", kBytes);
  VerbsEnd b(&verbs_, "rxe1b", kBytes);
  VerbsEnd::Connect(&a, &b, {});
  b.PostReceive();
  a.memory().assign(kBytes, 0x5a);
  ASSERT_EQ(a.Write(kBytes, true, 0x55), 0);
  const std::vector<Completion> sent = Await(1, [&] { return a.PollSends(); });
  ASSERT_THAT(sent, SizeIs(1));
  EXPECT_EQ(sent[0].status, Status::kRemoteAccess);
  EXPECT_EQ(b.memory(), std::vector<uint8_t>(kBytes));
}

TEST_F(VerbsInGuest, SoftRoceHasNoDmaBuf) {
  const VerbsEnd a(&verbs_, "rxe1a", kBytes);
  verbs::MemoryRegion region;
  EXPECT_EQ(verbs_.RegisterDmaBuf(a.domain(), -1, 0, kBytes, 0, verbs::kLocalWrite, &region), EOPNOTSUPP);
}

}  // namespace
}  // namespace r2cc::rig
