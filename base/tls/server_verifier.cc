#include "base/tls/server_verifier.h"

#include "absl/strings/str_cat.h"

namespace r2cc {

absl::StatusOr<Identity> ServerIdentity(const std::string& pem, const Authorities& authorities, int64_t now_s) {
  const auto certificate = Certificate::Parse(pem);
  if (!certificate.ok()) return absl::PermissionDeniedError(absl::StrCat("what it shows ", certificate.status().message()));
  const auto identity = certificate->identity();
  if (!identity.ok()) return absl::PermissionDeniedError(absl::StrCat("its certificate ", identity.status().message()));
  if (const absl::Status status = authorities.Check(*certificate, Purpose::kServer, now_s); !status.ok())
    return absl::PermissionDeniedError(absl::StrCat("the certificate of ", Describe(*identity), " ", status.message()));
  return *identity;
}

bool ServerVerifier::Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
                            grpc::Status* status) {
  const grpc::string_ref chain = request->peer_cert_full_chain().empty() ? request->peer_cert() : request->peer_cert_full_chain();
  if (const absl::Status judged = judge_(std::string(chain.data(), chain.size())); !judged.ok())
    *status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, std::string(judged.message()));
  return true;
}

void SetServerVerifier(grpc::experimental::TlsChannelCredentialsOptions* options, ServerVerifier::Judge judge) {
  options->set_verify_server_certs(false);
  options->set_check_call_host(false);
  options->set_certificate_verifier(grpc::experimental::ExternalCertificateVerifier::Create<ServerVerifier>(std::move(judge)));
}

}  // namespace r2cc
