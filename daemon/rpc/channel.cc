#include "daemon/rpc/channel.h"

#include <functional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "base/core/hash.h"
#include "base/tls/server_verifier.h"
#include "base/transport_reason.h"
#include "grpc/grpc_security_constants.h"
#include "grpc/support/log.h"
#include "grpcpp/security/tls_certificate_verifier.h"
#include "grpcpp/security/tls_credentials_options.h"

namespace r2cc::daemon {
namespace {

// A connection that answers no ping for kPingIntervalMs + kPingTimeoutMs is lost.
constexpr int kPingIntervalMs = 1000;
constexpr int kPingTimeoutMs = 1000;
// etcd ends the connection of a client that pings more often than each 5 s.
constexpr int kEtcdPingIntervalMs = 6000;
constexpr int kReconnectMsMin = 100;
constexpr int kReconnectMsMax = 2000;
// Time that one attempt to connect has, handshake included.
constexpr int kConnectTimeoutMs = 2000;
// A connection over which nothing is asked for so long is ended; a client connects again when it has something to ask.
constexpr int kIdleMs = 60'000;
// The memory of one server's conversations together: their buffers, and the calls under way.
constexpr size_t kQuotaBytes = 64 << 20;
constexpr int kMetadataBytesMax = 8192;
constexpr int kMessageBytesMax = 4 << 20;
// gRPC measures a connection's bandwidth by a ping after what it reads, to make the window larger. Messages between daemons fit into
// the window that there is, and the pings would be most of what they send while nothing happens.
constexpr int kMeasureBandwidth = 0;

// For a channel that reconnects until it is destroyed, and detects that nobody answers.
grpc::ChannelArguments ChannelArguments(int ping_interval_ms) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, kReconnectMsMin);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, kConnectTimeoutMs);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, kReconnectMsMax);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, ping_interval_ms);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  arguments.SetInt(GRPC_ARG_HTTP2_BDP_PROBE, kMeasureBandwidth);
  // Daemons talk over the management network; a proxy for the web has no business there.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetMaxReceiveMessageSize(kMessageBytesMax);
  return arguments;
}

// Believes the daemon of one node, by the same rules as it is believed elsewhere.
ServerVerifier::Judge OnlyNode(std::shared_ptr<TlsFiles> files, const std::string& node) {
  return [files = std::move(files), node](const std::string& pem) -> absl::Status {
    const auto contents = files->Get();
    const auto identity = ServerIdentity(pem, contents->authorities, files->now_s());
    if (!identity.ok() || *identity == Identity{Identity::Kind::kNode, node}) return identity.status();
    return absl::PermissionDeniedError(absl::StrCat("it shows the certificate of ", Describe(*identity), ", not of node ", node));
  };
}

// gRPC reads the files again so often.
constexpr unsigned kFilesSeconds = 5;

std::shared_ptr<grpc::experimental::CertificateProviderInterface> Provider(const TlsSpec& tls) {
  return std::make_shared<grpc::experimental::FileWatcherCertificateProvider>(tls.key_file, tls.certificate_file, tls.ca_file,
                                                                              kFilesSeconds);
}

int64_t RealtimeNs() { return absl::GetCurrentTimeNanos(); }

}  // namespace

absl::StatusOr<Credentials> LoadCredentials(const std::optional<TlsSpec>& tls, bool insecure, const std::string& where,
                                            Nanos wall_clock_offset) {
  Credentials credentials;
  credentials.insecure = insecure;
  if (!tls.has_value()) return credentials;
  auto files = TlsFiles::Load(*tls, [wall_clock_offset] { return RealtimeNs() + wall_clock_offset; });
  if (!files.ok()) return absl::Status(files.status().code(), absl::StrCat(where, ": ", files.status().message()));
  credentials.tls = *std::move(files);
  return credentials;
}

std::vector<std::shared_ptr<grpc::Channel>> PeerChannels(const PeerSpec& peer, const Credentials& credentials,
                                                         const std::shared_ptr<const TlsContents>& contents) {
  const auto channel = [&](const std::string& way, const std::function<std::shared_ptr<grpc::ChannelCredentials>()>& make) {
    return credentials.channels->Get(absl::StrCat(way, " ", peer.node, " ", peer.address),
                                     [&] { return grpc::CreateCustomChannel(peer.address, make(), ChannelArguments(kPingIntervalMs)); });
  };
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  if (credentials.tls != nullptr)
    channels.push_back(channel(absl::StrCat("tls ", Fnv1a64(contents->pem)), [&] {
      grpc::experimental::TlsChannelCredentialsOptions options;
      options.set_certificate_provider(std::make_shared<grpc::experimental::StaticDataCertificateProvider>(
          contents->authorities_pem, std::vector<grpc::experimental::IdentityKeyCertPair>{{contents->key_pem, contents->pem}}));
      options.watch_identity_key_cert_pairs();
      options.watch_root_certs();
      SetServerVerifier(&options, OnlyNode(credentials.tls, peer.node));
      return grpc::experimental::TlsCredentials(options);
    }));
  if (credentials.insecure || credentials.tls == nullptr) channels.push_back(channel("clear", grpc::InsecureChannelCredentials));
  return channels;
}

absl::StatusOr<std::shared_ptr<grpc::ChannelCredentials>> LoadEtcdCredentials(const std::optional<TlsSpec>& tls, const std::string& where) {
  if (!tls.has_value()) return grpc::InsecureChannelCredentials();
  const auto files = TlsFiles::Load(*tls, RealtimeNs);
  if (!files.ok()) return absl::Status(files.status().code(), absl::StrCat(where, ": ", files.status().message()));
  grpc::experimental::TlsChannelCredentialsOptions options;
  options.set_certificate_provider(Provider(*tls));
  options.watch_identity_key_cert_pairs();
  options.watch_root_certs();
  options.set_certificate_verifier(std::make_shared<grpc::experimental::HostNameCertificateVerifier>());
  return grpc::experimental::TlsCredentials(options);
}

std::shared_ptr<grpc::Channel> EtcdChannel(const std::string& address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  LetChannelsEndAnywhere();
  return grpc::CreateCustomChannel(address, credentials, ChannelArguments(kEtcdPingIntervalMs));
}

void SetServerOptions(grpc::ServerBuilder* builder, const Http2Bounds& bounds) {
  builder->SetResourceQuota(grpc::ResourceQuota("r2ccd").Resize(kQuotaBytes));
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleMs);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(bounds.streams_max));
  builder->AddChannelArgument(GRPC_ARG_MAX_METADATA_SIZE, kMetadataBytesMax);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingIntervalMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, kMeasureBandwidth);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingIntervalMs / 4);
  builder->SetMaxReceiveMessageSize(static_cast<int>(bounds.message_bytes_max));
}

std::string ShortReason(const grpc::Status& status) {
  std::string text = status.error_message();
  if (status.ok() || text == "Cancelling all calls") return "its daemon stopped";
  if (text.empty()) return "the connection broke";
  return TransportReason(std::move(text));
}

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace r2cc::daemon
