#include "client/core/remote.h"

#include <unistd.h>

#include <fstream>
#include <memory>
#include <sstream>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "base/tls/certificate.h"
#include "base/tls/server_verifier.h"
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

// `node` empty: every node's daemon of the authority is believed, because the operator has named it by its address.
ServerVerifier::Judge NodeOf(Authorities authorities, const std::string& node) {
  return [authorities = std::make_shared<const Authorities>(std::move(authorities)), node](const std::string& pem) -> absl::Status {
    const auto identity = ServerIdentity(pem, *authorities, absl::ToUnixSeconds(absl::Now()));
    if (!identity.ok()) return identity.status();
    if (identity->kind != Identity::Kind::kNode)
      return absl::PermissionDeniedError(absl::StrCat("it is ", Describe(*identity), ", and no daemon"));
    if (node.empty() || identity->name == node) return absl::OkStatus();
    return absl::PermissionDeniedError(absl::StrCat("it is the daemon of ", Describe(*identity), ", not of node ", node));
  };
}

}  // namespace

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> RemoteCredentials(const std::string& directory, const std::string& node) {
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
  SetServerVerifier(&options, NodeOf(*std::move(authorities), node));
  return grpc::experimental::TlsCredentials(options);
}

}  // namespace r2cc::client
