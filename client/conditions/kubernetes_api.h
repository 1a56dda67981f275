// Requests to Kubernetes' API server.
#ifndef R2CC_CLIENT_CONDITIONS_KUBERNETES_API_H_
#define R2CC_CLIENT_CONDITIONS_KUBERNETES_API_H_

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/core/clock.h"

namespace r2cc::client {

class KubernetesApi {
 public:
  virtual ~KubernetesApi() = default;

  struct Request {
    std::string method;  // "GET", "POST", "PATCH"
    std::string path;    // from "/api/"
    std::string content_type;
    std::string body;
  };
  // The body of an answer of 200 to 299. NOT_FOUND: there is no such thing; PERMISSION_DENIED: the account may not; UNAVAILABLE: no answer,
  // or another status.
  virtual absl::StatusOr<std::string> Ask(const Request& request) = 0;
};

// The limit of one request, from the connection to the end of the answer; also while bytes come all the time.
constexpr Nanos kRequestTimeout = 10 * kNanosPerSecond;

// At `server`, host:port, over TLS. `account`: a directory with `ca.crt`, by which the server is known, and `token`; both are read again
// for each request, as the kubelet changes them. The process ignores SIGPIPE from then on: a server may close a connection at any time.
// An answer of more than 4 MiB is refused.
std::unique_ptr<KubernetesApi> ConnectKubernetes(const std::string& server, const std::string& account, Nanos timeout = kRequestTimeout);

// The status and the body of an answer that the server ended by closing the connection. Pure.
absl::StatusOr<std::string> ParseAnswer(const std::string& bytes);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_CONDITIONS_KUBERNETES_API_H_
