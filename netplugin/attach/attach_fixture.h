// Plays a daemon's end of the attach socket for tests, with a client.
#ifndef R2CC_NETPLUGIN_ATTACH_ATTACH_FIXTURE_H_
#define R2CC_NETPLUGIN_ATTACH_ATTACH_FIXTURE_H_

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/core/hash.h"
#include "netplugin/attach/attach_client.h"
#include "netplugin/attach/attach_packets.h"
#include "plan/page/text.h"

namespace r2cc::net {

// A daemon's attach socket in the same thread: no call takes time, because a Unix socket delivers at once.
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
    ring = plan::EvidenceRingReader::Create(&error);
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
    if (job_ < 0) return false;
    const ssize_t got = recv(job_, &request, sizeof(request), 0);
    return got == static_cast<ssize_t>(plan::AttachRequestBytes(request.version));
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
    plan.epoch = {static_cast<uint64_t>(daemon_start), counter};
    plan.nics.push_back({"node7", "nic3", plan::PlannedState::kHealthy, weight});
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
  std::unique_ptr<plan::EvidenceRingReader> ring;

 private:
  std::string path_;
  int listener_;
  int job_ = -1;
};

class AttachClientTest : public testing::Test {
 protected:
  AttachClientTest() {
    // Relative: the test's folder may be longer than a socket's path can be.
    EXPECT_EQ(chdir(testing::TempDir().c_str()), 0);
    path_ = "./attach" + std::to_string(getpid()) + ".sock";
    MakeClient(plan::kAttachVersion);
  }

  // `version`: the newest that the plugin supports.
  void MakeClient(uint32_t version) {
    Rail rail;
    rail.name = "eth0";
    plan::AttachRequest request = MakeAttachRequest("job", getpid(), 4711, {rail}, "0.9");
    request.version = version;
    client_ = std::make_unique<AttachClient>(path_, request, [this](LogLevel level, const std::string& line) {
      log_.push_back(line);
      levels_.push_back(level);
    });
  }

  void Poll() { client_->Poll(now_); }
  void PollAfter(Nanos by) {
    now_ += by;
    Poll();
  }
  // From no connection to attached, with a plan.
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
  Nanos now_ = 1000 * kNanosPerSecond;
  std::vector<std::string> log_;
  std::vector<LogLevel> levels_;  // of the lines
  std::unique_ptr<AttachClient> client_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_ATTACH_ATTACH_FIXTURE_H_
