// RDMA devices as a transport: see links.h. Each rail is a port of a device, which is opened when the rail is first listened on, and again
// when it was lost and has come back.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_TRANSPORT_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_TRANSPORT_H_

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "netplugin/transport/links.h"
#include "netplugin/transport/verbs/link_core.h"

namespace r2cc::net::verbs {

class VerbsTransport final : public Transport {
 public:
  struct Options {
    Verbs* verbs = nullptr;
    const Clock* clock = nullptr;
    std::function<uint32_t()> random;
    std::function<void(LogLevel, const std::string&)> log;
    std::function<std::unique_ptr<ControlThread>(const std::string& device)> make_control;
    // The device and the port that a rail is; an empty name: none.
    std::function<std::string(const Rail& rail, uint8_t* port)> device_of;
    // See VerbsShared.
    std::function<void(uint16_t rail)> keys_revoked;
    bool adaptive_routing = false;
  };
  explicit VerbsTransport(const Options& options);
  ~VerbsTransport() override;

  TransportKind kind() const override { return TransportKind::kVerbs; }
  bool Listen(const Rail& rail, Endpoint* own, std::string* error) override;
  bool Register(const Memory& memory, uint16_t rail, Endpoint* key, std::string* error) override;
  void Unregister(const Memory& memory, uint16_t rail) override { shared_.regions.Unregister(memory, rail); }
  std::unique_ptr<Port> NewPort(const SessionKey& key, const PeerState*) override;
  void Tick(Nanos now) override;

 private:
  // Null and one line in `*error`.
  std::shared_ptr<Device> DeviceNamed(const std::string& name, std::string* error);

  const Options options_;
  VerbsShared shared_;
  std::map<std::string, std::shared_ptr<Device>> devices_;
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_VERBS_TRANSPORT_H_
