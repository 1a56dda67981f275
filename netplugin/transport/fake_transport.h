// Fakes a transport that only registers memory. Each key is a new number.
#ifndef R2CC_NETPLUGIN_TRANSPORT_FAKE_TRANSPORT_H_
#define R2CC_NETPLUGIN_TRANSPORT_FAKE_TRANSPORT_H_

#include <fcntl.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "netplugin/transport/links.h"

namespace r2cc::net {

class FakeTransport final : public Transport {
 public:
  FakeTransport(TransportKind kind, bool keys) : kind_(kind), keys_(keys) {}

  TransportKind kind() const override { return kind_; }
  bool Listen(const Rail&, Endpoint*, std::string*) override { return true; }
  std::unique_ptr<Port> NewPort(const SessionKey&, const PeerState*) override { return nullptr; }
  bool Register(const Memory& memory, uint16_t rail, Endpoint* key, std::string* error) override {
    if (lost.contains(rail) || !kinds.contains(memory.kind)) {
      *error = "cannot";
      return false;
    }
    EXPECT_TRUE(memory.kind != MemoryKind::kDmaBuf || fcntl(memory.dma_buf, F_GETFD) >= 0);
    if (keys_) *key = {++next_key_};
    return true;
  }
  bool Takes(MemoryKind kind, uint16_t rail) override { return kinds.contains(kind) && !lost.contains(rail); }
  void Unregister(const Memory& memory, uint16_t rail) override { unregistered.emplace(memory.id, rail); }

  std::set<uint16_t> lost;
  std::set<MemoryKind> kinds = {MemoryKind::kHost};
  std::set<std::pair<RegionId, uint16_t>> unregistered;

 private:
  const TransportKind kind_;
  const bool keys_;
  uint8_t next_key_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_FAKE_TRANSPORT_H_
