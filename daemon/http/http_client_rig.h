// A client of HTTP on loopback, for tests: it sends bytes as they are given, and blocks.
#ifndef R2CC_DAEMON_HTTP_HTTP_CLIENT_RIG_H_
#define R2CC_DAEMON_HTTP_HTTP_CLIENT_RIG_H_

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace r2cc::daemon {

// One connection.
class HttpClient {
 public:
  explicit HttpClient(int port, int receive_buffer_bytes = 0) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    if (receive_buffer_bytes > 0) setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer_bytes, sizeof(receive_buffer_bytes));
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  }
  ~HttpClient() { close(fd_); }
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  bool connected() const { return connected_; }
  int fd() const { return fd_; }
  void Send(const std::string& bytes) { (void)send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL); }
  // Reads until `end` is in what has come, or the connection ends.
  std::string Until(const std::string& end) {
    while (in_.find(end) == std::string::npos && Receive()) {
    }
    const size_t at = in_.find(end);
    const size_t count = at == std::string::npos ? in_.size() : at + end.size();
    std::string got = in_.substr(0, count);
    in_.erase(0, count);
    return got;
  }
  // One response: its head and its body.
  std::string Response() {
    std::string head = Until("\r\n\r\n");
    const size_t at = head.find("Content-Length: ");
    if (at == std::string::npos) return head;
    const size_t bytes = std::stoul(head.substr(at + 16));
    while (in_.size() < bytes && Receive()) {
    }
    head += in_.substr(0, bytes);
    in_.erase(0, bytes);
    return head;
  }
  // The server has ended it.
  bool Ended() {
    while (Receive()) {
    }
    return over_;
  }

 private:
  bool Receive() {
    char bytes[65536];
    pollfd wait{fd_, POLLIN, 0};
    if (poll(&wait, 1, kPatienceMs) != 1) return false;
    const ssize_t got = recv(fd_, bytes, sizeof(bytes), 0);
    over_ = got <= 0;
    if (got > 0) in_.append(bytes, static_cast<size_t>(got));
    return got > 0;
  }
  static constexpr int kPatienceMs = 20'000;
  const int fd_;
  bool connected_ = false;
  bool over_ = false;
  std::string in_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_HTTP_HTTP_CLIENT_RIG_H_
