// Two hosts with a device each, and a connected queue pair between them, for tests of the fake fabric and of layers above it.
#ifndef R2CC_BASE_CORE_VERBS_FAKE_PAIR_H_
#define R2CC_BASE_CORE_VERBS_FAKE_PAIR_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/core/verbs/fake_fabric.h"
#include "base/core/verbs/fake_time.h"
#include "base/core/verbs/fake_verbs.h"

namespace r2cc::verbs {

constexpr uint32_t kPsn = 77;
constexpr uint32_t kEntries = 64;
constexpr FakeOptions kLate{.placement_late_one_in = 2};

// One end of a connected pair of queue pairs, and memory that the other end may write.
struct End {
  std::unique_ptr<FakeVerbs> verbs;
  ContextId context{};
  DomainId domain{};
  CompletionQueueId queue{};
  QueuePairInfo pair;
  std::vector<std::byte> memory = std::vector<std::byte>(1 << 20);
  MemoryRegion region;

  std::vector<Completion> Poll() {
    std::vector<Completion> all(kEntries);
    size_t taken = 0;
    EXPECT_EQ(verbs->Poll(queue, all, &taken), 0);
    all.resize(taken);
    return all;
  }
};

class FakePair : public testing::Test {
 protected:
  void Make(const FakeOptions& options = {}, const std::string& driver = "mlx5_core") {
    fabric_.emplace(&time_, options);
    for (int host = 0; host < 2; ++host) fabric_->AddDevice(host, "mlx5_0", driver);
    for (int host = 0; host < 2; ++host) MakeEnd(host);
    for (int host = 0; host < 2; ++host) Connect(host);
  }
  void MakeEnd(int host) {
    End& end = ends_[host];
    end.verbs = std::make_unique<FakeVerbs>(&*fabric_, host);
    int fd = 0;
    ASSERT_EQ(end.verbs->Open("mlx5_0", &end.context, &fd), 0);
    ASSERT_EQ(end.verbs->AllocateDomain(end.context, &end.domain), 0);
    ASSERT_EQ(end.verbs->CreateCompletionQueue(end.context, kEntries, {}, &end.queue), 0);
    ASSERT_EQ(end.verbs->Register(end.domain, end.memory.data(), end.memory.size(), kLocalWrite | kRemoteWrite | kRemoteRead, &end.region),
              0);
    ASSERT_EQ(end.verbs->CreateQueuePair(end.domain, {end.queue, end.queue, 16, 16, 1, 1, 64}, &end.pair), 0);
  }
  void Connect(int host, uint8_t retry_cnt = 3) {
    End& end = ends_[host];
    const End& other = ends_[1 - host];
    std::vector<GidEntry> gids;
    ASSERT_EQ(other.verbs->QueryGids(other.context, 1, &gids), 0);
    ASSERT_EQ(end.verbs->Init(end.pair.id, 1, 0, kRemoteWrite | kRemoteRead), 0);
    ReadyToReceive receive{.path = {.gid_index = 1, .remote_gid = gids[0].gid}, .remote_number = other.pair.number};
    receive.receive_psn = kPsn;
    receive.mtu_bytes = 1024;
    ASSERT_EQ(end.verbs->MakeReadyToReceive(end.pair.id, receive), 0);
    ASSERT_EQ(end.verbs->MakeReadyToSend(end.pair.id, {.send_psn = kPsn, .timeout = 14, .retry_cnt = retry_cnt}), 0);
  }
  int Send(SendKind kind, uint64_t wr_id, uint64_t offset, uint32_t bytes, uint32_t immediate = 0, bool signaled = true) {
    End& end = ends_[0];
    const Segment segment{end.memory.data() + offset, bytes, end.region.local_key};
    SendRequest request{.wr_id = wr_id, .kind = kind, .signaled = signaled, .segments = std::span(&segment, 1)};
    request.remote_address = reinterpret_cast<uintptr_t>(ends_[1].memory.data()) + offset;
    request.remote_key = ends_[1].region.remote_key;
    request.immediate = immediate;
    size_t posted = 0;
    return end.verbs->PostSend(end.pair.id, std::span(&request, 1), &posted);
  }
  void Receive(int host, uint64_t wr_id) {
    End& end = ends_[host];
    const Segment segment{end.memory.data() + wr_id * 1024, 1024, end.region.local_key};
    const ReceiveRequest request{wr_id, std::span(&segment, 1)};
    size_t posted = 0;
    ASSERT_EQ(end.verbs->PostReceive(end.pair.id, std::span(&request, 1), &posted), 0);
  }
  void Fill(int host, std::byte with) { std::fill(ends_[host].memory.begin(), ends_[host].memory.end(), with); }
  size_t CountOf(int host, std::byte what) const {
    return static_cast<size_t>(std::count(ends_[host].memory.begin(), ends_[host].memory.end(), what));
  }
  // Writes without end are under way; then the target is fenced by `fence`, painted, and watched.
  size_t LateBytes(const std::function<int(End*)>& fence) {
    Fill(0, std::byte{1});
    for (uint64_t i = 0; i < 8; ++i) EXPECT_EQ(Send(SendKind::kWrite, i, i * 65'536, 65'536), 0);
    time_.RunFor(200'000);
    EXPECT_EQ(fence(&ends_[1]), 0);
    Fill(1, std::byte{7});
    time_.RunFor(100 * kNanosPerMs);
    return ends_[1].memory.size() - CountOf(1, std::byte{7});
  }

  FakeTimeline time_;
  std::optional<FakeFabric> fabric_;
  End ends_[2];
};

}  // namespace r2cc::verbs

#endif  // R2CC_BASE_CORE_VERBS_FAKE_PAIR_H_
