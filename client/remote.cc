#include "client/remote.h"

#include <unistd.h>

#include <fstream>
#include <functional>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/tls/certificate.h"
#include "grpcpp/security/tls_certificate_provider.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace r2cc::client {
namespace {

absl::StatusOr<std::string> Read(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  if (!file)
    return absl::NotFoundError(
        absl::StrCat("cannot read ", path, ": --certs names a directory that `r2ccctl certs issue --operator` made"));
  return text.str();
}

// Believes every node's daemon of the authority: which one it is the operator has said by its address.
class AnyNode final : public grpc::experimental::ExternalCertificateVerifier {
 public:
  explicit AnyNode(Authorities authorities) : authorities_(std::move(authorities)) {}

  bool Verify(grpc::experimental::TlsCustomVerificationCheckRequest* request, std::function<void(grpc::Status)>,
              grpc::Status* status) override {
    const grpc::string_ref chain = request->peer_cert_full_chain().empty() ? request->peer_cert() : request->peer_cert_full_chain();
    const std::string why = WhyNot(std::string(chain.data(), chain.size()));
    if (!why.empty()) *status = grpc::Status(grpc::StatusCode::UNAUTHENTICATED, why);
    return true;
  }
  void Cancel(grpc::experimental::TlsCustomVerificationCheckRequest*) override {}

 private:
  std::string WhyNot(const std::string& pem) const {
    const auto certificate = Certificate::Parse(pem);
    if (!certificate.ok()) return absl::StrCat("what it shows ", certificate.status().message());
    const auto identity = certificate->identity();
    if (!identity.ok()) return absl::StrCat("its certificate ", identity.status().message());
    const absl::Status status = authorities_.Check(*certificate, Purpose::kServer, absl::ToUnixSeconds(absl::Now()));
    if (!status.ok()) return absl::StrCat("the certificate of ", Describe(*identity), " ", status.message());
    return identity->kind == Identity::Kind::kNode ? "" : absl::StrCat("it is ", Describe(*identity), ", and no daemon");
  }

  const Authorities authorities_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> RemoteCredentials(const std::string& directory) {
  const bool person = access((directory + "/operator.crt").c_str(), F_OK) == 0;
  const std::string base = absl::StrCat(directory, person ? "/operator" : "/node");
  const auto certificate = Read(base + ".crt");
  if (!certificate.ok()) return certificate.status();
  const auto key = Read(base + ".key");
  if (!key.ok()) return key.status();
  const auto ca = Read(directory + "/ca.crt");
  if (!ca.ok()) return ca.status();
  auto authorities = Authorities::Parse(*ca);
  if (!authorities.ok()) return absl::InvalidArgumentError(absl::StrCat(directory, "/ca.crt ", authorities.status().message()));
  const auto parsed = Certificate::Parse(*certificate);
  if (!parsed.ok()) return absl::InvalidArgumentError(absl::StrCat(base, ".crt ", parsed.status().message()));
  const auto parsed_key = ParseKey(*key);
  if (!parsed_key.ok()) return absl::InvalidArgumentError(absl::StrCat(base, ".key ", parsed_key.status().message()));
  if (!parsed->Fits(parsed_key->get())) return absl::InvalidArgumentError(absl::StrCat(base, ".key is not the key of ", base, ".crt"));

  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
      *ca, std::vector<grpc::experimental::IdentityKeyCertPair>{{*key, *certificate}}));
  options.watch_identity_key_cert_pairs();
  options.watch_root_certs();
  options.set_verify_server_certs(false);
  options.set_check_call_host(false);
  options.set_certificate_verifier(grpc::experimental::ExternalCertificateVerifier::Create<AnyNode>(*std::move(authorities)));
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace r2cc::client
