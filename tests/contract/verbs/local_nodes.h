// Both nodes in this network namespace, and rails between them whose packets leave by one interface and come in by another: soft-RoCE knows
// no other namespace, and a machine's own NICs can be cabled to each other.
#ifndef R2CC_TESTS_CONTRACT_VERBS_LOCAL_NODES_H_
#define R2CC_TESTS_CONTRACT_VERBS_LOCAL_NODES_H_

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <utility>

#include "tests/contract/processes/nodes.h"

namespace r2cc::contract {

struct Cable {
  std::array<std::string, 2> interfaces;  // of either end
  // Each end's port of `bridge`; empty: real NICs, which can neither fall silent without an event nor be slowed down.
  std::array<std::string, 2> ports = {};
  std::string bridge = {};
  std::string mend = {};  // a command that makes the routes again which went with an interface that was down; may be empty
};

// The interfaces have addresses, and routes by which packets leave.
class LocalNodes final : public Nodes {
 public:
  // The last cable is the out-of-band one. `transport`: R2CC_TRANSPORT.
  LocalNodes(std::array<Cable, kRails + 1> cables, std::string transport) : cables_(std::move(cables)), transport_(std::move(transport)) {}

  int OpenNamespace(End end) const override;
  std::string InterfaceOf(End end, int rail) const override { return CableOf(rail).interfaces[static_cast<size_t>(end)]; }
  std::map<std::string, std::string> Environment() const override { return {{"R2CC_TRANSPORT", transport_}}; }
  void Cut(End end, int rail) override;
  void Silence(End end, int rail) override;
  void Heal(End end, int rail) override;
  void Shape(End end, int rail, int64_t bytes_per_s) override;
  void Reset(int64_t rail_bytes_per_s) override;

  // Every rail reaches every rail; or rail k rail k alone, as in the beginning. All cables have bridges.
  void SetFullFabric(bool full);

 private:
  struct State {
    bool cut = false;
    bool silenced = false;
    int64_t bytes_per_s = 0;
  };
  const Cable& CableOf(int rail) const { return cables_[static_cast<size_t>(rail == kOob ? kRails : rail)]; }
  const std::string& BridgeOf(int rail) const { return CableOf(full_fabric_ && rail != kOob ? 0 : rail).bridge; }
  // What goes down: the switch's end of the cable, if there is one, so that addresses and routes stay.
  const std::string& FaultyEnd(End end, int rail) const {
    const Cable& cable = CableOf(rail);
    return (cable.bridge.empty() ? cable.interfaces : cable.ports)[static_cast<size_t>(end)];
  }
  State& StateOf(End end, int rail) { return states_[end][rail == kOob ? kRails : rail]; }

  const std::array<Cable, kRails + 1> cables_;
  const std::string transport_;
  State states_[2][kRails + 1];
  bool full_fabric_ = false;
};

// The rails of tests/rigs/one_guest with 5 bridged rails, the last of which is the out-of-band cable.
std::array<Cable, kRails + 1> CablesOfGuest();

}  // namespace r2cc::contract

#endif  // R2CC_TESTS_CONTRACT_VERBS_LOCAL_NODES_H_
