#include "daemon/rpc/authenticator.h"

#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "daemon/rpc/caller_of.h"
#include "grpc/grpc_security_constants.h"

namespace r2cc::daemon {
namespace {

// What the connection's TLS greeting has shown, whoever it is of; empty: nothing.
std::string ShownCertificate(const grpc::ServerContextBase& context) {
  const auto shown = context.auth_context();
  if (shown == nullptr) return "";
  // The server's end of OpenSSL has the owner's certificate beside the chain, not in it.
  std::string pem;
  for (const char* property : {GRPC_X509_PEM_CERT_PROPERTY_NAME, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME}) {
    const std::vector<grpc::string_ref> values = shown->FindPropertyValues(property);
    if (!values.empty()) absl::StrAppend(&pem, absl::string_view(values[0].data(), values[0].size()));
    if (pem.empty()) return "";
  }
  return pem;
}

}  // namespace

absl::Status Authenticator::Refuse(const Caller& caller, const std::string& reason, const std::string& what,
                                   const absl::Status& why) const {
  const std::string listener = caller.kind == Caller::Kind::kLocal && !caller.forwarded() ? "control" : "peers";
  refusals_->Count(listener, reason, Describe(caller), absl::StrCat(what, ": ", why.message()));
  return why;
}

absl::StatusOr<Caller> Authenticator::Any(const grpc::ServerContextBase& context, const std::string& what) const {
  Caller caller = CallerOf(context);
  if (caller.kind == Caller::Kind::kLocal) return caller;
  const std::string pem = tls_ == nullptr ? "" : ShownCertificate(context);
  if (pem.empty()) {
    if (insecure_) return caller;
    return Refuse(
        caller, "no-certificate", what,
        absl::UnauthenticatedError(tls_ == nullptr ? "this daemon has no tls, so nobody can prove who he is; set tls in its configuration"
                                                   : "you show no certificate"));
  }
  const auto certificate = Certificate::Parse(pem);
  if (!certificate.ok())
    return Refuse(caller, "certificate", what,
                  absl::UnauthenticatedError(absl::StrCat("your certificate ", certificate.status().message())));
  const auto identity = certificate->identity();
  if (!identity.ok())
    return Refuse(caller, "certificate", what, absl::UnauthenticatedError(absl::StrCat("your certificate ", identity.status().message())));
  caller.kind = identity->kind == Identity::Kind::kNode ? Caller::Kind::kNode : Caller::Kind::kOperator;
  caller.name = identity->name;
  if (const auto status = tls_->Get()->authorities.Check(*certificate, Purpose::kClient, tls_->now_s()); !status.ok())
    return Refuse(caller, "certificate", what,
                  absl::UnauthenticatedError(absl::StrCat("the certificate of ", Describe(*identity), " ", status.message())));
  return caller;
}

absl::StatusOr<Caller> Authenticator::Peer(const grpc::ServerContextBase& context, const std::string& what) const {
  auto caller = Any(context, what);
  if (!caller.ok() || caller->kind == Caller::Kind::kNode || caller->kind == Caller::Kind::kNobody) return caller;
  return Refuse(*caller, "no-node", what,
                absl::PermissionDeniedError(absl::StrCat("that is for daemons, and you are ", Describe(*caller))));
}

absl::StatusOr<Caller> Authenticator::Person(const grpc::ServerContextBase& context, const std::string& what) const {
  return Any(context, what);
}

}  // namespace r2cc::daemon
