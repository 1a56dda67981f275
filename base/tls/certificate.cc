#include "base/tls/certificate.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <ctime>
#include <optional>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "base/names.h"

namespace r2cc {
namespace {

constexpr char kNodeUri[] = "r2cc://node/";
constexpr char kOperatorUri[] = "r2cc://operator/";
constexpr char kAnyUri[] = "r2cc://";
// A leaf and what leads to its authority; more is nobody's chain.
constexpr size_t kChainMax = 8;
constexpr size_t kSignatureBytesMax = 1024;

struct FreeBio {
  void operator()(BIO* bio) const { BIO_free(bio); }
};
using BioPtr = std::unique_ptr<BIO, FreeBio>;
struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

BioPtr Reader(std::string_view text) { return BioPtr(BIO_new_mem_buf(text.data(), static_cast<int>(text.size()))); }

absl::StatusOr<std::vector<X509Ptr>> ReadAll(std::string_view pem, size_t most) {
  const BioPtr bio = Reader(pem);
  std::vector<X509Ptr> found;
  while (X509* certificate = PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr)) {
    found.emplace_back(certificate);
    if (found.size() > most) return absl::InvalidArgumentError(absl::StrCat("holds more than ", most, " certificates"));
  }
  // The end of the text is no error; garbage in it is.
  const unsigned long error = ERR_peek_last_error();
  ERR_clear_error();
  if (found.empty() || (error != 0 && !(ERR_GET_LIB(error) == ERR_LIB_PEM && ERR_GET_REASON(error) == PEM_R_NO_START_LINE)))
    return absl::InvalidArgumentError("is not a certificate in PEM form");
  return found;
}

int64_t ToSeconds(const ASN1_TIME* time) {
  std::tm parts{};
  if (time == nullptr || ASN1_TIME_to_tm(time, &parts) != 1) return 0;
  return timegm(&parts);
}

struct FreeNames {
  void operator()(GENERAL_NAMES* names) const { GENERAL_NAMES_free(names); }
};
struct FreeStore {
  void operator()(X509_STORE* store) const { X509_STORE_free(store); }
};
struct FreeStoreContext {
  void operator()(X509_STORE_CTX* context) const { X509_STORE_CTX_free(context); }
};

std::string NameText(const X509_NAME* name) {
  char text[256] = {};
  X509_NAME_oneline(name, text, sizeof(text));
  return CleanText(text, sizeof(text));
}

std::string Sha256Of(const X509* certificate) {
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  if (X509_digest(certificate, EVP_sha256(), digest, &bytes) != 1) return "";
  return absl::AsciiStrToUpper(absl::BytesToHexString(absl::string_view(reinterpret_cast<const char*>(digest), bytes)));
}

// X509_verify_cert's reason in plain English.
std::string WhyRefused(int error, const Certificate& certificate) {
  switch (error) {
    case X509_V_ERR_CERT_HAS_EXPIRED: return absl::StrCat("expired on ", DateText(certificate.not_after_s()));
    case X509_V_ERR_CERT_NOT_YET_VALID: return absl::StrCat("is not valid before ", DateText(certificate.not_before_s()));
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT:
    case X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY:
    case X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE:
    case X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT:
    case X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN:
    case X509_V_ERR_CERT_SIGNATURE_FAILURE:
      return absl::StrCat("is not of this cluster's authority, but of ", NameText(X509_get_issuer_name(certificate.x509())));
    case X509_V_ERR_INVALID_PURPOSE: return "is for another purpose (its extendedKeyUsage)";
    default: return absl::StrCat("is refused: ", X509_verify_cert_error_string(error));
  }
}

}  // namespace

std::string Describe(const Identity& identity) {
  return absl::StrCat(identity.kind == Identity::Kind::kNode ? "node " : "operator ", identity.name);
}

std::string Uri(const Identity& identity) {
  return absl::StrCat(identity.kind == Identity::Kind::kNode ? kNodeUri : kOperatorUri, identity.name);
}

std::string DateText(int64_t time_s) { return absl::FormatTime("%Y-%m-%d %H:%M UTC", absl::FromUnixSeconds(time_s), absl::UTCTimeZone()); }

absl::StatusOr<Certificate> Certificate::Parse(std::string_view pem) {
  auto chain = ReadAll(pem, kChainMax);
  if (!chain.ok()) return chain.status();
  Certificate certificate;
  certificate.chain_ = *std::move(chain);
  return certificate;
}

absl::StatusOr<Identity> Certificate::identity() const {
  const std::unique_ptr<GENERAL_NAMES, FreeNames> names(
      static_cast<GENERAL_NAMES*>(X509_get_ext_d2i(x509(), NID_subject_alt_name, nullptr, nullptr)));
  std::optional<Identity> found;
  for (int i = 0; names != nullptr && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type != GEN_URI) continue;
    const ASN1_IA5STRING* uri = name->d.uniformResourceIdentifier;
    const std::string_view text(reinterpret_cast<const char*>(ASN1_STRING_get0_data(uri)), static_cast<size_t>(ASN1_STRING_length(uri)));
    if (!text.starts_with(kAnyUri)) continue;
    if (found.has_value()) return absl::InvalidArgumentError("has two r2cc:// names where one is allowed");
    Identity identity;
    if (text.starts_with(kNodeUri))
      identity = {Identity::Kind::kNode, std::string(text.substr(sizeof(kNodeUri) - 1))};
    else if (text.starts_with(kOperatorUri))
      identity = {Identity::Kind::kOperator, std::string(text.substr(sizeof(kOperatorUri) - 1))};
    if (!IsNodeName(identity.name))
      return absl::InvalidArgumentError(absl::StrCat("has the name ", CleanText(text.data(), std::min<size_t>(text.size(), 128)),
                                                     ", which is neither ", kNodeUri, "NODE nor ", kOperatorUri, "NAME"));
    found = std::move(identity);
  }
  if (!found.has_value())
    return absl::InvalidArgumentError(absl::StrCat("has no name: it needs the subject alternative name URI:", kNodeUri, "NODE"));
  return *found;
}

int64_t Certificate::not_before_s() const { return ToSeconds(X509_get0_notBefore(x509())); }
int64_t Certificate::not_after_s() const { return ToSeconds(X509_get0_notAfter(x509())); }

bool Certificate::Fits(const EVP_PKEY* key) const {
  const bool fits = X509_check_private_key(x509(), key) == 1;
  ERR_clear_error();
  return fits;
}

bool Certificate::Signed(std::string_view text, std::string_view signature) const {
  EVP_PKEY* const key = X509_get0_pubkey(x509());
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> context(EVP_MD_CTX_new());
  const bool good = key != nullptr && signature.size() <= kSignatureBytesMax &&
                    EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
                    EVP_DigestVerify(context.get(), reinterpret_cast<const unsigned char*>(signature.data()), signature.size(),
                                     reinterpret_cast<const unsigned char*>(text.data()), text.size()) == 1;
  ERR_clear_error();
  return good;
}

absl::StatusOr<Authorities> Authorities::Parse(std::string_view pem) {
  auto roots = ReadAll(pem, kChainMax);
  if (!roots.ok()) return roots.status();
  Authorities authorities;
  authorities.roots_ = *std::move(roots);
  return authorities;
}

absl::Status Authorities::Refuse(std::string_view lines) {
  for (absl::string_view line : absl::StrSplit(absl::string_view(lines.data(), lines.size()), '\n')) {
    line = absl::StripAsciiWhitespace(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    absl::string_view digits = line;
    if (const size_t equals = digits.rfind('='); equals != absl::string_view::npos) digits.remove_prefix(equals + 1);
    const std::string digest = absl::AsciiStrToUpper(absl::StrReplaceAll(digits, {{":", ""}}));
    if (digest.size() != 64 || digest.find_first_not_of("0123456789ABCDEF") != std::string::npos)
      return absl::InvalidArgumentError(
          absl::StrCat("has '", CleanText(line.data(), std::min<size_t>(line.size(), 100)), "', which is no SHA-256 of a certificate"));
    refused_.insert(digest);
  }
  return absl::OkStatus();
}

absl::Status Authorities::AddRevoked(std::string_view pem) {
  const BioPtr bio = Reader(pem);
  bool any = false;
  while (CrlPtr list{PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr)}) {
    any = true;
    const bool ours = std::any_of(roots_.begin(), roots_.end(), [&](const X509Ptr& root) {
      return X509_NAME_cmp(X509_get_subject_name(root.get()), X509_CRL_get_issuer(list.get())) == 0 &&
             X509_CRL_verify(list.get(), X509_get0_pubkey(root.get())) == 1;
    });
    ERR_clear_error();
    if (!ours) return absl::InvalidArgumentError("holds a list that none of these authorities has signed");
    revoked_.push_back(std::move(list));
  }
  ERR_clear_error();
  return any ? absl::OkStatus() : absl::InvalidArgumentError("holds no list of revoked certificates in PEM form");
}

absl::Status Authorities::Check(const Certificate& certificate, Purpose purpose, int64_t now_s) const {
  if (!refused_.empty() && refused_.contains(Sha256Of(certificate.x509())))
    return absl::PermissionDeniedError("is refused: its SHA-256 is in the list of refused certificates");
  for (const CrlPtr& list : revoked_) {
    X509_REVOKED* entry = nullptr;
    if (X509_CRL_get0_by_cert(list.get(), &entry, const_cast<X509*>(certificate.x509())) == 1)
      return absl::PermissionDeniedError("is revoked by its authority");
  }
  const std::unique_ptr<X509_STORE, FreeStore> store(X509_STORE_new());
  for (const X509Ptr& root : roots_) X509_STORE_add_cert(store.get(), root.get());
  STACK_OF(X509)* const others = sk_X509_new_null();
  for (const X509Ptr& part : certificate.chain()) sk_X509_push(others, part.get());
  const std::unique_ptr<X509_STORE_CTX, FreeStoreContext> context(X509_STORE_CTX_new());
  int error = X509_V_ERR_UNSPECIFIED;
  if (X509_STORE_CTX_init(context.get(), store.get(), certificate.chain().front().get(), others) == 1) {
    X509_STORE_CTX_set_purpose(context.get(), purpose == Purpose::kServer ? X509_PURPOSE_SSL_SERVER : X509_PURPOSE_SSL_CLIENT);
    X509_VERIFY_PARAM_set_time(X509_STORE_CTX_get0_param(context.get()), now_s);
    error = X509_verify_cert(context.get()) == 1 ? X509_V_OK : X509_STORE_CTX_get_error(context.get());
    // Without the extension OpenSSL takes a certificate for every purpose.
    if (error == X509_V_OK && (X509_get_extension_flags(certificate.chain().front().get()) & EXFLAG_XKUSAGE) == 0)
      error = X509_V_ERR_INVALID_PURPOSE;
  }
  sk_X509_free(others);
  ERR_clear_error();
  return error == X509_V_OK ? absl::OkStatus() : absl::PermissionDeniedError(WhyRefused(error, certificate));
}

absl::Status Authorities::CheckThemselves(int64_t now_s) const {
  for (const X509Ptr& root : roots_) {
    const std::string name = NameText(X509_get_subject_name(root.get()));
    if (X509_check_ca(root.get()) == 0) return absl::InvalidArgumentError(absl::StrCat("holds ", name, ", which is no authority"));
    if (ToSeconds(X509_get0_notAfter(root.get())) < now_s)
      return absl::InvalidArgumentError(
          absl::StrCat("holds ", name, ", which expired on ", DateText(ToSeconds(X509_get0_notAfter(root.get())))));
    if (ToSeconds(X509_get0_notBefore(root.get())) > now_s)
      return absl::InvalidArgumentError(
          absl::StrCat("holds ", name, ", which is not valid before ", DateText(ToSeconds(X509_get0_notBefore(root.get())))));
  }
  return absl::OkStatus();
}

absl::StatusOr<KeyPtr> ParseKey(std::string_view pem) {
  const BioPtr bio = Reader(pem);
  // A key with a passphrase is none that a daemon can use: nobody is there to type it.
  KeyPtr key(PEM_read_bio_PrivateKey(
      bio.get(), nullptr, [](char*, int, int, void*) { return -1; }, nullptr));
  ERR_clear_error();
  if (key == nullptr) return absl::InvalidArgumentError("is not a private key in PEM form without a passphrase");
  return key;
}

absl::StatusOr<std::string> Sign(EVP_PKEY* key, std::string_view text) {
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> context(EVP_MD_CTX_new());
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  size_t size = 0;
  std::string signature;
  if (EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
      EVP_DigestSign(context.get(), nullptr, &size, bytes, text.size()) == 1) {
    signature.resize(size);
    if (EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size, bytes, text.size()) == 1) {
      signature.resize(size);
      return signature;
    }
  }
  ERR_clear_error();
  return absl::InternalError("the key does not sign");
}

}  // namespace r2cc
