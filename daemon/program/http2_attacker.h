// A client that speaks HTTP/2 by hand, in the clear, over TLS or on a Unix socket, and keeps to no rule.
#ifndef R2CC_DAEMON_PROGRAM_HTTP2_ATTACKER_H_
#define R2CC_DAEMON_PROGRAM_HTTP2_ATTACKER_H_

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

namespace r2cc::daemon {

class Http2Attacker {
 public:
  static constexpr uint8_t kData = 0, kHeaders = 1, kRst = 3, kSettings = 4, kPing = 6;

  // `uid`: of the process that connects, from the kernel; root only.
  static std::unique_ptr<Http2Attacker> Local(const std::string& path, uid_t uid) { return Unix(path, uid, SOCK_STREAM); }
  // To a socket of packets.
  static std::unique_ptr<Http2Attacker> LocalPackets(const std::string& path, uid_t uid) { return Unix(path, uid, SOCK_SEQPACKET); }
  // With `tls` it shows no certificate. `source`: the own address, in host order; 0: the kernel's choice.
  // `protocol`: the one that it offers in the handshake.
  static std::unique_ptr<Http2Attacker> Tcp(int port, bool tls, uint32_t source = 0, const std::string& protocol = "h2") {
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (source != 0) {
      sockaddr_in own{};
      own.sin_family = AF_INET;
      own.sin_addr.s_addr = htonl(source);
      (void)!bind(fd, reinterpret_cast<const sockaddr*>(&own), sizeof(own));
    }
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const bool there = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    SSL* ssl = nullptr;
    if (tls) {
      static SSL_CTX* const context = SSL_CTX_new(TLS_client_method());
      const timeval patience{5, 0};
      setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
      ssl = SSL_new(context);
      const std::string offered = std::string(1, static_cast<char>(protocol.size())) + protocol;
      SSL_set_alpn_protos(ssl, reinterpret_cast<const unsigned char*>(offered.data()), static_cast<unsigned>(offered.size()));
      SSL_set_fd(ssl, fd);
    }
    return Made(fd, there && (ssl == nullptr || SSL_connect(ssl) == 1), ssl);
  }
  ~Http2Attacker() {
    SSL_free(ssl_);
    close(fd_);
  }
  Http2Attacker(const Http2Attacker&) = delete;
  Http2Attacker& operator=(const Http2Attacker&) = delete;

  static std::string Frame(uint8_t type, uint8_t flags, uint32_t stream, const std::string& payload) {
    const size_t n = payload.size();
    return std::string({char(n >> 16), char(n >> 8), char(n), char(type), char(flags), char(stream >> 24), char(stream >> 16),
                        char(stream >> 8), char(stream)}) +
           payload;
  }
  static std::string Preface() { return "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + Frame(kSettings, 0, 0, ""); }
  // HPACK: POST, http, then literals that the decoder's table does not keep.
  static std::string Request(const std::string& path) {
    const auto literal = [](char index, const std::string& value) { return std::string({index, char(value.size())}) + value; };
    const auto named = [](const std::string& name, const std::string& value) {
      return std::string({0, char(name.size())}) + name + char(value.size()) + value;
    };
    return "\x83\x86" + literal('\x04', path) + literal('\x01', "r2cc") + named("content-type", "application/grpc") +
           named("te", "trailers");
  }

  // False: the other end has closed. Its bytes are read and dropped.
  bool Send(const std::string& bytes) {
    for (size_t at = 0; at < bytes.size();) {
      ReadAway();
      const ssize_t put = ssl_ != nullptr ? SSL_write(ssl_, bytes.data() + at, static_cast<int>(bytes.size() - at))
                                          : send(fd_, bytes.data() + at, bytes.size() - at, MSG_NOSIGNAL | MSG_DONTWAIT);
      if (put > 0) {
        at += static_cast<size_t>(put);
        continue;
      }
      if (ssl_ != nullptr || errno != EAGAIN) return false;
      pollfd ready{fd_, POLLOUT | POLLIN, 0};
      if (poll(&ready, 1, 5000) != 1) return false;
    }
    return !over_;
  }
  // As far as it is taken at once; nothing is read.
  void SendUnread(const std::string& bytes) {
    if (ssl_ != nullptr)
      (void)SSL_write(ssl_, bytes.data(), static_cast<int>(bytes.size()));
    else
      (void)!send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  }
  // The other end has closed.
  bool over() {
    ReadAway();
    return over_;
  }

 private:
  Http2Attacker(int fd, SSL* ssl) : fd_(fd), ssl_(ssl) {}
  static std::unique_ptr<Http2Attacker> Unix(const std::string& path, uid_t uid, int type) {
    const int fd = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, path.c_str(), sizeof(address.sun_path) - 1);
    const uid_t own = geteuid();
    if (own == 0) (void)!seteuid(uid);
    const bool there = connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
    if (own == 0) (void)!seteuid(own);
    return Made(fd, there, nullptr);
  }
  static std::unique_ptr<Http2Attacker> Made(int fd, bool there, SSL* ssl) {
    std::unique_ptr<Http2Attacker> attacker(new Http2Attacker(fd, ssl));
    if (!there) return nullptr;
    return attacker;
  }
  void ReadAway() {
    char bytes[65536];
    for (;;) {
      // For TLS only the end of the connection matters.
      const ssize_t got = recv(fd_, bytes, sizeof(bytes), MSG_DONTWAIT | (ssl_ != nullptr ? MSG_PEEK : 0));
      if (got == 0) over_ = true;
      if (got < 0 && errno != EAGAIN && errno != EINTR) over_ = true;
      if (got <= 0 || ssl_ != nullptr) break;
    }
    if (ssl_ == nullptr || over_) return;
    pollfd ready{fd_, POLLIN, 0};
    while (poll(&ready, 1, 0) == 1 && !over_)
      if (const int got = SSL_read(ssl_, bytes, sizeof(bytes)); got <= 0) over_ = true;
  }

  const int fd_;
  SSL* const ssl_;
  bool over_ = false;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_PROGRAM_HTTP2_ATTACKER_H_
