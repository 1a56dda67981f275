#include "base/tls/authority.h"

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "base/names.h"

namespace r2cc {
namespace {

constexpr int64_t kHourS = 3600;
constexpr int64_t kDayS = 24 * kHourS;
constexpr size_t kCommonNameBytesMax = 64;

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using BioPtr = std::unique_ptr<BIO, FreeBio>;

std::string Contents(BIO* bio) {
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio, &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

bool AddExtension(X509* certificate, X509* issuer, int nid, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx_nodb(&context);
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, nid, value.c_str());
  const bool added = extension != nullptr && X509_add_ext(certificate, extension, -1) == 1;
  X509_EXTENSION_free(extension);
  return added;
}

// A certificate with a serial number, a name and a new key, and nothing signed yet.
X509Ptr Blank(const std::string& common_name, EVP_PKEY* key, const Validity& validity) {
  X509Ptr certificate(X509_new());
  unsigned char serial[16];
  if (certificate == nullptr || RAND_bytes(serial, sizeof(serial)) != 1) return nullptr;
  serial[0] &= 0x7f;  // positive
  BIGNUM* number = BN_bin2bn(serial, sizeof(serial), nullptr);
  BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate.get()));
  BN_free(number);
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_TIME_set(X509_getm_notBefore(certificate.get()), validity.not_before_s);
  ASN1_TIME_set(X509_getm_notAfter(certificate.get()), validity.not_after_s);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_UTF8,
                             reinterpret_cast<const unsigned char*>(common_name.data()), static_cast<int>(common_name.size()), -1, 0);
  return X509_set_pubkey(certificate.get(), key) == 1 ? std::move(certificate) : nullptr;
}

absl::StatusOr<CertificateAndKey> ToPem(X509* certificate, EVP_PKEY* key) {
  const BioPtr certificate_text(BIO_new(BIO_s_mem()));
  const BioPtr key_text(BIO_new(BIO_s_mem()));
  if (PEM_write_bio_X509(certificate_text.get(), certificate) != 1 ||
      PEM_write_bio_PrivateKey(key_text.get(), key, nullptr, nullptr, 0, nullptr, nullptr) != 1)
    return absl::InternalError("a certificate cannot be written as PEM");
  return CertificateAndKey{Contents(certificate_text.get()), Contents(key_text.get())};
}

absl::Status Failed(const char* what) {
  const unsigned long error = ERR_get_error();
  ERR_clear_error();
  return absl::InternalError(absl::StrCat(what, ": ", error == 0 ? "unknown" : ERR_reason_error_string(error)));
}

}  // namespace

Validity ForDays(int64_t now_s, int days) { return {now_s - kHourS, now_s + days * kDayS}; }

absl::StatusOr<CertificateAndKey> MakeAuthority(const std::string& common_name, const Validity& validity) {
  const KeyPtr key(EVP_EC_gen("P-256"));
  const X509Ptr certificate = key == nullptr ? nullptr : Blank(common_name.substr(0, kCommonNameBytesMax), key.get(), validity);
  if (certificate == nullptr) return Failed("no authority could be made");
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get()));
  if (!AddExtension(certificate.get(), certificate.get(), NID_basic_constraints, "critical,CA:TRUE,pathlen:0") ||
      !AddExtension(certificate.get(), certificate.get(), NID_key_usage, "critical,keyCertSign,cRLSign") ||
      !AddExtension(certificate.get(), certificate.get(), NID_subject_key_identifier, "hash") ||
      X509_sign(certificate.get(), key.get(), EVP_sha256()) == 0)
    return Failed("no authority could be made");
  return ToPem(certificate.get(), key.get());
}

absl::StatusOr<CertificateAndKey> Issue(const CertificateAndKey& authority, const Identity& identity, const Validity& validity) {
  if (!IsNodeName(identity.name))
    return absl::InvalidArgumentError(
        absl::StrCat("'", CleanText(identity.name.data(), identity.name.size()), "' is not a name (", NameRule(kNodeNameBytesMax), ")"));
  const auto issuer = Certificate::Parse(authority.certificate);
  if (!issuer.ok()) return absl::InvalidArgumentError(absl::StrCat("the authority's certificate ", issuer.status().message()));
  const auto issuer_key = ParseKey(authority.key);
  if (!issuer_key.ok()) return absl::InvalidArgumentError(absl::StrCat("the authority's key ", issuer_key.status().message()));
  if (!issuer->Fits(issuer_key->get())) return absl::InvalidArgumentError("the authority's key is not that of its certificate");
  const KeyPtr key(EVP_EC_gen("P-256"));
  const X509Ptr certificate = key == nullptr ? nullptr : Blank(identity.name.substr(0, kCommonNameBytesMax), key.get(), validity);
  if (certificate == nullptr) return Failed("no certificate could be made");
  X509* const root = issuer->chain().front().get();
  X509_set_issuer_name(certificate.get(), X509_get_subject_name(root));
  const bool node = identity.kind == Identity::Kind::kNode;
  // The URI is R2CC's; the DNS name lets other programs, such as etcd, know the same node.
  if (!AddExtension(certificate.get(), root, NID_subject_alt_name,
                    absl::StrCat("URI:", Uri(identity), node ? ",DNS:" + identity.name : "")) ||
      !AddExtension(certificate.get(), root, NID_basic_constraints, "critical,CA:FALSE") ||
      !AddExtension(certificate.get(), root, NID_key_usage, "critical,digitalSignature") ||
      !AddExtension(certificate.get(), root, NID_ext_key_usage, node ? "serverAuth,clientAuth" : "clientAuth") ||
      !AddExtension(certificate.get(), root, NID_authority_key_identifier, "keyid") ||
      X509_sign(certificate.get(), issuer_key->get(), EVP_sha256()) == 0)
    return Failed("no certificate could be made");
  return ToPem(certificate.get(), key.get());
}

}  // namespace r2cc
