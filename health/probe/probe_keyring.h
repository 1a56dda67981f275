// Holds the keys of rail probes: this daemon's, of which there is a new one each hour, and those that other daemons published. Pure: time
// is an argument.
#ifndef R2CC_HEALTH_PROBE_PROBE_KEYRING_H_
#define R2CC_HEALTH_PROBE_PROBE_KEYRING_H_

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "health/probe/probe_key.h"

namespace r2cc::health {

constexpr Nanos kProbeKeyLifetime = 3600 * kNanosPerSecond;
// A new key is published to all nodes for this time before probes carry it, because views may travel through the store.
constexpr Nanos kProbeKeyAnnounced = 10 * kNanosPerSecond;
// Probes that carry the former key are accepted for this time in addition to those with the new one.
constexpr Nanos kProbeKeyGrace = 60 * kNanosPerSecond;

// One thread at a time.
class ProbeKeyring {
 public:
  using NewSecret = std::function<ProbeSecret()>;
  ProbeKeyring(NewSecret new_secret, Nanos now);
  ProbeKeyring(const ProbeKeyring&) = delete;
  ProbeKeyring& operator=(const ProbeKeyring&) = delete;

  // Makes a new key when it is due. True: publish it.
  bool Tick(Nanos now);
  // The published number and key.
  uint64_t nonce() const { return newest_.nonce(); }
  const ProbePublicKey& public_key() const { return newest_.public_key(); }
  // The one that probes carry.
  uint64_t sending_nonce() const { return sending_->nonce(); }
  bool IsOwn(uint64_t nonce) const { return nonce == newest_.nonce() || (previous_.has_value() && nonce == previous_->nonce()); }

  // The numbers of this node's keys that others' probes may carry.
  std::vector<uint64_t> OwnNonces() const {
    return previous_.has_value() ? std::vector<uint64_t>{newest_.nonce(), previous_->nonce()} : std::vector<uint64_t>{newest_.nonce()};
  }

  // Sets the key and the addresses that `node` publishes now. Its former key stays known until it has a third one.
  void SetPeer(const std::string& node, uint64_t nonce, const ProbePublicKey& public_key, std::set<std::string> addresses);
  void RemovePeer(const std::string& node);
  // The first node for which `is_sender` is true, of those that have published the number as that of their own key, and the address as that
  // of one of their NICs. Mostly there is one. Anybody can publish a key with the same number, so a number does not identify a node. Null:
  // there is none. Valid until the next SetPeer or RemovePeer.
  template <typename IsSender>
  const std::string* FindNode(uint64_t nonce, const std::string& address, IsSender is_sender) const {
    for (auto at = peers_.lower_bound({nonce, ""}); at != peers_.end() && at->first.first == nonce; ++at)
      if (nodes_.at(at->first.second).addresses.contains(address) && is_sender(at->first.second)) return &at->first.second;
    return nullptr;
  }

  // The key for this node's `own` and `peer`, a nonce of `node`. Null: one of them is unknown. Valid until the next call.
  const ProbeMacKey* MacKey(uint64_t own, const std::string& node, uint64_t peer);

 private:
  struct Node {
    uint64_t nonce = 0;
    uint64_t nonce_before = 0;
    std::set<std::string> addresses;
  };
  void Forget(const std::string& node, uint64_t nonce);

  const NewSecret new_secret_;
  ProbeIdentity newest_;
  std::optional<ProbeIdentity> previous_;
  const ProbeIdentity* sending_ = &newest_;
  Nanos made_;
  std::map<std::pair<uint64_t, std::string>, ProbePublicKey> peers_;  // by nonce and node
  std::map<std::string, Node> nodes_;
  std::map<std::pair<uint64_t, ProbePublicKey>, std::optional<ProbeMacKey>> agreed_;
};

}  // namespace r2cc::health

#endif  // R2CC_HEALTH_PROBE_PROBE_KEYRING_H_
