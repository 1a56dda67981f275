#include "daemon/rpc/channel.h"

#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "daemon/io/files.h"
#include "grpc/grpc_security_constants.h"
#include "grpc/support/log.h"

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
constexpr int kMessageBytesMax = 4 << 20;
// gRPC measures a connection's bandwidth by a ping after what it reads, to make the window larger. What daemons say to each other fits into
// the window that there is, and the pings would be most of what they send while nothing happens.
constexpr int kMeasureBandwidth = 0;

// For a channel that connects again for ever, and finds out by itself that nobody answers.
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

// Channels stay until the process ends. gRPC ends its callback threads with the last channel, and aborts if that happens on one of them;
// and the context of a call, which holds its channel, goes on such a thread, a moment after the call's end was told.
std::shared_ptr<grpc::Channel> Keep(std::shared_ptr<grpc::Channel> channel) {
  static absl::Mutex mutex;
  static auto* const kept = new std::vector<std::shared_ptr<grpc::Channel>>;
  absl::MutexLock lock(&mutex);
  kept->push_back(channel);
  return channel;
}

}  // namespace

absl::StatusOr<Credentials> LoadCredentials(const std::optional<TlsSpec>& tls, const std::string& where) {
  Credentials credentials;
  if (!tls.has_value()) {
    credentials.channel = grpc::InsecureChannelCredentials();
    credentials.server = grpc::InsecureServerCredentials();
    return credentials;
  }
  OsFiles files;
  const auto certificate = files.Read(tls->certificate_file);
  const auto key = files.Read(tls->key_file);
  const auto ca = files.Read(tls->ca_file);
  for (const auto* part : {&certificate, &key, &ca})
    if (!part->ok()) return absl::Status(part->status().code(), absl::StrCat(where, ": ", part->status().message()));
  grpc::SslCredentialsOptions client;
  client.pem_root_certs = *ca;
  client.pem_cert_chain = *certificate;
  client.pem_private_key = *key;
  grpc::SslServerCredentialsOptions server(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  server.pem_root_certs = *ca;
  server.pem_key_cert_pairs.push_back({*key, *certificate});
  credentials.channel = grpc::SslCredentials(client);
  credentials.server = grpc::SslServerCredentials(server);
  credentials.secure = true;
  return credentials;
}

std::shared_ptr<grpc::Channel> PeerChannel(const PeerSpec& peer, const Credentials& credentials) {
  grpc::ChannelArguments arguments = ChannelArguments(kPingIntervalMs);
  if (credentials.secure) arguments.SetSslTargetNameOverride(peer.node);
  return Keep(grpc::CreateCustomChannel(peer.address, credentials.channel, arguments));
}

std::shared_ptr<grpc::Channel> EtcdChannel(const std::string& address, const Credentials& credentials) {
  return Keep(grpc::CreateCustomChannel(address, credentials.channel, ChannelArguments(kEtcdPingIntervalMs)));
}

void SetServerOptions(grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kPingIntervalMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_BDP_PROBE, kMeasureBandwidth);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kPingIntervalMs / 4);
  builder->SetMaxReceiveMessageSize(kMessageBytesMax);
}

std::string ShortReason(const grpc::Status& status) {
  std::string text = status.error_message();
  if (status.ok() || text == "Cancelling all calls") return "its daemon stopped";
  if (text.empty()) return "the connection broke";
  // "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:1: Failed to connect to remote host: Connection refused"
  for (const char* before : {"last error: ", "Failed to connect to remote host: "})
    if (const size_t found = text.find(before); found != std::string::npos) text.erase(0, found + std::strlen(before));
  return text;
}

absl::Status FromGrpc(const grpc::Status& status) {
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

grpc::Status ToGrpc(const absl::Status& status) {
  return grpc::Status(static_cast<grpc::StatusCode>(status.code()), std::string(status.message()));
}

}  // namespace r2cc::daemon
