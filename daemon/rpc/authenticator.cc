#include "daemon/rpc/authenticator.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace r2cc::daemon {
absl::Status Authenticator::Refuse(const Caller& caller, const std::string& reason, const std::string& what,
                                   const absl::Status& why) const {
  const std::string listener = caller.kind == Caller::Kind::kLocal && !caller.forwarded() ? "control" : listener_;
  refusals_->Count(listener, reason, Describe(caller), absl::StrCat(what, ": ", why.message()));
  return why;
}

absl::StatusOr<Caller> Authenticator::Any(const grpc::ServerContextBase& context, const std::string& what) const {
  const auto origin = origins_.Of(context.peer());
  if (origin == nullptr) return absl::UnauthenticatedError("the connection is over");
  return Judge(*origin, what);
}

absl::StatusOr<Caller> Authenticator::Judge(const Origin& origin, const std::string& what) const {
  Caller caller = origin.caller;
  if (caller.kind == Caller::Kind::kLocal) return caller;
  const std::string& pem = origin.pem;
  if (pem.empty()) {
    if (insecure_) return caller;
    return Refuse(caller, "no-certificate", what,
                  absl::UnauthenticatedError(tls_ == nullptr
                                                 ? "this daemon has no tls, so it cannot authenticate callers; set tls in its configuration"
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
