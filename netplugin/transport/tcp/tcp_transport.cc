#include "netplugin/transport/tcp/tcp_transport.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "netplugin/flow/tuning.h"
#include "netplugin/transport/tcp/budget.h"
#include "netplugin/transport/tcp/congestion.h"
#include "netplugin/transport/tcp/endpoint.h"

namespace r2cc::net {
namespace {

SocketAddress ToSocketAddress(const IpAddress& address) {
  SocketAddress out;
  out.storage = address.storage;
  out.length = address.length;
  return out;
}

}  // namespace

MakeOobTransport TcpTransport::Maker(const PluginConfig& config) {
  const Options options{.congestion = config.tcp_congestion,
                        .sockets_per_rail = config.sockets_per_rail,
                        .workers = config.bulk_threads,
                        .checksum = config.checksum};
  return [options](Poller* poller, const Clock* clock, LogFn log, Greet greet, std::string* error) {
    return Make(options, poller, clock, std::move(log), std::move(greet), error);
  };
}

std::unique_ptr<TcpTransport> TcpTransport::Make(const Options& options, Poller* poller, const Clock* clock, LogFn log, Greet greet,
                                                 std::string* error) {
  const std::string system = SystemCongestionControl();
  auto congestion_control = RailCongestionControl(
      options.congestion, system, [](const std::string& name) { return HasCongestionControl(name); }, error);
  if (!congestion_control) return nullptr;
  if (!congestion_control->empty())
    log(LogLevel::kInfo, "R2CC: rails use " + *congestion_control + ", the system " + system + " (R2CC_TCP_CONGESTION)");
  return std::unique_ptr<TcpTransport>(
      new TcpTransport(options, *std::move(congestion_control), poller, clock, std::move(log), std::move(greet)));
}

TcpTransport::TcpTransport(const Options& options, std::string congestion_control, Poller* poller, const Clock* clock, LogFn log,
                           Greet greet)
    : options_(options),
      congestion_control_(std::move(congestion_control)),
      log_(std::move(log)),
      descriptors_(clock, log_),
      probes_(poller, clock, &shared_.oob_source, &descriptors_),
      listener_(std::make_unique<TcpListener>(poller, clock, TcpListener::WaitingMax(DescriptorsMost()), std::move(greet), &descriptors_)) {
  shared_.clock = clock;
  shared_.log = log_;
  shared_.descriptors = &descriptors_;
  shared_.probes = &probes_;
  shared_.checksum = options.checksum;
}

bool TcpTransport::ListenOob(const std::string& host, uint16_t* port, std::string* error) {
  if (!ParseAddress(host, 0, &shared_.oob_source.address)) {
    *error = host + " is no numeric address";
    return false;
  }
  UniqueFd listener = net::Listen(shared_.oob_source, port, error);
  if (!listener) return false;
  listener_->AddListener(std::move(listener));
  return true;
}

bool TcpTransport::Reaches(const OobAddress& peer) const {
  SocketAddress address;
  return ParseAddress(peer.host, peer.port, &address) && address.storage.ss_family == shared_.oob_source.address.storage.ss_family;
}

bool TcpTransport::Listen(const Rail& rail, Endpoint* own, std::string* error) {
  own->clear();
  const auto index = static_cast<size_t>(rail.index);
  if (shared_.rails.size() <= index) {
    shared_.rails.resize(index + 1);
    shared_.loose.resize(index + 1);
  }
  Source& source = shared_.rails[index];
  source = {ToSocketAddress(rail.address), rail.any_route ? "" : rail.interface, congestion_control_};
  shared_.loose[index] = {source.address, "", congestion_control_};
  if (rail.address.empty()) return true;
  if (const auto before = rail_listeners_.extract(index)) listener_->CloseListener(before.mapped());
  uint16_t port = 0;
  UniqueFd listener = net::Listen(source, &port, error);
  if (!listener) return false;
  rail_listeners_[index] = listener_->AddListener(std::move(listener));
  SocketAddress at = source.address;
  at.set_port(port);
  *own = RailEndpointOf(at);
  return true;
}

bool TcpTransport::Register(const Memory& memory, uint16_t, Endpoint* key, std::string* error) {
  key->clear();
  if (memory.kind == MemoryKind::kHost) return true;
  *error = "R2CC: TCP rails carry host memory only; NCCL should not have asked for more";
  return false;
}

std::unique_ptr<OobPort> TcpTransport::NewOobPort(const SessionKey& key, const PeerState* state) {
  errno = 0;
  auto port = std::make_unique<TcpPort>(&shared_, key, state);
  if (!port->ok()) descriptors_.Failed(errno);
  return port;
}

Transport::EndText TcpTransport::Describe(const Endpoint& endpoint) const {
  const auto address = AddressOf(endpoint);
  if (!address) return {};
  return {address->Text(), address->port(), address->storage.ss_family == AF_INET6 ? "IPv6" : "IPv4"};
}

std::string TcpTransport::Needs() const {
  const auto range = LocalPorts();
  return "TCP must pass between the nodes from and to all ports of the sysctl net.ipv4.ip_local_port_range" +
         (range ? " (here " + std::to_string(range->first) + " to " + std::to_string(range->second) + ")" : std::string()) +
         ", on the rails too: is there a firewall or a sidecar?";
}

void TcpTransport::StartThreads(int processors) {
  const int threads = options_.workers.value_or(WorkersFor(processors));
  // So many that each worker has one to send or to receive with, and twice as many where rails are quick (SocketsInUse).
  const int rails = std::max(static_cast<int>(shared_.rails.size()), 1);
  const int streams = options_.sockets_per_rail.value_or(std::clamp((threads + rails - 1) / rails, 1, tuning::kSocketsMost));
  shared_.streams_per_rail = static_cast<uint8_t>(streams);
  if (threads == 0) return;
  std::string error;
  workers_ = Workers::Start(threads, tuning::kWorkerAwakeFor, &error);
  if (workers_ == nullptr) return log_(LogLevel::kWarn, error + "; only NCCL's threads move the bytes");
  shared_.workers = workers_.get();
}

void TcpTransport::Tick(Nanos now) {
  if (listener_ != nullptr) listener_->Tick(now);
  probes_.Tick(now);
}

void TcpTransport::StopThreads() {
  workers_.reset();
  shared_.workers = nullptr;
}

}  // namespace r2cc::net
