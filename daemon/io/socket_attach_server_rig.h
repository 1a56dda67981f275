// An attach server on a real socket, and the plugin's end of it.
#ifndef R2CC_DAEMON_IO_SOCKET_ATTACH_SERVER_RIG_H_
#define R2CC_DAEMON_IO_SOCKET_ATTACH_SERVER_RIG_H_

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "base/event_loop.h"
#include "daemon/io/socket_attach_server.h"
#include "plan/page/page.h"
#include "plan/page/text.h"

namespace r2cc::daemon {

inline plan::AttachRequest SoundRequest() {
  plan::AttachRequest request{};
  request.magic = plan::kAttachMagic;
  request.version = plan::kAttachVersion;
  request.pid = 1;
  request.rail_count = 2;
  plan::SetText("job", request.job);
  plan::SetText("eth0", request.rails[0].name);
  plan::SetText("eth1", request.rails[1].name);
  return request;
}

// The plugin's end, as plainly as it can be written.
class PluginEnd {
 public:
  explicit PluginEnd(const std::string& path) : fd_(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strcpy(address.sun_path, path.c_str());
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    const timeval patience{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  }
  ~PluginEnd() { close(fd_); }

  bool connected() const { return connected_; }
  void Send(const void* data, size_t bytes) { ASSERT_EQ(send(fd_, data, bytes, MSG_NOSIGNAL), static_cast<ssize_t>(bytes)); }

  // False at the end of the socket.
  bool Receive(plan::AttachReply* reply, int* page_fd, int* ring_fd) {
    iovec part{reply, sizeof(*reply)};
    alignas(cmsghdr) char control[CMSG_SPACE(2 * sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    if (recvmsg(fd_, &message, MSG_CMSG_CLOEXEC) != static_cast<ssize_t>(sizeof(*reply))) return false;
    *page_fd = *ring_fd = -1;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_len == CMSG_LEN(2 * sizeof(int))) {
      std::memcpy(page_fd, CMSG_DATA(header), sizeof(int));
      std::memcpy(ring_fd, CMSG_DATA(header) + sizeof(int), sizeof(int));
    }
    return true;
  }
  char ReceiveByte() {
    char byte = 0;
    return recv(fd_, &byte, 1, 0) == 1 ? byte : '\0';
  }
  int fd() const { return fd_; }

 private:
  int fd_;
  bool connected_;
};

class SocketAttachServerTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = "/tmp/r2cc-attach.XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    path_ = folder_ + "/attach.sock";
    std::string error;
    page_ = plan::PageWriter::Create(&error);
    ASSERT_NE(page_, nullptr) << error;
    MakeServer();
    StartServer();
  }
  void MakeServer() { server_ = std::make_unique<SocketAttachServer>(&thread_.loop(), path_, page_->fd(), AttachAccess()); }
  void StartServer() {
    OnLoop([this] {
      ASSERT_TRUE(server_
                      ->Start({[this](JobId, const JobProcess& process, const plan::AttachRequest& request) {
                                 pid_ = process.pid;
                                 uid_ = static_cast<int>(process.uid);
                                 release_ = request.release;
                                 return AttachDecision{refused_, "n0", std::vector<std::string>(request.rail_count, "rail0")};
                               },
                               [this](JobId, const std::vector<plan::EvidenceRecord>& records, uint64_t) {
                                 records_ += static_cast<int>(records.size());
                               },
                               [this](JobId) { ++ended_; }})
                      .ok());
    });
  }
  void TearDown() override {
    OnLoop([this] { server_.reset(); });
    EXPECT_NE(access(path_.c_str(), F_OK), 0) << "the socket stayed behind";
    rmdir(folder_.c_str());
  }
  void OnLoop(Task task) { ASSERT_TRUE(thread_.loop().RunAndWait(std::move(task))); }
  // The loop turns until `value` is there; a task of ours goes last in each turn.
  void Await(const std::atomic<int>& value, int least) {
    const Nanos end = SteadyClock().Now() + 10 * kNanosPerSecond;
    while (value < least && SteadyClock().Now() < end) OnLoop([] {});
    EXPECT_GE(value, least);
  }

  ScopedLoopThread thread_{"attach-test"};
  std::string folder_;
  std::string path_;
  std::unique_ptr<plan::PageWriter> page_;
  std::unique_ptr<SocketAttachServer> server_;
  std::string refused_;
  std::string release_;  // as the last job states; on the loop
  std::atomic<int> pid_{0};
  std::atomic<int> uid_{-1};
  std::atomic<int> records_{0};
  std::atomic<int> ended_{0};
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_IO_SOCKET_ATTACH_SERVER_RIG_H_
