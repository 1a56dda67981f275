// The client's end of a connection, in the clear or with TLS: bytes in, bytes out, never blocking.
#ifndef R2CC_DAEMON_RPC_CLIENT_END_H_
#define R2CC_DAEMON_RPC_CLIENT_END_H_

#include <openssl/ssl.h>
#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/trust/tls_files.h"

namespace r2cc::daemon {

// Owns the descriptor. One thread at a time.
class ClientEnd {
 public:
  static constexpr ssize_t kAgain = -1;  // nothing now
  static constexpr ssize_t kOver = -2;   // the client has gone, or broke the protocol

  explicit ClientEnd(int fd) : fd_(fd) {}
  virtual ~ClientEnd();
  ClientEnd(const ClientEnd&) = delete;
  ClientEnd& operator=(const ClientEnd&) = delete;

  int fd() const { return fd_; }
  // OK: the handshake is done. UNAVAILABLE: not yet. Another status: it failed.
  virtual absl::Status Greet() { return absl::OkStatus(); }
  // More than 0 bytes, or kAgain, or kOver.
  virtual ssize_t Read(char* bytes, size_t most);
  virtual ssize_t Write(const char* bytes, size_t count);
  // Ends the own direction.
  virtual void EndWrite();
  // The client's certificate, then those behind it, once the handshake is done; empty: none.
  virtual std::string Pem() const { return ""; }

 private:
  const int fd_;
};

struct FreeSslContext {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};
using SslContextPtr = std::unique_ptr<SSL_CTX, FreeSslContext>;

// Protocols that a client may ask for in the handshake (ALPN); a client that asks for none is accepted, too.
enum class TlsProtocol { kHttp2, kHttp1 };

// A server's TLS with the certificate of `contents`: asks for the client's certificate, resumes and renegotiates nothing, and leaves the
// judgement of what is shown to the caller.
absl::StatusOr<SslContextPtr> MakeServerTls(const TlsContents& contents, TlsProtocol protocol = TlsProtocol::kHttp2);

// Takes `fd`. Null: out of memory; `fd` is closed.
std::unique_ptr<ClientEnd> MakeTlsEnd(int fd, SSL_CTX* context);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_CLIENT_END_H_
