#include "client/conditions/kubernetes_api.h"

#include <errno.h>
#include <netdb.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <functional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "base/core/clock.h"
#include "base/core/unique_fd.h"

namespace r2cc::client {
namespace {

// A node with hundreds of images in its status is some 100 KiB.
constexpr size_t kAnswerBytesMax = 4 << 20;
constexpr size_t kFileBytesMax = 1 << 20;

struct FreeSsl {
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(SSL* ssl) const { SSL_free(ssl); }
};

absl::Status Trouble(absl::string_view what) {
  char text[256] = "";
  if (const unsigned long error = ERR_get_error(); error != 0) ERR_error_string_n(error, text, sizeof(text));
  ERR_clear_error();
  return absl::UnavailableError(absl::StrCat(what, *text != '\0' ? ": " : "", text));
}

absl::StatusOr<std::string> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kFileBytesMax, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.empty()) return absl::UnavailableError(absl::StrCat("cannot read ", path));
  return text;
}

// When a request has to be over, on sockets that never block.
class Deadline {
 public:
  explicit Deadline(Nanos timeout) : end_(SteadyClock().Now() + timeout) {}

  // False: it is over, or poll() failed. `share`: divides the time that is left.
  bool WaitFor(int fd, short events, int share = 1) const {
    const Nanos now = SteadyClock().Now(), end = now + (end_ - now) / share;
    for (;;) {
      const Nanos left = end - SteadyClock().Now();
      if (left <= 0) return false;
      pollfd ready{fd, events, 0};
      const int count = poll(&ready, 1, static_cast<int>(left / kNanosPerMs) + 1);
      if (count > 0) return true;
      if (count < 0 && errno != EINTR) return false;
    }
  }
  bool IsOver() const { return SteadyClock().Now() >= end_; }
  // Repeats `call` of OpenSSL while it waits for the other end. UNAVAILABLE: the time is over, or it `failed`.
  absl::Status Do(SSL* ssl, const std::string& failed, const std::function<int()>& call) const {
    for (;;) {
      if (IsOver()) return absl::UnavailableError("the API server takes too long");
      // SSL_get_error() also reads what earlier calls left there.
      ERR_clear_error();
      const int result = call();
      if (result > 0) return absl::OkStatus();
      const int error = SSL_get_error(ssl, result);
      if (error != SSL_ERROR_WANT_READ && error != SSL_ERROR_WANT_WRITE) return Trouble(failed);
      (void)WaitFor(SSL_get_fd(ssl), error == SSL_ERROR_WANT_READ ? POLLIN : POLLOUT);
    }
  }

 private:
  const Nanos end_;
};

// Empty: nothing answers there.
UniqueFd Dial(const std::string& host, const std::string& port, const Deadline& deadline) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return UniqueFd();
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> list(found, freeaddrinfo);
  int addresses = 0;
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next) ++addresses;
  // An address that drops packets leaves time for the others.
  for (const addrinfo* one = found; one != nullptr; one = one->ai_next, --addresses) {
    UniqueFd fd(socket(one->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (!fd) continue;
    if (connect(fd.get(), one->ai_addr, one->ai_addrlen) == 0) return fd;
    int error = errno;
    socklen_t bytes = sizeof(error);
    if (error == EINPROGRESS && deadline.WaitFor(fd.get(), POLLOUT, addresses) &&
        getsockopt(fd.get(), SOL_SOCKET, SO_ERROR, &error, &bytes) == 0 && error == 0)
      return fd;
  }
  return UniqueFd();
}

class TlsKubernetesApi final : public KubernetesApi {
 public:
  TlsKubernetesApi(const std::string& server, std::string account, Nanos timeout)
      : server_(server), account_(std::move(account)), timeout_(timeout) {
    const size_t colon = server.rfind(':');
    host_ = std::string(absl::StripPrefix(absl::StripSuffix(absl::string_view(server).substr(0, colon), "]"), "["));
    port_ = colon == std::string::npos ? "443" : server.substr(colon + 1);
  }

  absl::StatusOr<std::string> Ask(const Request& request) override {
    const absl::StatusOr<std::string> token = ReadFile(account_ + "/token");
    if (!token.ok()) return token.status();
    const std::string authority = account_ + "/ca.crt";
    const std::unique_ptr<SSL_CTX, FreeSsl> context(SSL_CTX_new(TLS_client_method()));
    if (context == nullptr || SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION) != 1) return Trouble("no TLS");
    if (SSL_CTX_load_verify_locations(context.get(), authority.c_str(), nullptr) != 1) return Trouble("cannot read " + authority);
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER, nullptr);
    const Deadline deadline(timeout_);
    const UniqueFd connection = Dial(host_, port_, deadline);
    if (connection.get() < 0) return absl::UnavailableError("nobody answers at " + server_);
    const std::unique_ptr<SSL, FreeSsl> ssl(SSL_new(context.get()));
    if (ssl == nullptr || SSL_set_fd(ssl.get(), connection.get()) != 1 || !Expect(ssl.get())) return Trouble("no TLS");
    if (absl::Status known =
            deadline.Do(ssl.get(), server_ + " does not prove that it is the API server", [&] { return SSL_connect(ssl.get()); });
        !known.ok())
      return known;
    return Talk(ssl.get(), Text(request, std::string(absl::StripAsciiWhitespace(*token))), deadline);
  }

 private:
  // Its certificate must be of this name, or of this address.
  bool Expect(SSL* ssl) const {
    X509_VERIFY_PARAM* const wanted = SSL_get0_param(ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(wanted, host_.c_str()) == 1) return true;
    ERR_clear_error();
    return X509_VERIFY_PARAM_set1_host(wanted, host_.c_str(), 0) == 1 && SSL_set_tlsext_host_name(ssl, host_.c_str()) == 1;
  }

  // In HTTP 1.0 the server sends no chunks, and ends an answer by closing the connection.
  std::string Text(const Request& request, const std::string& token) const {
    std::string text = absl::StrCat(request.method, " ", request.path, " HTTP/1.0\r\nHost: ", server_, "\r\nAuthorization: Bearer ", token,
                                    "\r\nAccept: application/json\r\nUser-Agent: r2cc-conditions\r\n");
    if (!request.body.empty())
      absl::StrAppend(&text, "Content-Type: ", request.content_type, "\r\nContent-Length: ", request.body.size(), "\r\n");
    return absl::StrCat(text, "\r\n", request.body);
  }

  static absl::StatusOr<std::string> Talk(SSL* ssl, const std::string& text, const Deadline& deadline) {
    absl::Status status = deadline.Do(ssl, "cannot write", [&] { return SSL_write(ssl, text.data(), static_cast<int>(text.size())); });
    if (!status.ok()) return status;
    std::string answer;
    char bytes[16 << 10];
    for (int count = 0;; answer.append(bytes, static_cast<size_t>(count))) {
      status = deadline.Do(ssl, "", [&] { return count = SSL_read(ssl, bytes, sizeof(bytes)); });
      if (deadline.IsOver()) return absl::UnavailableError("its answer takes too long");
      if (!status.ok()) return ParseAnswer(answer);
      if (answer.size() + static_cast<size_t>(count) > kAnswerBytesMax) return absl::UnavailableError("its answer is too long");
    }
  }

  const std::string server_;
  const std::string account_;
  const Nanos timeout_;
  std::string host_;
  std::string port_;
};

}  // namespace

absl::StatusOr<std::string> ParseAnswer(const std::string& bytes) {
  const size_t end = bytes.find("\r\n\r\n");
  int status = 0;
  if (end == std::string::npos || !absl::StartsWith(bytes, "HTTP/1.") || bytes.size() < 12 ||
      !absl::SimpleAtoi(bytes.substr(9, 3), &status))
    return absl::UnavailableError("no answer");
  std::string body = bytes.substr(end + 4);
  // A connection that broke would leave half of a body.
  for (size_t begin = bytes.find("\r\n"); begin < end; begin = bytes.find("\r\n", begin + 2)) {
    const absl::string_view line = absl::string_view(bytes).substr(begin + 2, bytes.find("\r\n", begin + 2) - begin - 2);
    constexpr absl::string_view kLength = "content-length:";
    size_t length = 0;
    if (!absl::StartsWithIgnoreCase(line, kLength)) continue;
    if (!absl::SimpleAtoi(line.substr(kLength.size()), &length) || length > body.size()) return absl::UnavailableError("half of an answer");
    body.resize(length);
  }
  if (status >= 200 && status < 300) return body;
  const std::string what = absl::StrCat("status ", status, ": ", body.substr(0, 300));
  if (status == 404) return absl::NotFoundError(what);
  if (status == 401 || status == 403) return absl::PermissionDeniedError(what);
  return absl::UnavailableError(what);
}

std::unique_ptr<KubernetesApi> ConnectKubernetes(const std::string& server, const std::string& account, Nanos timeout) {
  // OpenSSL writes to a socket by write().
  signal(SIGPIPE, SIG_IGN);
  return std::make_unique<TlsKubernetesApi>(server, account, timeout);
}

}  // namespace r2cc::client
