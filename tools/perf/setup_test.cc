#include "tools/perf/setup.h"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tools/perf/fake_net.h"
#include "tools/perf/trace.h"

namespace r2cc::perf {
namespace {

// Rank 0 of two, which is its own peer: its handles are the other rank's as well.
struct TwoChannels {
  explicit TwoChannels(int devices) : setup(&net, &channels, devices, 0, 2) {
    for (int c = 0; c < 2; ++c) {
      channels.emplace_back();
      channels[c].sends.push_back(std::make_unique<SendFlow>(&net, &trace, true, 0, c, 1));
      channels[c].receives.push_back(std::make_unique<ReceiveFlow>(&net, &trace, true, 0, c, 1));
    }
  }
  // Handles are addressed by (receiver, channel, sender): what rank 0 offers to rank 1 serves as what rank 1 offers to rank 0.
  Status ConnectToItself(int64_t timeout_ns) {
    std::string handles, mirrored;
    const Status status = setup.Listen(&handles);
    if (!status.ok()) return status;
    for (size_t at = 0; at < handles.size(); at += 2 * abi::kNetHandleBytesMax)
      mirrored += handles.substr(at + abi::kNetHandleBytesMax, abi::kNetHandleBytesMax) + handles.substr(at, abi::kNetHandleBytesMax);
    return setup.Connect({handles, mirrored}, timeout_ns);
  }

  FakeNet net;
  Trace trace;
  std::vector<Channel> channels;
  Setup setup;
};

TEST(SetupTest, PollsAllUntilAllAreThereThenRegisters) {
  TwoChannels job(2);
  job.net.polls = 7;
  const Status status = job.ConnectToItself(0);
  ASSERT_TRUE(status.ok()) << status.message();
  for (const Channel& channel : job.channels) {
    EXPECT_NE(channel.sends[0]->comm, nullptr);
    EXPECT_NE(channel.receives[0]->comm, nullptr);
  }
  EXPECT_EQ(job.net.open, 4) << "every listener is closed";
  EXPECT_EQ(job.net.registered_bytes, 4 * Flow::kMemoryBytes);
  EXPECT_EQ(job.net.devices_used, (std::vector<int>{0, 1, 0, 1})) << "channel c uses device c";

  ASSERT_TRUE(job.setup.Close().ok());
  EXPECT_EQ(job.net.open, 0);
  EXPECT_EQ(job.net.registered_bytes, 0u);
}

TEST(SetupTest, MoreChannelsThanDevicesShareThem) {
  TwoChannels job(1);
  ASSERT_TRUE(job.ConnectToItself(0).ok());
  EXPECT_EQ(job.net.devices_used, (std::vector<int>{0, 0, 0, 0}));
  EXPECT_TRUE(job.setup.Close().ok());
}

TEST(SetupTest, AConnectionThatNeverComesEndsAtTheTimeout) {
  TwoChannels job(2);
  job.net.polls = 1 << 30;
  const Status status = job.ConnectToItself(20'000'000);
  EXPECT_EQ(status.message(), "no connection was made for 0.0 s (--timeout); 4 are missing, first: accept from rank 1 on channel 0");
}

}  // namespace
}  // namespace r2cc::perf
