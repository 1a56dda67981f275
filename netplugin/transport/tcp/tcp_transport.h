// Implements the transport over TCP for one process: its listeners, its workers, and the sources of its rails.
#ifndef R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_TRANSPORT_H_
#define R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_TRANSPORT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/core/clock.h"
#include "netplugin/config/config.h"
#include "netplugin/config/log.h"
#include "netplugin/transport/oob.h"
#include "netplugin/transport/os/poller.h"
#include "netplugin/transport/os/workers.h"
#include "netplugin/transport/tcp/descriptors.h"
#include "netplugin/transport/tcp/listener.h"
#include "netplugin/transport/tcp/tcp_port.h"
#include "netplugin/transport/tcp/tcp_probes.h"

namespace r2cc::net {

class TcpTransport final : public OobTransport {
 public:
  struct Options {
    std::string congestion;               // as in PluginConfig::tcp_congestion
    std::optional<int> sockets_per_rail;  // unset: by the number of workers
    std::optional<int> workers;           // unset: by the number of processors
    bool checksum = false;
  };
  // With the options of the environment.
  static MakeOobTransport Maker(const PluginConfig& config);
  // `poller` is the I/O thread's. Any thread may call `log`. Null and one line in `error` if the options cannot be met.
  static std::unique_ptr<TcpTransport> Make(const Options& options, Poller* poller, const Clock* clock, LogFn log, Greet greet,
                                            std::string* error);

  TransportKind kind() const override { return TransportKind::kTcp; }
  bool ListenOob(const std::string& host, uint16_t* port, std::string* error) override;
  bool Reaches(const OobAddress& peer) const override;
  bool Listen(const Rail& rail, Endpoint* own, std::string* error) override;
  bool Register(const Memory& memory, uint16_t rail, Endpoint* key, std::string* error) override;
  std::unique_ptr<OobPort> NewOobPort(const SessionKey& key, const PeerState* state) override;
  void StartThreads(int processors) override;
  void Tick(Nanos now) override;
  void StopListening() override { listener_.reset(); }
  void StopThreads() override;
  EndText Describe(const Endpoint& endpoint) const override;
  std::string Needs() const override;
  std::string Trouble() const override { return descriptors_.Trouble(); }
  uint64_t refused() const override { return listener_ == nullptr ? 0 : listener_->refused(); }

 private:
  TcpTransport(const Options& options, std::string congestion_control, Poller* poller, const Clock* clock, LogFn log, Greet greet);

  const Options options_;
  const std::string congestion_control_;
  const LogFn log_;
  DescriptorWatch descriptors_;
  TcpShared shared_;
  TcpProbes probes_;
  std::unique_ptr<TcpListener> listener_;
  std::map<size_t, size_t> rail_listeners_;  // the listener's handle, by rail
  std::unique_ptr<Workers> workers_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_TCP_TCP_TRANSPORT_H_
