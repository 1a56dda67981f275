#include "netplugin/attach/attach_client.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>

#include "base/core/fork_guard.h"
#include "netplugin/attach/attach_fixture.h"
#include "netplugin/attach/fake_daemon_link.h"

namespace r2cc::net {
namespace {

TEST_F(AttachClientTest, AttachesAndReadsThePlan) {
  Server server(path_);
  EXPECT_EQ(client_->fd(), -1);
  EXPECT_EQ(client_->page(now_), nullptr);
  const uint64_t generation = client_->page_generation();
  Attach(server, 1, 600);
  EXPECT_GE(client_->fd(), 0);
  EXPECT_STREQ(server.request.job, "job");
  EXPECT_STREQ(server.request.rails[0].name, "eth0");
  EXPECT_STREQ(client_->reply().node, "node7");
  EXPECT_STREQ(client_->reply().nics[0], "nic3");
  EXPECT_EQ(client_->attach_count(), 1u);
  EXPECT_EQ(Weight(), 600);
  EXPECT_NE(client_->page_generation(), generation);
  EXPECT_EQ(log_, std::vector<std::string>{"R2CC: attached to r2ccd at " + path_ + " as a job of node node7"});
}

// A job's child that sleeps holds no copy of the socket: the daemon sees the job's end when the job ends.
TEST_F(AttachClientTest, AForkedChildDoesNotKeepTheSocket) {
  ASSERT_TRUE(fork_guard::InstallOnce());
  Server server(path_);
  Attach(server);
  const pid_t pid = fork();
  if (pid == 0) _exit(fcntl(client_->fd(), F_GETFD) < 0 ? 0 : 1);
  int status = 0;
  ASSERT_EQ(waitpid(pid, &status, 0), pid);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(client_->attached());
  EXPECT_EQ(server.Doorbells(), "");
}

TEST_F(AttachClientTest, PageChangeIsSeenWithAndWithoutDoorbell) {
  Server server(path_);
  Attach(server, 1, 600);
  uint64_t generation = client_->page_generation();
  Poll();
  EXPECT_EQ(client_->page_generation(), generation);
  server.Publish(2, 500, now_);
  server.Send(plan::kDoorbellPage);
  Poll();
  EXPECT_EQ(Weight(), 500);
  EXPECT_NE(client_->page_generation(), generation);
  generation = client_->page_generation();
  server.Publish(3, 400, now_);
  Poll();
  EXPECT_EQ(Weight(), 400);
  EXPECT_NE(client_->page_generation(), generation);
}

TEST_F(AttachClientTest, UnpublishedPageIsNone) {
  Server server(path_);
  Poll();
  ASSERT_TRUE(server.Take());
  server.Accept();
  server.page->Heartbeat(now_);
  Poll();
  EXPECT_TRUE(client_->attached());
  EXPECT_EQ(client_->page(now_), nullptr);
}

TEST_F(AttachClientTest, EvidenceGoesIntoTheRingAndRingsTheBell) {
  Server server(path_);
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkUp);
  client_->Report(record);  // nobody there: dropped
  Attach(server);
  record.bytes = 5;
  client_->Report(record);
  EXPECT_EQ(server.Doorbells(), "E");
  std::vector<plan::EvidenceRecord> out;
  ASSERT_EQ(server.ring->Take(10, &out), 1);
  EXPECT_EQ(out[0].bytes, 5u);
}

TEST_F(AttachClientTest, NumberedRecordsWaitForTheNextDaemon) {
  plan::EvidenceRecord lost{};
  lost.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkLost);
  plan::EvidenceRecord totals{};
  totals.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kRailTotals);
  totals.received_bytes = 77;
  client_->Report(totals);
  client_->Report(lost);
  const auto numbers = [](Server& server) {
    std::vector<plan::EvidenceRecord> records;
    server.ring->Take(5000, &records);
    std::vector<uint64_t> out;
    for (const plan::EvidenceRecord& record : records) out.push_back(record.received_bytes);
    return out;
  };
  {
    Server server(path_);
    Attach(server);
    EXPECT_EQ(numbers(server), std::vector<uint64_t>{1}) << "what happened without a daemon; of totals each daemon hears again";
    client_->Report(totals);
    client_->Report(lost);
    EXPECT_EQ(numbers(server), (std::vector<uint64_t>{77, 2}));
  }
  Poll();
  for (size_t i = 0; i < KeptRecords::kMost; ++i) client_->Report(lost);
  Server server(path_);
  Attach(server);
  const std::vector<uint64_t> again = numbers(server);
  ASSERT_EQ(again.size(), KeptRecords::kMost);
  EXPECT_EQ(again.front(), 3u);
  EXPECT_EQ(again.back(), KeptRecords::kMost + 2);
}

TEST_F(AttachClientTest, ReportNeverBlocksOnADaemonThatReadsNothing) {
  Server server(path_);
  Attach(server);
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kLinkUp);
  for (uint32_t i = 0; i < 3 * plan::kRingRecords; ++i) client_->Report(record);
  EXPECT_EQ(server.ring->dropped(), 2 * plan::kRingRecords);
  Poll();
  EXPECT_TRUE(client_->attached());
}

TEST_F(AttachClientTest, SilentDaemonsVerdictsDecayAndComeBack) {
  Server server(path_);
  Attach(server, 1, 600);
  uint64_t generation = client_->page_generation();
  PollAfter(plan::kPageStaleAfter);
  EXPECT_EQ(Weight(), 600);
  EXPECT_EQ(client_->page_generation(), generation);
  PollAfter(1);
  EXPECT_EQ(Weight(), -1);
  EXPECT_NE(client_->page_generation(), generation);
  EXPECT_TRUE(client_->attached());
  generation = client_->page_generation();
  server.page->Heartbeat(now_);
  Poll();
  EXPECT_EQ(Weight(), 600);
  EXPECT_NE(client_->page_generation(), generation);
}

TEST_F(AttachClientTest, DaemonKilledAndRestarted) {
  auto server = std::make_unique<Server>(path_);
  Attach(*server, 7, 600);
  server.reset();
  Poll();
  EXPECT_FALSE(client_->attached());
  EXPECT_EQ(client_->fd(), -1);
  EXPECT_EQ(Weight(), 600);  // for two seconds its word counts
  EXPECT_STREQ(client_->reply().node, "node7");
  PollAfter(kNanosPerSecond);
  EXPECT_EQ(Weight(), 600);
  const uint64_t generation = client_->page_generation();
  PollAfter(kNanosPerSecond + 1);
  EXPECT_EQ(Weight(), -1);
  EXPECT_NE(client_->page_generation(), generation);

  server = std::make_unique<Server>(path_);
  Attach(*server, 1, 300, /*daemon_start=*/2);
  EXPECT_EQ(Weight(), 300);
  EXPECT_EQ(client_->attach_count(), 2u);
  EXPECT_EQ(Logged("the connection ended"), 1);
}

TEST_F(AttachClientTest, ADaemonThatEndsOnPurposeIsBelievedForLonger) {
  auto server = std::make_unique<Server>(path_);
  Attach(*server, 7, 600);
  server->page->EndOnPurpose(now_);
  server.reset();
  Poll();
  EXPECT_FALSE(client_->attached());
  EXPECT_EQ(log_.back(), "R2CC: r2ccd at " + path_ + " has ended on purpose; its verdicts stay valid for 30 more seconds");
  EXPECT_EQ(levels_.back(), LogLevel::kInfo);
  PollAfter(plan::kPageEndLease);
  EXPECT_EQ(Weight(), 600);
  PollAfter(1);
  EXPECT_EQ(Weight(), -1);
}

TEST_F(AttachClientTest, AnOlderDaemonIsAskedInItsVersionAndTheNextOneInTheNewestAgain) {
  Server server(path_);
  // As the next release asks.
  constexpr uint32_t kNewest = plan::kAttachVersion + 1;
  MakeClient(kNewest);
  const auto ask = [&](uint32_t version) {
    ASSERT_TRUE(server.Take());
    EXPECT_EQ(server.request.version, version);
  };
  PollAfter(3 * kNanosPerSecond);
  ask(kNewest);
  EXPECT_STREQ(server.request.release, "0.9");
  plan::AttachReply refusal{};
  refusal.magic = plan::kAttachMagic;
  refusal.version = plan::kAttachVersionLeast;
  refusal.status = static_cast<uint32_t>(plan::AttachStatus::kWrongVersion);
  const int refused = client_->fd();
  server.Send(refusal);
  Poll();
  EXPECT_NE(client_->fd(), refused) << "a poller that knows the old one would not hear of the new one";
  ask(plan::kAttachVersionLeast);
  plan::AttachReply acceptance = Server::Acceptance();
  acceptance.version = plan::kAttachVersionLeast;
  server.Publish(1, 600, now_);
  server.Send(acceptance, {server.page->fd(), server.ring->fd()});
  Poll();
  EXPECT_TRUE(client_->attached());
  EXPECT_EQ(Weight(), 600);
  EXPECT_EQ(log_.size(), 1u) << "no trouble to tell of: " << log_.back();
  server.Hang();
  Poll();
  PollAfter(3 * kNanosPerSecond);
  ask(kNewest);
  // It may refuse for ever, and is not asked without a pause.
  server.Send(refusal);
  Poll();
  ask(plan::kAttachVersionLeast);
  server.Send(refusal);
  Poll();
  EXPECT_FALSE(server.Take());
  EXPECT_EQ(client_->fd(), -1);
}

TEST_F(AttachClientTest, OldPlanCountsUntilTheNewDaemonHasOne) {
  auto server = std::make_unique<Server>(path_);
  Attach(*server, 7, 600);
  server.reset();
  server = std::make_unique<Server>(path_);
  Poll();
  PollAfter(kNanosPerSecond);
  ASSERT_TRUE(server->Take());
  server->Accept();
  server->page->Heartbeat(now_);
  const uint64_t generation = client_->page_generation();
  Poll();
  EXPECT_TRUE(client_->attached());
  EXPECT_EQ(Weight(), 600);
  EXPECT_EQ(client_->page_generation(), generation);
  server->Publish(1, 100, now_, /*daemon_start=*/2);
  Poll();
  EXPECT_EQ(Weight(), 100);
  EXPECT_NE(client_->page_generation(), generation);
}

TEST_F(AttachClientTest, OldPlanIsDroppedWhenStaleAlsoWithoutANewOne) {
  auto server = std::make_unique<Server>(path_);
  Attach(*server, 7, 600);
  server.reset();
  server = std::make_unique<Server>(path_);
  Poll();
  PollAfter(kNanosPerSecond);
  ASSERT_TRUE(server->Take());
  server->Accept();
  Poll();
  now_ += 2 * kNanosPerSecond;
  server->page->Heartbeat(now_);
  Poll();
  EXPECT_EQ(Weight(), -1);
}

TEST_F(AttachClientTest, RetriesForEverWithGrowingPausesAndOneLine) {
  std::vector<Nanos> attempts;
  // An attempt shows as a connection to a listener that hangs up at once.
  Server server(path_);
  for (int i = 0; i < 60'000; ++i) {
    PollAfter(kNanosPerMs);
    if (server.Take()) attempts.push_back(now_);
    server.Hang();
  }
  ASSERT_GT(attempts.size(), 20u);
  for (size_t i = 1; i < attempts.size(); ++i) {
    const Nanos pause = attempts[i] - attempts[i - 1];
    const Nanos nominal = std::min<Nanos>(2000, 100 << std::min<size_t>(i - 1, 10)) * kNanosPerMs;
    EXPECT_GE(pause, nominal / 4 * 3) << i;
    EXPECT_LE(pause, nominal / 4 * 5 + 3 * kNanosPerMs) << i;
  }
  EXPECT_EQ(Logged("hung up"), 1);
  EXPECT_EQ(log_.size(), 1u);
}

TEST_F(AttachClientTest, AMissingSocketIsLoggedOnce) {
  for (int i = 0; i < 100; ++i) PollAfter(kNanosPerSecond);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0],
            "R2CC: no r2ccd at " + path_ +
                " (No such file or directory): the job runs without it and tries again; set R2CC_ATTACH=none if no r2ccd is wanted");
  EXPECT_EQ(levels_[0], LogLevel::kWarn);
  // Another cause is no news: a daemon that was killed left its socket there.
  { const Server gone(path_); }
  std::ofstream(path_).put('x');
  for (int i = 0; i < 100; ++i) PollAfter(kNanosPerSecond);
  EXPECT_EQ(log_.size(), 1u);
  unlink(path_.c_str());
  Server server(path_);
  Attach(server, 1, 10);
  EXPECT_EQ(Weight(), 10);
}

TEST_F(AttachClientTest, ATooLongPathIsLoggedAndNeverConnects) {
  AttachClient client("/" + std::string(200, 'x'), {}, [this](LogLevel, const std::string& line) { log_.push_back(line); });
  for (int i = 0; i < 10; ++i) client.Poll(now_ += 3 * kNanosPerSecond);
  EXPECT_EQ(Logged("too long"), 1);
}

TEST_F(AttachClientTest, TroubleAfterALongAttachmentIsNewsAgain) {
  auto server = std::make_unique<Server>(path_);
  for (int round = 1; round <= 3; ++round) {
    Attach(*server, static_cast<uint64_t>(round));
    now_ += 20 * kNanosPerSecond;
    server->Hang();
    Poll();
    EXPECT_EQ(Logged("the connection ended"), round);
  }
  // Short ones are not.
  for (uint64_t round = 4; round <= 10; ++round) {
    Attach(*server, round);
    server->Hang();
    Poll();
  }
  EXPECT_EQ(Logged("the connection ended"), 4);
}

TEST_F(AttachClientTest, EndOfTheClientEndsTheConnectionAlsoWithACopyElsewhere) {
  Server server(path_);
  Attach(server);
  const int copy = dup(client_->fd());  // as a forked child has
  client_.reset();
  EXPECT_EQ(server.Doorbells(), "END");
  close(copy);
}

TEST(MakeDaemonLink, EmptyPathMeansNoDaemon) {
  auto link = MakeDaemonLink("", {}, {});
  link->Poll(1);
  EXPECT_EQ(link->fd(), -1);
  EXPECT_FALSE(link->attached());
  EXPECT_EQ(link->page(1), nullptr);
  EXPECT_EQ(link->page_generation(), 0u);
  link->Report({});
  EXPECT_EQ(link->reply().magic, 0u);
}

TEST(FakeDaemonLink, PlaysADaemon) {
  FakeDaemonLink fake;
  EXPECT_EQ(fake.page(1), nullptr);
  plan::Plan plan;
  plan.epoch = {1, 1};
  plan.nics.push_back({"a", "b", plan::PlannedState::kDrained, 0});
  fake.Publish(plan);
  const uint64_t generation = fake.page_generation();
  ASSERT_NE(fake.page(1), nullptr);
  EXPECT_NE(fake.page(1)->Find(Fnv1a64("a"), Fnv1a64("b")), nullptr);
  fake.LosePage();
  EXPECT_NE(fake.page_generation(), generation);
  fake.Attach({});
  EXPECT_TRUE(fake.attached());
  fake.Report({});
  EXPECT_EQ(fake.reported.size(), 1u);
}

}  // namespace
}  // namespace r2cc::net
