#include "netplugin/attach/attach_client.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <random>

#include "base/core/hash.h"
#include "netplugin/attach/attach_words.h"
#include "netplugin/attach/fake_daemon_link.h"
#include "plan/page/text.h"

namespace r2cc::net {
namespace {

constexpr Nanos kStart = 1000 * kNanosPerSecond;

int OpenDescriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
}

// A daemon's attach socket in the same thread: nothing here takes time, because a Unix socket delivers at once.
class Server {
 public:
  explicit Server(const std::string& path) : path_(path) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    unlink(path.c_str());
    listener_ = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    EXPECT_EQ(bind(listener_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0) << std::strerror(errno);
    EXPECT_EQ(listen(listener_, 8), 0);
    std::string error;
    page = plan::PageWriter::Create(&error);
    ring = plan::RingReader::Create(&error);
    EXPECT_NE(page, nullptr) << error;
    EXPECT_NE(ring, nullptr) << error;
  }
  ~Server() {
    Hang();
    close(listener_);
    unlink(path_.c_str());
  }

  // Takes the next connection and its request; false if there is none.
  bool Take() {
    Hang();
    job_ = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    return job_ >= 0 && recv(job_, &request, sizeof(request), 0) == static_cast<ssize_t>(sizeof(request));
  }
  void Hang() {
    if (job_ >= 0) close(job_);
    job_ = -1;
  }
  static plan::AttachReply Acceptance() {
    plan::AttachReply reply{};
    reply.magic = plan::kAttachMagic;
    reply.version = plan::kAttachVersion;
    reply.rail_count = 1;
    plan::SetText("node7", reply.node);
    plan::SetText("nic3", reply.nics[0]);
    return reply;
  }
  void Accept() { Send(Acceptance(), {page->fd(), ring->fd()}); }
  template <typename T>
  void Send(const T& packet, const std::vector<int>& fds = {}) {
    SendBytes(&packet, sizeof(packet), fds);
  }
  void SendBytes(const void* data, size_t bytes, const std::vector<int>& fds = {}) {
    iovec part{const_cast<void*>(data), bytes};
    std::vector<char> control(CMSG_SPACE(sizeof(int) * fds.size()));
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds.empty()) {
      message.msg_control = control.data();
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof(int) * fds.size());
      std::memcpy(CMSG_DATA(header), fds.data(), sizeof(int) * fds.size());
    }
    EXPECT_EQ(sendmsg(job_, &message, MSG_NOSIGNAL), static_cast<ssize_t>(bytes)) << std::strerror(errno);
  }
  // A plan for node7/nic3.
  void Publish(uint64_t counter, uint16_t weight, Nanos now, int64_t daemon_start = 1) {
    plan::Plan plan;
    plan.epoch = {5, daemon_start, counter};
    plan.nics.push_back({"node7", "nic3", plan::NicState::kHealthy, weight});
    std::string error;
    EXPECT_TRUE(page->Publish(plan, now, &error)) << error;
  }
  // The bytes that came from the job; "" if none, "END" if it hung up.
  std::string Doorbells() {
    std::string all;
    char byte;
    for (ssize_t got; (got = recv(job_, &byte, 1, MSG_DONTWAIT)) >= 0;) {
      if (got == 0) return all + "END";
      all += byte;
    }
    return all;
  }

  plan::AttachRequest request{};
  std::unique_ptr<plan::PageWriter> page;
  std::unique_ptr<plan::RingReader> ring;

 private:
  std::string path_;
  int listener_;
  int job_ = -1;
};

class AttachClientTest : public testing::Test {
 protected:
  AttachClientTest() {
    // Relative: TEST_TMPDIR may be longer than a socket's path can be.
    EXPECT_EQ(chdir(std::getenv("TEST_TMPDIR")), 0);
    path_ = "./attach" + std::to_string(getpid()) + ".sock";
    Rail rail;
    rail.name = "eth0";
    client_ = std::make_unique<AttachClient>(path_, MakeAttachRequest("job", getpid(), 4711, {rail}),
                                             [this](LogLevel, const std::string& line) { log_.push_back(line); });
  }

  void Poll() { client_->Poll(now_); }
  void PollAfter(Nanos by) {
    now_ += by;
    Poll();
  }
  // From nothing to attached, with a plan.
  void Attach(Server& server, uint64_t counter = 1, uint16_t weight = 1000, int64_t daemon_start = 1) {
    server.Publish(counter, weight, now_, daemon_start);
    PollAfter(3 * kNanosPerSecond);  // past any back-off
    ASSERT_TRUE(server.Take());
    server.page->Heartbeat(now_);
    server.Accept();
    Poll();
    ASSERT_TRUE(client_->attached());
  }
  int Weight() const {
    const plan::PageCopy* page = client_->page(now_);
    if (page == nullptr) return -1;
    const plan::PageEntry* entry = page->Find(Fnv1a64("node7"), Fnv1a64("nic3"));
    return entry == nullptr ? -2 : entry->weight_permille;
  }
  int Logged(const std::string& part) const {
    int count = 0;
    for (const std::string& line : log_) count += line.find(part) != std::string::npos;
    return count;
  }

  std::string path_;
  Nanos now_ = kStart;
  std::vector<std::string> log_;
  std::unique_ptr<AttachClient> client_;
};

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
  record.kind = static_cast<uint32_t>(plan::EvidenceKind::kLinkUp);
  client_->Report(record);  // nobody there: dropped
  Attach(server);
  record.bytes = 5;
  client_->Report(record);
  EXPECT_EQ(server.Doorbells(), "E");
  std::vector<plan::EvidenceRecord> out;
  ASSERT_EQ(server.ring->Take(10, &out), 1);
  EXPECT_EQ(out[0].bytes, 5u);
}

TEST_F(AttachClientTest, ReportNeverBlocksOnADaemonThatReadsNothing) {
  Server server(path_);
  Attach(server);
  plan::EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(plan::EvidenceKind::kLinkUp);
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

TEST_F(AttachClientTest, NoSocketIsSaidOnce) {
  for (int i = 0; i < 100; ++i) PollAfter(kNanosPerSecond);
  ASSERT_EQ(log_.size(), 1u);
  EXPECT_EQ(log_[0], "R2CC: no r2ccd at " + path_ + " (No such file or directory): going on without it, trying again");
  Server server(path_);
  Attach(server, 1, 10);
  EXPECT_EQ(Weight(), 10);
}

TEST_F(AttachClientTest, PathTooLongIsSaidAndNeverConnects) {
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

TEST_F(AttachClientTest, DaemonThatNeverAnswersIsLeft) {
  Server server(path_);
  Poll();
  ASSERT_TRUE(server.Take());
  PollAfter(2 * kNanosPerSecond);
  EXPECT_GE(client_->fd(), 0);
  PollAfter(1);
  EXPECT_EQ(client_->fd(), -1);
  EXPECT_EQ(Logged("does not answer"), 1);
  Attach(server);
}

TEST_F(AttachClientTest, BadAnswersAreRefusedSaidOnceAndRetried) {
  Server server(path_);
  const auto refuse = [&](const std::string& expected, auto send) {
    for (int i = 0; i < 3; ++i) {
      PollAfter(3 * kNanosPerSecond);
      ASSERT_TRUE(server.Take()) << expected;
      send();
      Poll();
      EXPECT_FALSE(client_->attached()) << expected;
      EXPECT_EQ(client_->fd(), -1) << expected;
      EXPECT_EQ(client_->page(now_), nullptr);
    }
    EXPECT_EQ(Logged(expected), 1) << expected;
  };
  const int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
  plan::AttachReply reply = Server::Acceptance();
  refuse("garbled", [&] { server.SendBytes("garbage", 7); });
  refuse("attach version 9", [&] {
    reply.version = 9;
    server.Send(reply, {server.page->fd(), server.ring->fd()});
  });
  refuse("it refused: too many jobs", [&] {
    reply = Server::Acceptance();
    reply.status = static_cast<uint32_t>(plan::AttachStatus::kRefused);
    plan::SetText("too many jobs", reply.reason);
    server.Send(reply);
  });
  refuse("it sent 0 descriptors", [&] { server.Send(Server::Acceptance()); });
  refuse("it sent 1 descriptors", [&] { server.Send(Server::Acceptance(), {server.page->fd()}); });
  refuse("it sent 3 descriptors", [&] { server.Send(Server::Acceptance(), {server.page->fd(), server.ring->fd(), null_fd}); });
  refuse("page: the descriptor is not a sealed memfd", [&] { server.Send(Server::Acceptance(), {null_fd, server.ring->fd()}); });
  refuse("ring: the descriptor is not a sealed memfd", [&] { server.Send(Server::Acceptance(), {server.page->fd(), null_fd}); });
  refuse("page has a foreign magic", [&] { server.Send(Server::Acceptance(), {server.ring->fd(), server.page->fd()}); });
  close(null_fd);
  Attach(server, 1, 70);
  EXPECT_EQ(Weight(), 70);
}

TEST_F(AttachClientTest, ProtocolBreachAfterTheAttachmentEndsIt) {
  Server server(path_);
  Attach(server, 1, 600);
  server.Send('?');  // a doorbell of a later release
  Poll();
  EXPECT_TRUE(client_->attached());
  server.SendBytes("PP", 2);
  Poll();
  EXPECT_FALSE(client_->attached());
  EXPECT_EQ(server.Doorbells(), "END");
  EXPECT_EQ(Weight(), 600);  // until its heartbeat is stale
  EXPECT_EQ(Logged("broke the attach protocol"), 1);
}

TEST_F(AttachClientTest, GarbledPageKeepsTheLastGoodPlan) {
  Server server(path_);
  Attach(server, 1, 600);
  // The daemon's own memory is read-only to others by now, so a page is handed over that was never sound.
  const int fd = memfd_create("page", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(fd, plan::kPageBytes), 0);
  const uint64_t header[5] = {plan::kPageMagic, plan::kPageVersion, static_cast<uint64_t>(now_ + 4 * kNanosPerSecond), 2, 12345};
  ASSERT_EQ(pwrite(fd, header, sizeof(header), 0), static_cast<ssize_t>(sizeof(header)));
  ASSERT_EQ(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | 0x0010 | F_SEAL_SEAL), 0);
  server.Hang();
  Poll();
  PollAfter(4 * kNanosPerSecond);
  server.page->Heartbeat(now_);
  ASSERT_TRUE(server.Take());
  server.Send(Server::Acceptance(), {fd, server.ring->fd()});
  Poll();
  EXPECT_TRUE(client_->attached());
  EXPECT_EQ(Weight(), 600);
  EXPECT_EQ(Logged("torn or garbled"), 1);
  close(fd);
}

TEST_F(AttachClientTest, EndOfTheClientEndsTheConnectionAlsoWithACopyElsewhere) {
  Server server(path_);
  Attach(server);
  const int copy = dup(client_->fd());  // as a forked child has
  client_.reset();
  EXPECT_EQ(server.Doorbells(), "END");
  close(copy);
}

TEST_F(AttachClientTest, NoDescriptorIsLeaked) {
  auto server = std::make_unique<Server>(path_);
  Attach(*server);
  const int before = OpenDescriptors();
  for (uint64_t round = 2; round < 20; ++round) {
    if (round % 2 == 0) {
      server->Send('P', {server->page->fd(), server->ring->fd()});  // descriptors that nobody asked for
    } else {
      server->SendBytes("garbage", 7, {server->page->fd()});
    }
    Poll();
    EXPECT_FALSE(client_->attached());
    Attach(*server, round);
    EXPECT_EQ(OpenDescriptors(), before);
  }
}

TEST_F(AttachClientTest, FuzzConversations) {
  std::mt19937_64 random(8);
  Server server(path_);
  server.Publish(1, 600, now_);
  int attached = 0;
  for (int i = 0; i < 3000; ++i) {
    PollAfter(3 * kNanosPerSecond);
    server.page->Heartbeat(now_);
    if (!server.Take()) continue;
    plan::AttachReply reply = Server::Acceptance();
    auto* bytes = reinterpret_cast<unsigned char*>(&reply);
    for (uint64_t flips = random() % 3; flips > 0; --flips) bytes[random() % sizeof(reply)] = static_cast<unsigned char>(random());
    std::vector<int> fds(random() % 4, server.page->fd());
    if (fds.size() == 2 && random() % 4 != 0) fds[1] = server.ring->fd();
    server.SendBytes(&reply, random() % 8 == 0 ? random() % sizeof(reply) + 1 : sizeof(reply), fds);
    Poll();
    attached += client_->attached();
    if (!client_->attached()) continue;
    const uint64_t noise[4] = {random(), random(), random(), random()};
    server.SendBytes(noise, random() % 3 == 0 ? 1 + random() % sizeof(noise) : 1, {});
    Poll();
    server.Hang();
    Poll();
    EXPECT_FALSE(client_->attached());
  }
  EXPECT_GT(attached, 100);
  EXPECT_LT(attached, 2900);
  EXPECT_LE(log_.size(), 16u);
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
  plan.epoch = {1, 1, 1};
  plan.nics.push_back({"a", "b", plan::NicState::kDrained, 0});
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
