#include "daemon/rpc/client_end.h"

#include <openssl/err.h>
#include <openssl/pem.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace r2cc::daemon {
namespace {

// The limit of a client's certificates. One of ours has about 1 KiB.
constexpr long kChainBytesMax = 16 << 10;
// The protocols' names in a TLS greeting (RFC 7540, 3.3; RFC 7301, 6), each with its length before it.
constexpr unsigned char kHttp2[] = {2, 'h', '2'};
constexpr unsigned char kHttp1[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

template <const auto& wanted>
int Choose(SSL*, const unsigned char** out, unsigned char* out_bytes, const unsigned char* offered, unsigned int bytes, void*) {
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_bytes, wanted, sizeof(wanted), offered, bytes) != OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

void AppendPem(X509* certificate, std::string* pem) {
  BIO* const bio = BIO_new(BIO_s_mem());
  char* text = nullptr;
  if (bio != nullptr && PEM_write_bio_X509(bio, certificate) == 1) {
    const long bytes = BIO_get_mem_data(bio, &text);
    pem->append(text, static_cast<size_t>(bytes));
  }
  BIO_free(bio);
}

class TlsEnd final : public ClientEnd {
 public:
  TlsEnd(int fd, std::unique_ptr<SSL, FreeSsl> ssl) : ClientEnd(fd), ssl_(std::move(ssl)) {}

  absl::Status Greet() override {
    ERR_clear_error();
    const int result = SSL_accept(ssl_.get());
    if (result == 1) return absl::OkStatus();
    if (Judge(result) == kAgain) return absl::UnavailableError("greeting");
    const unsigned long error = ERR_peek_last_error();
    const char* const reason = error == 0 ? nullptr : ERR_reason_error_string(error);
    ERR_clear_error();
    return absl::UnauthenticatedError(reason == nullptr ? "it broke the greeting off" : reason);
  }
  ssize_t Read(char* bytes, size_t most) override {
    ERR_clear_error();
    const int got = SSL_read(ssl_.get(), bytes, static_cast<int>(most));
    return got > 0 ? got : Judge(got);
  }
  ssize_t Write(const char* bytes, size_t count) override {
    ERR_clear_error();
    const int put = SSL_write(ssl_.get(), bytes, static_cast<int>(count));
    return put > 0 ? put : Judge(put);
  }
  void EndWrite() override {
    ERR_clear_error();
    if (SSL_is_init_finished(ssl_.get()) == 1) SSL_shutdown(ssl_.get());
    ERR_clear_error();
    ClientEnd::EndWrite();
  }
  std::string Pem() const override {
    std::string pem;
    X509* const leaf = SSL_get1_peer_certificate(ssl_.get());
    if (leaf == nullptr) return pem;
    AppendPem(leaf, &pem);
    // The server's end has the owner's certificate next to the chain, not in it.
    const STACK_OF(X509)* const chain = SSL_get_peer_cert_chain(ssl_.get());
    for (int i = 0; chain != nullptr && i < sk_X509_num(chain); ++i)
      if (X509* const other = sk_X509_value(chain, i); X509_cmp(other, leaf) != 0) AppendPem(other, &pem);
    X509_free(leaf);
    return pem;
  }

 private:
  ssize_t Judge(int result) const {
    const int error = SSL_get_error(ssl_.get(), result);
    return error == SSL_ERROR_WANT_READ || error == SSL_ERROR_WANT_WRITE ? kAgain : kOver;
  }

  const std::unique_ptr<SSL, FreeSsl> ssl_;
};

}  // namespace

ClientEnd::~ClientEnd() { close(fd_); }

ssize_t ClientEnd::Read(char* bytes, size_t most) {
  const ssize_t got = recv(fd_, bytes, most, MSG_DONTWAIT);
  if (got > 0) return got;
  return got < 0 && (errno == EAGAIN || errno == EINTR) ? kAgain : kOver;
}

ssize_t ClientEnd::Write(const char* bytes, size_t count) {
  const ssize_t put = send(fd_, bytes, count, MSG_DONTWAIT | MSG_NOSIGNAL);
  if (put >= 0) return put;
  return errno == EAGAIN || errno == EINTR ? kAgain : kOver;
}

void ClientEnd::EndWrite() { shutdown(fd_, SHUT_WR); }

absl::StatusOr<SslContextPtr> MakeServerTls(const TlsContents& contents, TlsProtocol protocol) {
  SslContextPtr context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return absl::ResourceExhaustedError("OpenSSL makes no context");
  SSL_CTX* const c = context.get();
  SSL_CTX_set_min_proto_version(c, TLS1_2_VERSION);
  SSL_CTX_set_options(c, SSL_OP_NO_TICKET | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_num_tickets(c, 0);
  SSL_CTX_set_session_cache_mode(c, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(c, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_max_cert_list(c, kChainBytesMax);
  // Any certificate passes here, and none: the caller judges, because it can name the client and the reason of a refusal.
  SSL_CTX_set_verify(c, SSL_VERIFY_PEER, [](int, X509_STORE_CTX*) { return 1; });
  SSL_CTX_set_alpn_select_cb(c, protocol == TlsProtocol::kHttp2 ? Choose<kHttp2> : Choose<kHttp1>, nullptr);
  bool leaf = true;
  for (const X509Ptr& certificate : contents.certificate.chain()) {
    const bool taken = leaf ? SSL_CTX_use_certificate(c, certificate.get()) == 1 : SSL_CTX_add1_chain_cert(c, certificate.get()) == 1;
    if (!taken) return absl::InvalidArgumentError("OpenSSL does not take the certificate");
    leaf = false;
  }
  if (SSL_CTX_use_PrivateKey(c, contents.key.get()) != 1) return absl::InvalidArgumentError("OpenSSL does not take the key");
  return context;
}

std::unique_ptr<ClientEnd> MakeTlsEnd(int fd, SSL_CTX* context) {
  std::unique_ptr<SSL, FreeSsl> ssl(SSL_new(context));
  if (ssl == nullptr || SSL_set_fd(ssl.get(), fd) != 1) {
    close(fd);
    return nullptr;
  }
  return std::make_unique<TlsEnd>(fd, std::move(ssl));
}

}  // namespace r2cc::daemon
