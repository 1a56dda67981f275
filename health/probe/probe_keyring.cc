#include "health/probe/probe_keyring.h"

#include <utility>

namespace r2cc::health {
namespace {

// Pairs of keys whose agreement is remembered: it takes some 50 us to compute one.
constexpr size_t kAgreedMax = 8192;

}  // namespace

ProbeKeyring::ProbeKeyring(NewSecret new_secret, Nanos now) : new_secret_(std::move(new_secret)), newest_(new_secret_()), made_(now) {}

bool ProbeKeyring::Tick(Nanos now) {
  if (now - made_ >= kProbeKeyAnnounced) sending_ = &newest_;
  if (now - made_ >= kProbeKeyGrace) previous_.reset();
  if (now - made_ < kProbeKeyLifetime) return false;
  made_ = now;
  previous_ = newest_;
  newest_ = ProbeIdentity(new_secret_());
  sending_ = &*previous_;
  agreed_.clear();
  return true;
}

void ProbeKeyring::SetPeer(const std::string& node, uint64_t nonce, const ProbePublicKey& public_key, std::set<std::string> addresses) {
  Node& known = nodes_[node];
  known.addresses = std::move(addresses);
  if (known.nonce == nonce) return;
  Forget(node, known.nonce_before);
  known.nonce_before = std::exchange(known.nonce, nonce);
  // A number that is not the key's is nobody's: else a node could have another's number stand for a key of its own.
  if (nonce == 0 || nonce != NonceOf(public_key)) return;
  peers_[{nonce, node}] = public_key;
}

void ProbeKeyring::Forget(const std::string& node, uint64_t nonce) { peers_.erase({nonce, node}); }

void ProbeKeyring::RemovePeer(const std::string& node) {
  const auto found = nodes_.find(node);
  if (found == nodes_.end()) return;
  Forget(node, found->second.nonce);
  Forget(node, found->second.nonce_before);
  nodes_.erase(found);
}

const ProbeMacKey* ProbeKeyring::MacKey(uint64_t own, const std::string& node, uint64_t peer_nonce) {
  const auto peer = peers_.find({peer_nonce, node});
  if (!IsOwn(own) || peer == peers_.end()) return nullptr;
  const auto known = agreed_.find({own, peer->second});
  if (known != agreed_.end()) return known->second.has_value() ? &*known->second : nullptr;
  if (agreed_.size() >= kAgreedMax) agreed_.clear();
  const ProbeIdentity& identity = own == newest_.nonce() ? newest_ : *previous_;
  const auto& agreed = agreed_.emplace(std::pair(own, peer->second), identity.Agree(peer_nonce, peer->second)).first->second;
  return agreed.has_value() ? &*agreed : nullptr;
}

}  // namespace r2cc::health
