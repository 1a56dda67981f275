// What a daemon that is broken, foreign or hostile can do to the client: nothing.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>

#include <random>

#include "netplugin/attach/attach_fixture.h"

namespace r2cc::net {
namespace {

int OpenDescriptors() {
  int count = 0;
  DIR* folder = opendir("/proc/self/fd");
  while (readdir(folder) != nullptr) ++count;
  closedir(folder);
  return count;
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

TEST_F(AttachClientTest, BadAnswersAreRefusedLoggedOnceAndRetried) {
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
  EXPECT_EQ(Logged("plan page is garbled"), 1);
  close(fd);
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

}  // namespace
}  // namespace r2cc::net
