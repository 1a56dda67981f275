// Reads a certificate, and judges whether it is valid. Pure: the time is an argument. Thread-safe, because nothing changes.
//
// An owner's name is one URI among the certificate's subject alternative names, of this form and no other:
//   r2cc://node/NAME       the daemon of node NAME
//   r2cc://operator/NAME   a person who asks and commands daemons
#ifndef R2CC_BASE_TLS_CERTIFICATE_H_
#define R2CC_BASE_TLS_CERTIFICATE_H_

#include <openssl/evp.h>
#include <openssl/x509.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace r2cc {

struct Identity {
  enum class Kind { kNode, kOperator };
  Kind kind = Kind::kNode;
  std::string name;

  friend bool operator==(const Identity&, const Identity&) = default;
};

// "node n1", "operator alice"
std::string Describe(const Identity& identity);
// "r2cc://node/n1"
std::string Uri(const Identity& identity);

struct FreeX509 {
  void operator()(X509* certificate) const { X509_free(certificate); }
};
struct FreeKey {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};
using X509Ptr = std::unique_ptr<X509, FreeX509>;
using KeyPtr = std::unique_ptr<EVP_PKEY, FreeKey>;
struct FreeCrl {
  void operator()(X509_CRL* list) const { X509_CRL_free(list); }
};
using CrlPtr = std::unique_ptr<X509_CRL, FreeCrl>;

// The use for which a certificate is shown.
enum class Purpose { kServer, kClient };

// One certificate, and those after it in the same text, towards the authority.
class Certificate {
 public:
  // PEM. INVALID_ARGUMENT: it holds no certificate, or one that cannot be read.
  static absl::StatusOr<Certificate> Parse(std::string_view pem);

  // Its owner. INVALID_ARGUMENT if it names none, or more than one.
  absl::StatusOr<Identity> identity() const;
  // CLOCK_REALTIME.
  int64_t not_before_s() const;
  int64_t not_after_s() const;
  bool Fits(const EVP_PKEY* key) const;
  // Whether `signature` is its key's over `text`.
  bool Signed(std::string_view text, std::string_view signature) const;

  const X509* x509() const { return chain_.front().get(); }
  const std::vector<X509Ptr>& chain() const { return chain_; }

 private:
  std::vector<X509Ptr> chain_;  // at least one
};

// The authorities whose signature makes a certificate one of this cluster.
class Authorities {
 public:
  // PEM, one certificate or several: while an authority is replaced there are two.
  static absl::StatusOr<Authorities> Parse(std::string_view pem);

  // OK if `certificate` leads to one of these, is valid at `now_s`, and is for `purpose`. Else PERMISSION_DENIED with the reason, which
  // reads behind "the certificate of node n1 ".
  absl::Status Check(const Certificate& certificate, Purpose purpose, int64_t now_s) const;
  // Certificates that Check() refuses from now on, though an authority signed them: a line each has the SHA-256 of one, as `openssl x509
  // -fingerprint -sha256` prints it; what is behind # is not read. INVALID_ARGUMENT: a line is none, which is named.
  absl::Status Refuse(std::string_view lines);
  // The same, by lists that the authorities signed (PEM). INVALID_ARGUMENT: one is no list, or of nobody here.
  absl::Status AddRevoked(std::string_view pem);
  // OK if each of these is an authority and valid at `now_s`.
  absl::Status CheckThemselves(int64_t now_s) const;

 private:
  std::vector<X509Ptr> roots_;
  std::set<std::string> refused_;  // SHA-256, in capitals without colons
  std::vector<CrlPtr> revoked_;
};

absl::StatusOr<KeyPtr> ParseKey(std::string_view pem);
absl::StatusOr<std::string> Sign(EVP_PKEY* key, std::string_view text);

// "2026-11-24 19:40 UTC"
std::string DateText(int64_t time_s);

}  // namespace r2cc

#endif  // R2CC_BASE_TLS_CERTIFICATE_H_
