// gRPC channels and credentials between daemons.
#ifndef R2CC_DAEMON_RPC_CHANNEL_H_
#define R2CC_DAEMON_RPC_CHANNEL_H_

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/core/clock.h"
#include "daemon/config/config.h"
#include "daemon/rpc/channel_pool.h"
#include "daemon/rpc/http2_meter.h"
#include "daemon/trust/tls_files.h"
#include "grpcpp/generic/generic_stub.h"
#include "grpcpp/grpcpp.h"

namespace r2cc::daemon {

// How this daemon speaks with other daemons, at both ends.
struct Credentials {
  // This node's certificate, and the authorities that it believes; null: there is no TLS.
  std::shared_ptr<TlsFiles> tls;
  // It speaks in the clear with peers that speak no TLS.
  bool insecure = false;
  // The pool of all channels with these credentials.
  std::shared_ptr<ChannelPool> channels = std::make_shared<ChannelPool>();
};

// Reads the files of `tls`; nothing: there is no TLS. `where` begins the messages.
// `wall_clock_offset`: Config::wall_clock_offset.
absl::StatusOr<Credentials> LoadCredentials(const std::optional<TlsSpec>& tls, bool insecure, const std::string& where,
                                            Nanos wall_clock_offset = 0);

// The ways to one peer, each a channel that connects again as long as somebody holds it: TLS, where the peer's certificate must be that of
// its node, and clear text. Not empty, TLS first. `contents`: what is shown there, of `credentials.tls`.
std::vector<std::shared_ptr<grpc::Channel>> PeerChannels(const PeerSpec& peer, const Credentials& credentials,
                                                         const std::shared_ptr<const TlsContents>& contents);

// Stubs of a service at one peer: a way that failed makes room for the other, if there are two. One thread at a time.
template <typename Service>
class PeerStubs {
 public:
  PeerStubs(const PeerSpec& peer, const Credentials& credentials) : peer_(peer), credentials_(credentials) { Make(); }
  // Valid until the next call. Each call is judged by the certificate that its connection was made with, so a new certificate needs a new
  // connection before the old one expires. Calls that have begun stay on the old one.
  typename Service::Stub* get() {
    if (credentials_.tls != nullptr && credentials_.tls->Get() != contents_) Make();
    return stubs_[at_].get();
  }
  // The same way, for messages as bytes.
  grpc::GenericStub* generic() {
    get();
    return generic_[at_].get();
  }
  // False: all were tried since the last time that one was found good.
  bool Next() {
    at_ = (at_ + 1) % stubs_.size();
    return at_ != 0;
  }

 private:
  void Make() {
    if (credentials_.tls != nullptr) contents_ = credentials_.tls->Get();
    stubs_.clear();
    generic_.clear();
    for (const auto& channel : PeerChannels(peer_, credentials_, contents_)) {
      stubs_.push_back(Service::NewStub(channel));
      generic_.push_back(std::make_unique<grpc::GenericStub>(channel));
    }
  }

  const PeerSpec peer_;
  const Credentials credentials_;
  std::shared_ptr<const TlsContents> contents_;
  std::vector<std::unique_ptr<typename Service::Stub>> stubs_;
  std::vector<std::unique_ptr<grpc::GenericStub>> generic_;  // the same
  size_t at_ = 0;
};

// The credentials for etcd; nothing: in the clear. Follows the files too.
absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> LoadEtcdCredentials(const std::optional<TlsSpec>& tls, const std::string& where);

// A channel to one member of an etcd cluster, host:port, which connects again as long as somebody holds it. With TLS its certificate must
// name that host.
std::shared_ptr<grpc::Channel> EtcdChannel(const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials);

// Server settings that fit the peers' keep-alive, and bound what a connection may cost.
void SetServerOptions(grpc::ServerBuilder* builder, const Http2Bounds& bounds);

// Sends gRPC's own log lines to ours, at debug level: ours already report what matters.
void RedirectGrpcLog();

// Why a connection cannot be made, or broke: gRPC's text, cut down to what a person needs.
std::string ShortReason(const grpc::Status& status);

absl::Status FromGrpc(const grpc::Status& status);
grpc::Status ToGrpc(const absl::Status& status);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RPC_CHANNEL_H_
