// A TCP port for a test's server.
#ifndef R2CC_DAEMON_RPC_FREE_PORT_H_
#define R2CC_DAEMON_RPC_FREE_PORT_H_

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <set>

namespace r2cc::daemon {

// Free on loopback at the time of asking, and another one each time; listening programs name a port that was taken meanwhile.
inline int FreePort() {
  static std::set<int> given;  // the kernel may offer a port again, whose server has not begun to listen
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t bytes = sizeof(address);
  EXPECT_EQ(bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EQ(getsockname(fd, reinterpret_cast<sockaddr*>(&address), &bytes), 0);
  close(fd);
  const int port = ntohs(address.sin_port);
  return given.insert(port).second ? port : FreePort();
}

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_FREE_PORT_H_
