// Engines of one process, over TCP on the loopback.
#ifndef R2CC_TESTS_PLUGIN_ENGINE_NODE_H_
#define R2CC_TESTS_PLUGIN_ENGINE_NODE_H_

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/rails/host_network.h"
#include "netplugin/transport/engine.h"
#include "netplugin/transport/tcp/tcp_transport.h"

namespace r2cc::net {

// One node of a job: an engine, and a port for its flows.
struct EngineNode {
  explicit EngineNode(const std::string& name, const std::vector<FailRail>& fail_rails = {}) {
    const std::map<std::string, std::string> environment = {
        {"R2CC_RAILS", "127.0.0.2,127.0.0.3"}, {"R2CC_NODE", name}, {"R2CC_ATTACH", "none"}, {"R2CC_BULK_THREADS", "0"}};
    const auto get = [&](const char* variable) {
      const auto it = environment.find(variable);
      return it == environment.end() ? nullptr : it->second.c_str();
    };
    Engine::Parts parts;
    std::string error;
    SystemHostNetwork host;
    const bool resolved = LoadConfig(get, &parts.config, &error) && ResolveRails(parts.config.rails, host, {}, &parts.rails, &error) &&
                          ChooseOobAddress("", parts.rails, host, &parts.oob_address, &error);
    EXPECT_TRUE(resolved) << error;
    parts.config.fail_rails = fail_rails;
    parts.link_events = std::make_unique<NoLinkEvents>();
    parts.daemon = std::make_unique<NoDaemon>();
    parts.log = [](LogLevel, const std::string&) {};
    parts.make_transport = TcpTransport::Maker(parts.config);
    engine = Engine::Start(std::move(parts), &error);
    EXPECT_NE(engine, nullptr) << error;
  }
  // Of all its rails.
  bool HasFailedOver() {
    for (const std::string& line : engine->Summary())
      if (line.find(" failovers") != std::string::npos && line.find(" 0 failovers") == std::string::npos) return true;
    return false;
  }
  std::unique_ptr<Engine> engine;
  PeerFlowPort port;
};

}  // namespace r2cc::net

#endif  // R2CC_TESTS_PLUGIN_ENGINE_NODE_H_
