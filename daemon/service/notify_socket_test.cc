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
