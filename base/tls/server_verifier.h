// Verifies the server at the client's end of TLS, with a reason if it is refused. gRPC itself reports no more than "certificate verify
// failed".
#ifndef R2CC_BASE_TLS_SERVER_VERIFIER_H_
#define R2CC_BASE_TLS_SERVER_VERIFIER_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/tls/certificate.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace r2cc {

// The identity of the server that shows `pem` at `now_s`. PERMISSION_DENIED, with one line that states why it is refused.
absl::StatusOr<Identity> ServerIdentity(const std::string& pem, const Authorities& authorities, int64_t now_s);

// Asks `judge` about each server. Thread-safe, if `judge` is.
class ServerVerifier final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  // `pem`: the server's certificate, and the chain that it sent behind it. A status that is not OK ends the handshake with its message.
  using Judge = std::function<absl::Status(const std::string& pem)>;
  explicit ServerVerifier(Judge judge) : judge_(std::move(judge)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override;
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  const Judge judge_;
};

// Leaves all of the judgement to `judge`: the authorities that `options` may name are not asked, nor is the server's host.
void SetServerVerifier(grpc::experimental::TlsChannelCredentialsOptions* options, ServerVerifier::Judge judge);

}  // namespace r2cc

#endif  // R2CC_BASE_TLS_SERVER_VERIFIER_H_
