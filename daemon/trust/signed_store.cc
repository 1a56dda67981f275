#include "daemon/trust/signed_store.h"

#include <openssl/evp.h>

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "base/names.h"
#include "proto/store.pb.h"

namespace r2cc::daemon {
namespace {

// A node's certificate with what leads to the authority has 1 to 4 KiB, a view with all its pairs 30 KiB.
constexpr size_t kPemBytesMax = 16 << 10;
constexpr size_t kValueBytesMax = 128 << 10;
// For a new certificate, which is there days before the old one expires, and for lifetimes of minutes.
constexpr Nanos kRenewalInterval = 5 * kNanosPerSecond;

constexpr int64_t kNoEnd = INT64_MAX;
// The size of ValueExpiry: a tag of two bytes and a number of eight.
constexpr size_t kLifetimeBytes = 10;

// Takes the lifetime off the end of a signed `value`. kNoEnd: there is none, as a daemon of 0.2.0 signed it. A view ends in random bytes,
// and one that begins its last ten with this field's tag by chance is taken for one with a lifetime: one of 65,536 of 0.2.0.
int64_t TakeLifetime(std::string* value) {
  if (value->size() < kLifetimeBytes) return kNoEnd;
  const std::string end = value->substr(value->size() - kLifetimeBytes);
  v1::ValueExpiry expiry;
  if (!expiry.ParseFromString(end)) return kNoEnd;
  expiry.DiscardUnknownFields();  // nearly every eighth end of random bytes parses as fields that nobody knows
  if (expiry.SerializeAsString() != end) return kNoEnd;
  value->resize(value->size() - kLifetimeBytes);
  return static_cast<int64_t>(std::min<uint64_t>(expiry.until_s(), kNoEnd - 1));
}

std::string Clean(const std::string& text) { return CleanText(text.data(), std::min<size_t>(text.size(), 128)); }

std::string Digest(const std::string& text) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  if (EVP_Digest(text.data(), text.size(), digest, &bytes, EVP_sha256(), nullptr) != 1) return "";
  return std::string(reinterpret_cast<const char*>(digest), bytes);
}

}  // namespace

std::string SignedText(const std::string& key, const std::string& value) {
  return absl::StrCat("r2cc store value 1\n", key.size(), "\n", key, "\n", value);
}

void SignedStore::Start(const std::string& prefix, Callbacks callbacks) {
  prefix_ = prefix;
  on_change_ = callbacks.on_change;
  if (tls_ != nullptr) Arm();
  store_->Start(prefix, {[this, on_change = callbacks.on_change](const StoreChange& change) {
                           if (change.deleted) {
                             until_s_.erase(change.key);
                             return on_change(change);
                           }
                           StoreChange opened = change;
                           auto value = Open(change.key, change.value);
                           if (!value.has_value()) {
                             // Somebody wrote over our own: it is gone, and is to be put again.
                             if (!own_.contains(change.key)) return;
                             opened.value.clear();
                             opened.deleted = true;
                             return on_change(opened);
                           }
                           opened.value = *std::move(value);
                           on_change(opened);
                         },
                         callbacks.on_state});
}

void SignedStore::Put(const std::string& key, const std::string& value, int64_t lease_ms) {
  if (tls_ != nullptr && signed_by_ == nullptr) signed_by_ = tls_->Get();
  Own& own = own_[key];
  own.value = value;
  own.lease_ms = lease_ms;
  PutSigned(key, &own);
}

void SignedStore::Arm() {
  renewal_timer_ = executor_->RunAfter(kRenewalInterval, [this] {
    Arm();
    Renew();
    EndOld();
  });
}

void SignedStore::Renew() {
  if (own_.empty()) return;
  const bool new_certificate = tls_->Get() != signed_by_;
  signed_by_ = tls_->Get();
  for (auto& [key, own] : own_)
    if (new_certificate || tls_->now_s() >= own.renew_s) PutSigned(key, &own);
}

void SignedStore::EndOld() {
  const int64_t now = tls_->now_s();
  for (auto at = until_s_.begin(); at != until_s_.end();) {
    if (at->second > now) {
      ++at;
      continue;
    }
    const std::string key = at->first;
    at = until_s_.erase(at);
    LogInfo("an entry of the store was not signed again in time: its node is gone from the store", {{"key", Clean(key)}});
    StoreChange change;
    change.key = key;
    change.deleted = true;
    on_change_(change);
  }
}

void SignedStore::EndRenewal() {
  if (renewal_timer_ != 0) executor_->Cancel(std::exchange(renewal_timer_, 0));
}

void SignedStore::PutSigned(const std::string& key, Own* own) {
  v1::SignedValue stored;
  stored.set_value(own->value);
  if (tls_ != nullptr) {
    const auto contents = tls_->Get();
    const int64_t now = tls_->now_s();
    v1::ValueExpiry expiry;
    expiry.set_until_s(static_cast<uint64_t>(now + LifetimeS(until_s_.size())));
    own->renew_s = now + RenewalS(until_s_.size());
    stored.set_value(own->value + expiry.SerializeAsString());
    auto signature = Sign(contents->key.get(), SignedText(key, stored.value()));
    if (signature.ok()) {
      stored.set_certificate(contents->pem);
      stored.set_signature(*std::move(signature));
    } else {
      LogError("the own view cannot be signed for the store", {{"reason", std::string(signature.status().message())}});
    }
  }
  store_->Put(key, stored.SerializeAsString(), own->lease_ms);
}

std::optional<std::string> SignedStore::Open(const std::string& key, const std::string& stored) {
  const auto refuse = [&](const std::string& reason, const std::string& who, const std::string& what) {
    refusals_->Count("store", reason, who, absl::StrCat("the store's ", Clean(key), ": ", what));
    return std::nullopt;
  };
  if (stored.size() > kValueBytesMax)
    return refuse("too-large", "an unknown writer", absl::StrCat("it has ", stored.size(), " bytes, and ", kValueBytesMax, " are read"));
  v1::SignedValue value;
  if (!value.ParseFromString(stored)) return refuse("garbled", "an unknown writer", "it is garbled");
  if (tls_ == nullptr) {
    if (!value.certificate().empty()) TakeLifetime(value.mutable_value());
    return std::move(*value.mutable_value());
  }
  const std::string node = absl::StartsWith(key, prefix_) ? key.substr(prefix_.size()) : "";
  if (value.certificate().empty()) {
    if (insecure_ && !has_signed_.contains(node)) return value.value();
    return refuse("not-signed", "an unknown writer", "it is not signed");
  }
  const auto writer = NodeOf(node, value.certificate(), SignedText(key, value.value()), value.signature());
  if (!writer.ok()) return refuse("not-proven", "an unknown writer", std::string(writer.status().message()));
  if (*writer != node) return refuse("other-node", absl::StrCat("node ", *writer), absl::StrCat("node ", *writer, " wrote it"));
  if (insecure_) has_signed_[node] = true;
  const int64_t until = TakeLifetime(value.mutable_value());
  if (const int64_t now = tls_->now_s(); until <= now)
    return refuse("too-old", absl::StrCat("node ", node),
                  absl::StrCat("it expired ", now - until, " s ago by this machine's clock: it is an old copy, or a clock is wrong"));
  until_s_[key] = until;
  return std::move(*value.mutable_value());
}

absl::StatusOr<std::string> SignedStore::NodeOf(const std::string& node, const std::string& pem, const std::string& text,
                                                const std::string& signature) {
  if (pem.size() > kPemBytesMax)
    return absl::PermissionDeniedError(absl::StrCat("its certificate has ", pem.size(), " bytes, and ", kPemBytesMax, " are read"));
  const auto contents = tls_->Get();
  const int64_t now = tls_->now_s();
  std::string digest = Digest(pem);
  const auto known = known_.find(node);
  if (known != known_.end() && known->second.pem_digest == digest && known->second.until_s > now && known->second.by == contents) {
    if (known->second.certificate.Signed(text, signature)) return node;
    return absl::PermissionDeniedError(absl::StrCat("its signature is not that of node ", node));
  }
  auto certificate = Certificate::Parse(pem);
  if (!certificate.ok()) return absl::PermissionDeniedError(absl::StrCat("its certificate ", certificate.status().message()));
  const auto identity = certificate->identity();
  if (!identity.ok()) return absl::PermissionDeniedError(absl::StrCat("its certificate ", identity.status().message()));
  if (const auto status = contents->authorities.Check(*certificate, Purpose::kClient, now); !status.ok())
    return absl::PermissionDeniedError(absl::StrCat("the certificate of ", Describe(*identity), " ", status.message()));
  if (identity->kind != Identity::Kind::kNode) return absl::PermissionDeniedError(absl::StrCat(Describe(*identity), " wrote it"));
  if (!certificate->Signed(text, signature))
    return absl::PermissionDeniedError(absl::StrCat("its signature is not that of node ", identity->name));
  // Only what is believed is kept: a certificate is in every value of its node, for everybody to copy.
  const int64_t until = certificate->not_after_s();
  if (identity->name == node) known_.insert_or_assign(node, Known{std::move(digest), *std::move(certificate), until, contents});
  return identity->name;
}

}  // namespace r2cc::daemon
