// What every test of the contract starts from. The tests are in *_cases.cc, one set for all transports; a transport's own test links them
// and names itself with INSTANTIATE_TEST_SUITE_P.
//
// The contract, in the order in which it is usually broken; the tests' names begin with the words in front:
//
//   Granted       The receiver grants numbered messages, the sender stripes only what was granted. Losing any channel loses no word.
//   Eager         A small message may travel ungranted, within a credit; its copy lives until it is acknowledged.
//   Acknowledged  A send buffer is the transport's until the receiver has the whole message.
//   Fenced        A lost link's chunks travel again only after both ends have ended it, for all of its flows.
//   NoLateWrite   After a receive was reported done nothing writes into its buffer.
//   ExactlyOnce   Each message once, zero bytes too; chunk boundaries are multiples of 128 bytes.
//   Nth           Any number of failures, at either end or both, during a replay, and of the channels that repair it.
//   Silence       A channel that falls silent while another answers is given up; a stopped peer is waited for, a vanished one is an error.
//   Page          The daemon's verdict moves traffic and never takes the last way; a daemon that is gone has no say.
//   Repaired      A rail that is back is used again by itself, proved, and not while it flaps.
//   Abort         One side's abort is the other's error; closing waits for no peer.
//   LastAcks      Acknowledgements outlive their flow and their process.
//   Flush         What is reported done is there, whichever rails carried it.
//   Gray          A slow rail is used for what it moves, and not given up.
//   Paths         Flows open and go on over whatever reaches the peer; without any way, an error at the deadline.
#ifndef R2CC_TESTS_CONTRACT_FIXTURE_H_
#define R2CC_TESTS_CONTRACT_FIXTURE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "tests/contract/job.h"
#include "tests/contract/world.h"

namespace r2cc::contract {

constexpr Nanos kMs = kNanosPerMs;
constexpr Nanos kSecond = kNanosPerSecond;
// For tests that outlast it. A job's start must not: on a link that the test before has just healed a kernel may try anew after a second.
constexpr Nanos kShortDeadline = 1500 * kMs;
constexpr size_t kKiB = 1024;
constexpr size_t kMiB = 1024 * kKiB;
constexpr size_t kLarge = kMiB;  // several chunks

class Contract : public testing::TestWithParam<Transport> {
 protected:
  void SetUp() override {
    if (const std::string missing = GetParam().missing(); !missing.empty()) GTEST_SKIP() << missing;
    // NAME/TRANSPORT
    const std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    const auto lacks = GetParam().lacks.find(name.substr(0, name.find('/')));
    if (lacks != GetParam().lacks.end()) GTEST_SKIP() << "needs the trait: " << lacks->second;
  }
  void TearDown() override {
    if (job_ != nullptr) job_->CheckPoison();
    if (HasFailure() && world_ != nullptr) ShowReports();
    job_.reset();
    world_.reset();
    flows_.clear();
  }

  void Make(const Options& options = {}) {
    options_ = options;
    options_.rail_bytes_per_s = std::min(options.rail_bytes_per_s, GetParam().rail_bytes_per_s_most);
    options_.silence = std::max(options.silence, GetParam().silence_least);
    world_ = GetParam().make(options_);
    ASSERT_NE(world_, nullptr);
    job_ = std::make_unique<Job>(world_.get());
  }
  void ShowReports() const {
    static constexpr const char* kNames[] = {"up", "fenced", "slow", "steady"};
    for (End end = 0; end < 2; ++end)
      for (const RailReport& report : world_->reports(end))
        std::printf("end %d rail %d %s %s, %llu bytes replayed\n", end, report.rail, kNames[static_cast<int>(report.what)],
                    report.cause.c_str(), static_cast<unsigned long long>(report.replayed_bytes));
  }
  // Opens flows from end 0, one at home on each rail in turn or on the rails named, and waits until every link is up and used.
  void Start(int flows) {
    std::vector<int> homes;
    for (int i = 0; i < flows; ++i) homes.push_back(i % kRails);
    StartOn(homes);
  }
  void StartOn(const std::vector<int>& homes) {
    for (const int rail : homes) flows_.push_back(job_->Open(0, rail));
    ASSERT_TRUE(job_->RunUntilOpen(Patience())) << "flows do not open";
    ASSERT_TRUE(job_->RunUntil([this] { return Count(0, RailReport::What::kLinkUp) >= kRails; }, Patience())) << "links do not come up";
    for (const int flow : flows_) job_->Exchange(flow, 1000);
    ASSERT_TRUE(job_->RunUntilDone(Patience()));
  }
  // Keeps the flows busy with large messages.
  bool TrafficUntil(const std::function<bool()>& condition, Nanos limit = Patience()) {
    return job_->Stream(flows_, kLarge, 2, condition, limit);
  }
  bool TrafficFor(Nanos time) {
    return TrafficUntil([&, end = world_->Now() + time] { return world_->Now() >= end; }, time + Patience());
  }
  bool TrafficMore(uint64_t messages) {
    return TrafficUntil([&, n = job_->received_messages() + messages] { return job_->received_messages() >= n; });
  }
  // Bytes per second that arrive meanwhile.
  double Goodput(Nanos time) {
    const uint64_t before = job_->received_bytes();
    const Nanos since = world_->Now();
    const auto over = [&, end = since + time] { return world_->Now() >= end; };
    EXPECT_TRUE(job_->Stream(flows_, kLarge, 4, over, time + Patience()));
    return static_cast<double>(job_->received_bytes() - before) * static_cast<double>(kSecond) / static_cast<double>(world_->Now() - since);
  }
  bool AllFailed() const {
    return std::all_of(flows_.begin(), flows_.end(), [this](int flow) {
      return world_->sender(flow) == FlowState::kFailed && world_->receiver(flow) == FlowState::kFailed;
    });
  }
  // Of anything that ought to happen soon. On a busy machine soon is a long time.
  static Nanos Patience() { return GetParam().patience; }
  static Nanos Slack() { return GetParam().slack; }
  // What a measured rate may fall short of the due one. Rails that are compared are so slow that two processors fill them.
  static double Fair() { return GetParam().real_time ? 0.85 : 0.9; }
  int Count(End end, RailReport::What what, int rail = -1) const {
    return static_cast<int>(std::count_if(world_->reports(end).begin(), world_->reports(end).end(), [&](const RailReport& report) {
      return report.what == what && (rail < 0 || report.rail == rail);
    }));
  }
  int Fences(End end = 0, int rail = -1) const { return Count(end, RailReport::What::kLinkFenced, rail); }
  int LinksUp(End end, int rail) const { return Count(end, RailReport::What::kLinkUp, rail); }
  uint64_t Replayed() const {
    uint64_t bytes = 0;
    for (const RailReport& report : world_->reports(0)) bytes += report.replayed_bytes;
    return bytes;
  }
  uint64_t Left(End end) const {
    uint64_t bytes = 0;
    for (int rail = 0; rail < kRails; ++rail) bytes += world_->LeftBytes(end, rail);
    return bytes;
  }
  // Everything that is posted ends, everything is right, and the flows can still carry.
  void ExpectAllWell() {
    ASSERT_TRUE(job_->RunUntilDone(Patience())) << "a request never ends";
    for (const int flow : flows_) {
      EXPECT_EQ(world_->sender(flow), FlowState::kOpen) << world_->SenderError(flow);
      EXPECT_EQ(world_->receiver(flow), FlowState::kOpen) << world_->ReceiverError(flow);
      job_->Exchange(flow, 300'001);
    }
    ASSERT_TRUE(job_->RunUntilDone(Patience())) << "a flow carries nothing any more";
  }

  void ExpectErrorAfterDeathOf(End end, bool child_holds_sockets) {
    SCOPED_TRACE("end " + std::to_string(end));
    Make({.silence = 100 * kMs});
    Start(2);
    ASSERT_TRUE(TrafficMore(4));
    for (const int flow : flows_) job_->Exchange(flow, 16 * kLarge);
    job_->RunFor(10 * kMs);
    job_->Forget(end);
    world_->KillProcess(end, child_holds_sockets);
    const Nanos since = world_->Now();
    const auto failed = [&](int flow) { return (end == 1 ? world_->sender(flow) : world_->receiver(flow)) == FlowState::kFailed; };
    ASSERT_TRUE(job_->RunUntil([&] { return std::all_of(flows_.begin(), flows_.end(), failed); }, Patience()))
        << "waits for a dead process";
    EXPECT_LT(world_->Now() - since, 4 * kSecond * Slack());
    const std::string error = end == 1 ? world_->SenderError(flows_[0]) : world_->ReceiverError(flows_[0]);
    EXPECT_NE(error.find(world_->Node(end)), std::string::npos) << error;
    EXPECT_EQ(error.find('\n'), std::string::npos) << error;
    TearDown();
  }

  Options options_;
  std::unique_ptr<World> world_;
  std::unique_ptr<Job> job_;
  std::vector<int> flows_;
};

}  // namespace r2cc::contract

#endif  // R2CC_TESTS_CONTRACT_FIXTURE_H_
