// Identifies callers: from the kernel on the control socket, by the certificate on the daemons' port. The gate asks it before a connection
// reaches HTTP/2, and every service asks again, before anything else.
#ifndef R2CC_DAEMON_RPC_AUTHENTICATOR_H_
#define R2CC_DAEMON_RPC_AUTHENTICATOR_H_

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "daemon/core/caller.h"
#include "daemon/rpc/origins.h"
#include "daemon/trust/refusals.h"
#include "daemon/trust/tls_files.h"
#include "grpcpp/grpcpp.h"

namespace r2cc::daemon {

// Thread-safe.
class Authenticator {
 public:
  // `tls` null: no caller can prove anything. `insecure`: a caller without proof is let in, as kNobody. `refusals` outlives it. `listener`:
  // the name under which they are counted, if the caller is no local process.
  Authenticator(std::shared_ptr<TlsFiles> tls, bool insecure, Refusals* refusals, std::string listener = "peers")
      : tls_(std::move(tls)), insecure_(insecure), refusals_(refusals), listener_(std::move(listener)) {}

  // The daemon of another node, or kNobody if `insecure` admits it. Others are refused, logged and counted; `what` is what the caller
  // wants.
  absl::StatusOr<Caller> Peer(const grpc::ServerContextBase& context, const std::string& what) const;
  // The caller of the control service: a local process, an operator, a node, or kNobody under the same condition.
  absl::StatusOr<Caller> Person(const grpc::ServerContextBase& context, const std::string& what) const;

  // The sender of a conversation, for the gate: as above, a local process or an operator included.
  absl::StatusOr<Caller> Judge(const Origin& origin, const std::string& what) const;

  // Those that the gate has let in.
  Origins* origins() const { return &origins_; }

  // Takes note that `caller` was refused, and returns `why`.
  absl::Status Refuse(const Caller& caller, const std::string& reason, const std::string& what, const absl::Status& why) const;

 private:
  absl::StatusOr<Caller> Any(const grpc::ServerContextBase& context, const std::string& what) const;

  const std::shared_ptr<TlsFiles> tls_;
  const bool insecure_;
  Refusals* const refusals_;
  const std::string listener_;
  mutable Origins origins_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_AUTHENTICATOR_H_
