#include "daemon/service/notify_socket.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

namespace r2cc::daemon {
namespace {

// The manager's end.
class Listener {
 public:
  explicit Listener(const std::string& name) : fd_(socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, name.data(), name.size());
    if (name.front() == '@') address.sun_path[0] = '\0';
    EXPECT_EQ(bind(fd_, reinterpret_cast<sockaddr*>(&address), static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + name.size())), 0);
  }
  ~Listener() { close(fd_); }
  std::string Take() {
    char text[4096];
    const ssize_t size = recv(fd_, text, sizeof(text), 0);
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }
  // The same, with the descriptor that came along; -1: none did.
  std::string TakeWith(int* descriptor) {
    char text[4096];
    iovec part{text, sizeof(text)};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control;
    message.msg_controllen = sizeof(control);
    const ssize_t size = recvmsg(fd_, &message, MSG_CMSG_CLOEXEC);
    *descriptor = -1;
    if (const cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr && header->cmsg_type == SCM_RIGHTS)
      std::memcpy(descriptor, CMSG_DATA(header), sizeof(int));
    return size < 0 ? "" : std::string(text, static_cast<size_t>(size));
  }

 private:
  int fd_;
};

std::string UniqueName(const char* prefix, const char* what) {
  return std::string(prefix) + "r2cc-notify-" + what + "-" + std::to_string(getpid());
}

TEST(NotifySocketTest, SendsToPathsAndAbstractNames) {
  for (const std::string& name : {UniqueName("/tmp/", "path"), UniqueName("@", "abstract")}) {
    unlink(name.c_str());
    auto sink = NotifySocket::Open(name);
    ASSERT_TRUE(sink.ok()) << sink.status();
    EXPECT_FALSE((*sink)->Notify("READY=1"));  // nobody is there
    Listener listener(name);
    EXPECT_TRUE((*sink)->Notify("READY=1\nSTATUS=well"));
    EXPECT_EQ(listener.Take(), "READY=1\nSTATUS=well");
    EXPECT_EQ(listener.Take(), "");
    unlink(name.c_str());
  }
}

TEST(NotifySocketTest, HandsACopyOfADescriptorOver) {
  const std::string name = UniqueName("@", "keep");
  Listener listener(name);
  auto sink = NotifySocket::Open(name);
  ASSERT_TRUE(sink.ok());
  int pipe_fds[2];
  ASSERT_EQ(pipe(pipe_fds), 0);
  EXPECT_TRUE((*sink)->Keep("attach-7", pipe_fds[1]));
  close(pipe_fds[1]);
  int copy = -1;
  EXPECT_EQ(listener.TakeWith(&copy), "FDSTORE=1\nFDNAME=attach-7");
  ASSERT_GE(copy, 0);
  EXPECT_EQ(write(copy, "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(pipe_fds[0], &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  close(copy);
  close(pipe_fds[0]);
}

TEST(NotifySocketTest, NeverWaits) {
  const std::string name = UniqueName("@", "full");
  Listener listener(name);
  auto sink = NotifySocket::Open(name);
  ASSERT_TRUE(sink.ok());
  int taken = 0;
  while (taken < 1'000'000 && (*sink)->Notify("WATCHDOG=1")) ++taken;
  EXPECT_LT(taken, 1'000'000);
  EXPECT_EQ(listener.Take(), "WATCHDOG=1");
  EXPECT_TRUE((*sink)->Notify("WATCHDOG=1"));
}

TEST(NotifySocketTest, RefusesWhatIsNoAddress) {
  for (const std::string& name : {std::string(), std::string("@"), std::string("run/notify"), "/" + std::string(200, 'x')}) {
    const auto sink = NotifySocket::Open(name);
    EXPECT_EQ(sink.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_NE(std::string(sink.status().message()).find("NOTIFY_SOCKET '" + name + "'"), std::string::npos);
  }
}

}  // namespace
}  // namespace r2cc::daemon
