// Makes a cluster's authority, and certificates of it.
#ifndef R2CC_BASE_TLS_AUTHORITY_H_
#define R2CC_BASE_TLS_AUTHORITY_H_

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "base/tls/certificate.h"

namespace r2cc {

// PEM, both.
struct CertificateAndKey {
  std::string certificate;
  std::string key;
};

// When a certificate is valid, CLOCK_REALTIME. It begins an hour early: clocks differ.
struct Validity {
  int64_t not_before_s = 0;
  int64_t not_after_s = 0;
};
Validity ForDays(int64_t now_s, int days);

// A new authority, which signs itself.
absl::StatusOr<CertificateAndKey> MakeAuthority(const std::string& common_name, const Validity& validity);

// A certificate for `identity`: a node's is for both ends of a connection, an operator's only for the client.
absl::StatusOr<CertificateAndKey> Issue(const CertificateAndKey& authority, const Identity& identity, const Validity& validity);

}  // namespace r2cc

#endif  // R2CC_BASE_TLS_AUTHORITY_H_
