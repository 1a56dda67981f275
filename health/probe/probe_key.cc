#include "health/probe/probe_key.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>

#include "base/core/check.h"

namespace r2cc::health {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Context = std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)>;

Key Private(const ProbeSecret& secret) {
  return {EVP_PKEY_new_raw_private_key(EVP_PKEY_X25519, nullptr, secret.data(), secret.size()), EVP_PKEY_free};
}

std::array<uint8_t, 32> Hmac(std::span<const uint8_t> key, std::span<const uint8_t> bytes) {
  std::array<uint8_t, 32> digest;
  unsigned int size = 0;
  R2CC_CHECK(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes.data(), bytes.size(), digest.data(), &size) != nullptr);
  R2CC_CHECK(size == digest.size());
  return digest;
}

}  // namespace

uint64_t NonceOf(const ProbePublicKey& key) {
  uint64_t nonce = 0;
  for (size_t i = 0; i < sizeof(nonce); ++i) nonce |= static_cast<uint64_t>(key[i]) << (8 * i);
  return std::max<uint64_t>(nonce, 1);
}

ProbeIdentity::ProbeIdentity(const ProbeSecret& secret) : secret_(secret) {
  const Key key = Private(secret_);
  size_t bytes = public_key_.size();
  R2CC_CHECK(key != nullptr && EVP_PKEY_get_raw_public_key(key.get(), public_key_.data(), &bytes) == 1 && bytes == public_key_.size());
  nonce_ = NonceOf(public_key_);
}

std::optional<ProbeMacKey> ProbeIdentity::Agree(uint64_t peer_nonce, const ProbePublicKey& peer) const {
  const Key own = Private(secret_);
  const Key other(EVP_PKEY_new_raw_public_key(EVP_PKEY_X25519, nullptr, peer.data(), peer.size()), EVP_PKEY_free);
  if (own == nullptr || other == nullptr) return std::nullopt;
  const Context context(EVP_PKEY_CTX_new(own.get(), nullptr), EVP_PKEY_CTX_free);
  std::array<uint8_t, 32> shared{};
  size_t bytes = shared.size();
  // Fails for a peer's key that leaves nothing secret.
  if (context == nullptr || EVP_PKEY_derive_init(context.get()) != 1 || EVP_PKEY_derive_set_peer(context.get(), other.get()) != 1 ||
      EVP_PKEY_derive(context.get(), shared.data(), &bytes) != 1 || bytes != shared.size())
    return std::nullopt;
  // Both ends compute the same: the lesser number first. And the key is for this purpose alone.
  constexpr char kPurpose[] = "r2cc rail probe";
  std::array<uint8_t, sizeof(kPurpose) + 2 * sizeof(uint64_t)> info{};
  const std::pair<uint64_t, uint64_t> nonces = std::minmax(nonce_, peer_nonce);
  std::memcpy(info.data(), kPurpose, sizeof(kPurpose));
  std::memcpy(info.data() + sizeof(kPurpose), &nonces.first, sizeof(uint64_t));
  std::memcpy(info.data() + sizeof(kPurpose) + sizeof(uint64_t), &nonces.second, sizeof(uint64_t));
  return Hmac(shared, info);
}

ProbeMac MacOf(const ProbeMacKey& key, std::span<const uint8_t> bytes) {
  const auto digest = Hmac(key, bytes);
  ProbeMac mac;
  std::copy_n(digest.begin(), mac.size(), mac.begin());
  return mac;
}

bool SameMac(const ProbeMac& a, const ProbeMac& b) { return CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0; }

}  // namespace r2cc::health
