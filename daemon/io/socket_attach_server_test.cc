#include "daemon/io/socket_attach_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include "daemon/io/socket_attach_server_rig.h"

namespace r2cc::daemon {
namespace {

TEST_F(SocketAttachServerTest, ADeletedSocketIsMadeAgain) {
  int page_fd, ring_fd;
  plan::AttachReply reply;
  const auto request = SoundRequest();
  PluginEnd attached(path_);
  attached.Send(&request, sizeof(request));
  ASSERT_TRUE(attached.Receive(&reply, &page_fd, &ring_fd));
  OnLoop([this] { EXPECT_TRUE(server_->IsAtPath()); });
  unlink(path_.c_str());
  OnLoop([this] {
    EXPECT_FALSE(server_->IsAtPath());
    EXPECT_TRUE(server_->MakeAgain().ok());
    EXPECT_TRUE(server_->IsAtPath());
  });
  struct stat mode {};
  ASSERT_EQ(stat(path_.c_str(), &mode), 0);
  EXPECT_EQ(mode.st_mode & 0777, 0666u);
  PluginEnd another(path_);
  another.Send(&request, sizeof(request));
  ASSERT_TRUE(another.Receive(&reply, &page_fd, &ring_fd));
  EXPECT_EQ(reply.status, static_cast<uint32_t>(plan::AttachStatus::kAccepted));
  EXPECT_EQ(ended_, 0) << "an attached job stays";
  // If nothing can be made the old one stays.
  ASSERT_EQ(rename(folder_.c_str(), (folder_ + ".gone").c_str()), 0);
  OnLoop([this] { EXPECT_FALSE(server_->MakeAgain().ok()); });
  ASSERT_EQ(rename((folder_ + ".gone").c_str(), folder_.c_str()), 0);
  PluginEnd third(path_);
  third.Send(&request, sizeof(request));
  ASSERT_TRUE(third.Receive(&reply, &page_fd, &ring_fd));
}

TEST_F(SocketAttachServerTest, TheRailsFileIsNextToTheSocketForEveryUser) {
  const std::string path = folder_ + "/rails";
  const auto text = [&] {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  };
  const mode_t before = umask(077);
  OnLoop([this] { server_->OfferRails({7, {"eth1", "eth2"}}); });
  umask(before);
  EXPECT_EQ(text(), "r2cc rails 1\nnetns 7\neth1\neth2\n");
  struct stat mode {};
  ASSERT_EQ(stat(path.c_str(), &mode), 0);
  EXPECT_EQ(mode.st_mode & 0777, 0644u);
  // Somebody cleans the directory.
  unlink(path.c_str());
  unlink(path_.c_str());
  OnLoop([this] { EXPECT_TRUE(server_->MakeAgain().ok()); });
  EXPECT_EQ(text(), "r2cc rails 1\nnetns 7\neth1\neth2\n");
  OnLoop([this] { server_->OfferRails({7, {}}); });
  EXPECT_NE(access(path.c_str(), F_OK), 0);
  OnLoop([this] { server_->OfferRails({7, {}}); });
}

TEST_F(SocketAttachServerTest, AJobGetsPageAndRingAndItsEvidenceArrives) {
  struct stat mode {};
  ASSERT_EQ(stat(path_.c_str(), &mode), 0);
  EXPECT_EQ(mode.st_mode & 0777, 0666u);
  int page_fd, ring_fd;
  plan::AttachReply reply;
  {
    PluginEnd plugin(path_);
    const auto request = SoundRequest();
    plugin.Send(&request, sizeof(request));
    ASSERT_TRUE(plugin.Receive(&reply, &page_fd, &ring_fd));
    ASSERT_TRUE(plan::Valid(reply));
    EXPECT_EQ(reply.status, static_cast<uint32_t>(plan::AttachStatus::kAccepted));
    EXPECT_STREQ(reply.node, "n0");
    EXPECT_STREQ(reply.nics[1], "rail0");
    EXPECT_EQ(pid_, getpid()) << "the kernel's identity, not the job's";
    EXPECT_EQ(uid_, static_cast<int>(getuid()));
    std::string error;
    EXPECT_NE(plan::PageReader::Open(page_fd, &error), nullptr) << error;
    auto ring = plan::EvidenceRingWriter::Open(ring_fd, &error);
    ASSERT_NE(ring, nullptr) << error;

    OnLoop([this] { server_->RingPageDoorbell(); });
    EXPECT_EQ(plugin.ReceiveByte(), plan::kDoorbellPage);

    plan::EvidenceRecord record{};
    record.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kRailTotals);
    // More than one turn takes, on one doorbell.
    for (int i = 0; i < 3 * SocketAttachServer::kRecordsPerTurn; ++i) ASSERT_TRUE(ring->Put(record));
    plugin.Send(&plan::kDoorbellEvidence, 1);
    Await(records_, 3 * SocketAttachServer::kRecordsPerTurn);
    // The last records, without a doorbell, are read at the end.
    ASSERT_TRUE(ring->Put(record));
  }
  Await(ended_, 1);
  EXPECT_EQ(records_, 3 * SocketAttachServer::kRecordsPerTurn + 1);
}

TEST_F(SocketAttachServerTest, AJobThatNeverReadsIsSkipped) {
  PluginEnd plugin(path_);
  const auto request = SoundRequest();
  plugin.Send(&request, sizeof(request));
  plan::AttachReply reply;
  int page_fd, ring_fd;
  ASSERT_TRUE(plugin.Receive(&reply, &page_fd, &ring_fd));
  close(page_fd);
  close(ring_fd);
  OnLoop([this] {
    for (int i = 0; i < 100'000; ++i) server_->RingPageDoorbell();
  });
  EXPECT_EQ(plugin.ReceiveByte(), plan::kDoorbellPage);
}

TEST_F(SocketAttachServerTest, RefusesWithOneLine) {
  const auto reason = [&](const plan::AttachRequest& request, size_t bytes, plan::AttachStatus status) -> std::string {
    PluginEnd plugin(path_);
    plugin.Send(&request, bytes);
    plan::AttachReply reply;
    int page_fd, ring_fd;
    if (!plugin.Receive(&reply, &page_fd, &ring_fd)) return "no reply";
    EXPECT_EQ(page_fd, -1);
    EXPECT_EQ(reply.status, static_cast<uint32_t>(status));
    EXPECT_EQ(plugin.ReceiveByte(), '\0') << "the socket stays open";
    return reply.reason;
  };
  auto request = SoundRequest();
  request.version = 9;
  EXPECT_EQ(reason(request, 8, plan::AttachStatus::kWrongVersion), "attach version 9, this r2ccd uses 2: upgrade r2ccd or the plugin");
  request = SoundRequest();
  request.magic = 0;
  EXPECT_EQ(reason(request, sizeof(request), plan::AttachStatus::kRefused), "this is not an R2CC attach request");
  EXPECT_EQ(reason(request, 1, plan::AttachStatus::kRefused), "this is not an R2CC attach request");
  request = SoundRequest();
  EXPECT_EQ(reason(request, sizeof(request) - 1, plan::AttachStatus::kRefused), "the attach request is garbled");
  request.rail_count = plan::kAttachRailsMax + 1;
  EXPECT_EQ(reason(request, sizeof(request), plan::AttachStatus::kRefused), "the attach request is garbled");
  request = SoundRequest();
  std::memset(request.job, 'x', sizeof(request.job));
  EXPECT_EQ(reason(request, sizeof(request), plan::AttachStatus::kRefused), "the attach request is garbled");
  refused_ = "no";
  EXPECT_EQ(reason(SoundRequest(), sizeof(request), plan::AttachStatus::kRefused), "no");
  EXPECT_EQ(ended_, 0) << "a process that was never attached cannot end";
}

TEST_F(SocketAttachServerTest, GarbageAndSilenceAreBoundedAndCounted) {
  // Silent connections are few for one user; more are closed.
  std::vector<std::unique_ptr<PluginEnd>> silent;
  for (size_t i = 0; i < AttachUsers::kGreetingsMax; ++i) silent.push_back(std::make_unique<PluginEnd>(path_));
  plan::AttachReply reply;
  int page_fd, ring_fd;
  EXPECT_FALSE(PluginEnd(path_).Receive(&reply, &page_fd, &ring_fd));
  silent.clear();
  OnLoop([] {});
  std::string garbage(sizeof(plan::AttachRequest) + 100, 'x');
  for (int i = 0; i < 10'000; ++i) PluginEnd(path_).Send(garbage.data(), 1 + static_cast<size_t>(i) * 7 % garbage.size());
  // A job that asks is served.
  const auto request = SoundRequest();
  const Nanos end = SteadyClock().Now() + 10 * kNanosPerSecond;
  bool served = false;
  while (!served && SteadyClock().Now() < end) {
    PluginEnd plugin(path_);
    plugin.Send(&request, sizeof(request));
    served = plugin.Receive(&reply, &page_fd, &ring_fd) && page_fd >= 0;
    if (served) close(page_fd), close(ring_fd);
  }
  EXPECT_TRUE(served);
  OnLoop([this] { EXPECT_GE(server_->refused(), 10'001u); });
}

TEST_F(SocketAttachServerTest, OlderVersionsAreAnsweredInTheirOwn) {
  for (uint32_t version = plan::kAttachVersionLeast; version <= plan::kAttachVersion; ++version) {
    auto request = SoundRequest();
    request.version = version;
    plan::SetText("9.9", request.release);
    const size_t bytes = plan::AttachRequestBytes(version);
    plan::AttachReply reply;
    int page_fd, ring_fd;
    PluginEnd plugin(path_);
    plugin.Send(&request, bytes);
    ASSERT_TRUE(plugin.Receive(&reply, &page_fd, &ring_fd));
    EXPECT_EQ(reply.version, version);
    EXPECT_EQ(reply.status, static_cast<uint32_t>(plan::AttachStatus::kAccepted));
    close(page_fd);
    close(ring_fd);
    OnLoop([&] { EXPECT_EQ(release_, "9.9"); });
    // A refusal, too.
    PluginEnd garbled(path_);
    garbled.Send(&request, bytes - 1);
    ASSERT_TRUE(garbled.Receive(&reply, &page_fd, &ring_fd));
    EXPECT_EQ(reply.version, version);
    EXPECT_EQ(reply.status, static_cast<uint32_t>(plan::AttachStatus::kRefused));
  }
}

// As over a restart with a service manager that keeps the socket.
TEST_F(SocketAttachServerTest, JobsThatComeBetweenTwoRunsWaitInTheSocketsQueue) {
  int kept = -1;
  std::string name;
  OnLoop([&] {
    name = server_->kept_name();
    kept = dup(server_->listen_fd());
    server_->LeaveSocket();
    server_.reset();
  });
  PluginEnd waiting(path_);
  ASSERT_TRUE(waiting.connected()) << "the queue takes it";
  const auto request = SoundRequest();
  waiting.Send(&request, sizeof(request));
  MakeServer();
  OnLoop([&] { server_->Adopt(kept, name); });
  StartServer();
  plan::AttachReply reply;
  int page_fd, ring_fd;
  ASSERT_TRUE(waiting.Receive(&reply, &page_fd, &ring_fd));
  EXPECT_EQ(reply.status, static_cast<uint32_t>(plan::AttachStatus::kAccepted));
  close(page_fd);
  close(ring_fd);
}

TEST_F(SocketAttachServerTest, ASocketThatIsNotAtThePathIsNotAdopted) {
  const auto adopt = [&](int fd, const std::string& name) {
    OnLoop([&] { server_.reset(); });
    MakeServer();
    OnLoop([&] { server_->Adopt(fd, name); });
    const bool adopted = server_->listen_fd() >= 0;
    EXPECT_EQ(fcntl(fd, F_GETFD) >= 0, adopted);
    StartServer();
    return adopted;
  };
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  EXPECT_FALSE(adopt(pipe_fds[0], server_->kept_name()));
  close(pipe_fds[1]);
  // Another file at the same path: the run directory was made again.
  std::string name;
  int kept = -1;
  OnLoop([&] {
    name = server_->kept_name();
    kept = dup(server_->listen_fd());
  });
  EXPECT_FALSE(adopt(kept, name + "0"));
  EXPECT_TRUE(PluginEnd(path_).connected());
}

TEST_F(SocketAttachServerTest, AStaleSocketIsReplaced) {
  OnLoop([this] { server_.reset(); });
  // The remains of a daemon that was killed: a socket file that nobody listens on.
  const int stale = socket(AF_UNIX, SOCK_SEQPACKET, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strcpy(address.sun_path, path_.c_str());
  ASSERT_EQ(bind(stale, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  close(stale);
  OnLoop([this] {
    server_ = std::make_unique<SocketAttachServer>(&thread_.loop(), path_, page_->fd(), AttachAccess());
    EXPECT_TRUE(server_->Start({}).ok());
  });
  EXPECT_TRUE(PluginEnd(path_).connected());
}

TEST_F(SocketAttachServerTest, APathThatIsTooLongIsNamed) {
  OnLoop([this] {
    SocketAttachServer server(&thread_.loop(), "/tmp/" + std::string(120, 'x'), page_->fd(), AttachAccess());
    EXPECT_NE(server.Start({}).message().find("choose a shorter --run_dir"), std::string::npos);
  });
}

// As root of a container does, which has all uids: each has a few connections.
TEST_F(SocketAttachServerTest, SilentConnectionsOfManyUsersKeepNobodyOut) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: connects as many users";
  rlimit descriptors{};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  descriptors.rlim_cur = descriptors.rlim_max;
  setrlimit(RLIMIT_NOFILE, &descriptors);
  if (descriptors.rlim_cur < 3 * AttachUsers::kPlacesMax) GTEST_SKIP() << "needs root: too few descriptors";
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  std::vector<std::unique_ptr<PluginEnd>> silent;
  for (size_t i = 0; i < AttachUsers::kPlacesMax; ++i) {
    // The time of this thread alone.
    ASSERT_EQ(syscall(SYS_setresuid, -1, 100'000 + i, -1), 0);
    silent.push_back(std::make_unique<PluginEnd>(path_));
    ASSERT_EQ(syscall(SYS_setresuid, -1, 0, -1), 0);
    ASSERT_TRUE(silent.back()->connected());
    if (i % 64 == 0) OnLoop([] {});
  }
  PluginEnd plugin(path_);
  const auto request = SoundRequest();
  plugin.Send(&request, sizeof(request));
  plan::AttachReply reply;
  int page_fd, ring_fd;
  ASSERT_TRUE(plugin.Receive(&reply, &page_fd, &ring_fd));
  EXPECT_EQ(reply.status, static_cast<uint32_t>(plan::AttachStatus::kAccepted)) << reply.reason;
  close(page_fd);
  close(ring_fd);
}

// As on a node with many GPUs, when a job ends: its processes have been silent for long, and each has a last record.
TEST_F(SocketAttachServerTest, EachProcessOfAUserIsReadHoweverManyThereAre) {
  constexpr int kProcesses = static_cast<int>(AttachUsers::kProcessesMax);
  const auto request = SoundRequest();
  std::vector<std::unique_ptr<PluginEnd>> plugins;
  std::vector<std::unique_ptr<plan::EvidenceRingWriter>> rings;
  for (int i = 0; i < kProcesses; ++i) {
    plugins.push_back(std::make_unique<PluginEnd>(path_));
    plugins.back()->Send(&request, sizeof(request));
    plan::AttachReply reply;
    int page_fd, ring_fd;
    ASSERT_TRUE(plugins.back()->Receive(&reply, &page_fd, &ring_fd));
    close(page_fd);
    std::string error;
    rings.push_back(plan::EvidenceRingWriter::Open(ring_fd, &error));
    ASSERT_NE(rings.back(), nullptr) << error;
  }
  for (int look = 0; look < 100; ++look) OnLoop([this] { server_->DrainRings(); });
  plan::EvidenceRecord last{};
  last.kind = static_cast<uint32_t>(plan::EvidenceRecordKind::kEnding);
  last.time_ns = 1;
  for (int i = 0; i < kProcesses; ++i) EXPECT_TRUE(rings[static_cast<size_t>(i)]->Put(last));
  plugins.clear();
  Await(ended_, kProcesses);
  EXPECT_EQ(records_, kProcesses);
}

}  // namespace
}  // namespace r2cc::daemon
