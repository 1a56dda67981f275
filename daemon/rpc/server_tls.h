// A server's TLS with the certificate that is in force now.
#ifndef R2CC_DAEMON_RPC_SERVER_TLS_H_
#define R2CC_DAEMON_RPC_SERVER_TLS_H_

#include <memory>
#include <string>
#include <utility>

#include "base/log.h"
#include "daemon/rpc/client_end.h"
#include "daemon/trust/tls_files.h"

namespace r2cc::daemon {

// One thread at a time.
class ServerTls {
 public:
  // `whose`: "the daemons' port", for the log.
  ServerTls(TlsProtocol protocol, std::string whose) : protocol_(protocol), whose_(std::move(whose)) {}

  // Null: no certificate could be taken yet. Valid until the next call.
  SSL_CTX* Get(TlsFiles* files) {
    auto contents = files->Get();
    if (contents == contents_) return context_.get();
    auto context = MakeServerTls(*contents, protocol_);
    contents_ = std::move(contents);
    if (context.ok())
      context_ = *std::move(context);
    else
      LogError(whose_ + " goes on with the former certificate", {{"reason", std::string(context.status().message())}});
    return context_.get();
  }

 private:
  const TlsProtocol protocol_;
  const std::string whose_;
  std::shared_ptr<const TlsContents> contents_;  // that context_ is of
  SslContextPtr context_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_SERVER_TLS_H_
