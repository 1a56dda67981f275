#include "base/tls/certificate.h"

#include <openssl/bio.h>
#include <openssl/objects.h>
#include <openssl/pem.h>

#include <cstdio>

#include <gtest/gtest.h>

#include "base/tls/authority.h"

namespace r2cc {
namespace {

constexpr int64_t kNow = 1'800'000'000;
constexpr int64_t kDay = 24 * 3600;

CertificateAndKey Authority(int64_t now = kNow) { return *MakeAuthority("r2cc test", ForDays(now, 10)); }
Certificate Parsed(const CertificateAndKey& pair) { return *Certificate::Parse(pair.certificate); }

TEST(CertificateTest, NamesItsOwnerAndIsBelieved) {
  const CertificateAndKey ca = Authority();
  const Authorities authorities = *Authorities::Parse(ca.certificate);
  EXPECT_TRUE(authorities.CheckThemselves(kNow).ok());
  const auto node = Issue(ca, {Identity::Kind::kNode, "n1"}, ForDays(kNow, 5));
  ASSERT_TRUE(node.ok()) << node.status();
  const Certificate certificate = Parsed(*node);
  EXPECT_EQ(*certificate.identity(), (Identity{Identity::Kind::kNode, "n1"}));
  EXPECT_EQ(certificate.not_after_s(), kNow + 5 * kDay);
  for (const Purpose purpose : {Purpose::kServer, Purpose::kClient}) EXPECT_TRUE(authorities.Check(certificate, purpose, kNow).ok());
  EXPECT_TRUE(certificate.Fits(ParseKey(node->key)->get()));
  EXPECT_FALSE(certificate.Fits(ParseKey(ca.key)->get()));

  const std::string signature = *Sign(ParseKey(node->key)->get(), "text");
  EXPECT_TRUE(certificate.Signed("text", signature));
  EXPECT_FALSE(certificate.Signed("texT", signature));
  EXPECT_FALSE(certificate.Signed("text", signature.substr(1)));
  EXPECT_FALSE(certificate.Signed("text", ""));
  EXPECT_FALSE(Parsed(ca).Signed("text", signature));
}

TEST(CertificateTest, EachMistakeHasItsReason) {
  const CertificateAndKey ca = Authority();
  const Authorities authorities = *Authorities::Parse(ca.certificate);
  const auto why = [&](const CertificateAndKey& pair, Purpose purpose, int64_t now) {
    return std::string(authorities.Check(Parsed(pair), purpose, now).message());
  };
  const CertificateAndKey node = *Issue(ca, {Identity::Kind::kNode, "n1"}, ForDays(kNow, 5));
  EXPECT_EQ(why(node, Purpose::kClient, kNow + 6 * kDay), "expired on " + DateText(kNow + 5 * kDay));
  EXPECT_EQ(why(node, Purpose::kClient, kNow - kDay), "is not valid before " + DateText(kNow - 3600));
  const CertificateAndKey foreign = *Issue(Authority(), {Identity::Kind::kNode, "n1"}, ForDays(kNow, 5));
  EXPECT_EQ(why(foreign, Purpose::kClient, kNow), "is not of this cluster's authority, but of /CN=r2cc test");
  const CertificateAndKey alice = *Issue(ca, {Identity::Kind::kOperator, "alice"}, ForDays(kNow, 5));
  EXPECT_EQ(*Parsed(alice).identity(), (Identity{Identity::Kind::kOperator, "alice"}));
  EXPECT_EQ(why(alice, Purpose::kClient, kNow), "");
  EXPECT_EQ(why(alice, Purpose::kServer, kNow), "is for another purpose (its extendedKeyUsage)");
  EXPECT_FALSE(Parsed(ca).identity().ok());
  EXPECT_FALSE(Authorities::Parse(node.certificate)->CheckThemselves(kNow).ok()) << "a node is no authority";
  EXPECT_FALSE(authorities.CheckThemselves(kNow + 11 * kDay).ok());
}

TEST(CertificateTest, GarbageIsRefused) {
  const std::string pem = Authority().certificate;
  for (const std::string& garbage : {std::string(), std::string("garbage"), pem.substr(0, pem.size() / 2), std::string(100'000, 'A')}) {
    EXPECT_FALSE(Certificate::Parse(garbage).ok()) << garbage.substr(0, 20);
    EXPECT_FALSE(Authorities::Parse(garbage).ok());
    EXPECT_FALSE(ParseKey(garbage).ok());
  }
  EXPECT_FALSE(Certificate::Parse(pem + pem.substr(0, 200)).ok()) << "cut off within the second";
  std::string many;
  for (int i = 0; i < 9; ++i) many += pem;
  EXPECT_FALSE(Certificate::Parse(many).ok());
}

TEST(CertificateTest, OnlyNamesOfTheFixedForm) {
  const CertificateAndKey ca = Authority();
  for (const std::string name : {"a-b_c.d", "n:1@x"})
    EXPECT_EQ(Parsed(*Issue(ca, {Identity::Kind::kNode, name}, ForDays(kNow, 5))).identity()->name, name);
  for (const std::string& name : {std::string("a/b"), std::string(), std::string(64, 'a'), std::string("a,URI:r2cc://node/b")})
    EXPECT_FALSE(Issue(ca, {Identity::Kind::kNode, name}, ForDays(kNow, 5)).ok()) << name;
}

TEST(CertificateTest, ARefusedCertificateIsNotBelieved) {
  const CertificateAndKey ca = Authority();
  const CertificateAndKey stolen = *Issue(ca, {Identity::Kind::kNode, "n1"}, ForDays(kNow, 5));
  const CertificateAndKey other = *Issue(ca, {Identity::Kind::kNode, "n1"}, ForDays(kNow, 5));
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int bytes = 0;
  ASSERT_EQ(X509_digest(Parsed(stolen).x509(), EVP_sha256(), digest, &bytes), 1);
  std::string hex;
  for (unsigned int i = 0; i < bytes; ++i) {
    char two[4];
    std::snprintf(two, sizeof(two), i % 2 == 0 ? "%02x:" : "%02X:", digest[i]);
    hex += two;
  }
  hex.pop_back();
  Authorities authorities = *Authorities::Parse(ca.certificate);
  EXPECT_TRUE(authorities.Check(Parsed(stolen), Purpose::kClient, kNow).ok());
  ASSERT_TRUE(authorities.Refuse("# stolen in May\n\nsha256 Fingerprint=" + hex + "  # of n1\n").ok());
  EXPECT_EQ(authorities.Check(Parsed(stolen), Purpose::kClient, kNow).message(),
            "is refused: its SHA-256 is in the list of refused certificates");
  EXPECT_FALSE(authorities.Check(Parsed(stolen), Purpose::kServer, kNow).ok());
  EXPECT_TRUE(authorities.Check(Parsed(other), Purpose::kClient, kNow).ok());
  EXPECT_EQ(authorities.Refuse("abc\n").message(), "has 'abc', which is no SHA-256 of a certificate");
}

TEST(CertificateTest, ARevokedCertificateIsNotBelieved) {
  const CertificateAndKey ca = Authority();
  const CertificateAndKey stolen = *Issue(ca, {Identity::Kind::kNode, "n1"}, ForDays(kNow, 5));
  const CertificateAndKey other = *Issue(ca, {Identity::Kind::kNode, "n1"}, ForDays(kNow, 5));
  const auto list_of = [&](const CertificateAndKey& authority) {
    const CrlPtr list(X509_CRL_new());
    X509_CRL_set_version(list.get(), 1);
    const Certificate issuer = Parsed(authority);
    X509_CRL_set_issuer_name(list.get(), X509_get_subject_name(issuer.x509()));
    ASN1_TIME* const time = ASN1_TIME_set(nullptr, kNow);
    X509_CRL_set1_lastUpdate(list.get(), time);
    X509_REVOKED* const entry = X509_REVOKED_new();
    const Certificate revoked = Parsed(stolen);
    X509_REVOKED_set_serialNumber(entry, const_cast<ASN1_INTEGER*>(X509_get0_serialNumber(revoked.x509())));
    X509_REVOKED_set_revocationDate(entry, time);
    X509_CRL_add0_revoked(list.get(), entry);
    ASN1_TIME_free(time);
    X509_CRL_sign(list.get(), ParseKey(authority.key)->get(), EVP_sha256());
    BIO* const bio = BIO_new(BIO_s_mem());
    PEM_write_bio_X509_CRL(bio, list.get());
    char* text = nullptr;
    const long size = BIO_get_mem_data(bio, &text);
    std::string pem(text, static_cast<size_t>(size));
    BIO_free(bio);
    return pem;
  };
  Authorities authorities = *Authorities::Parse(ca.certificate);
  EXPECT_EQ(authorities.AddRevoked(list_of(Authority())).message(), "holds a list that none of these authorities has signed");
  EXPECT_FALSE(authorities.AddRevoked("garbage").ok());
  EXPECT_TRUE(authorities.Check(Parsed(stolen), Purpose::kClient, kNow).ok());
  ASSERT_TRUE(authorities.AddRevoked(list_of(ca)).ok());
  EXPECT_EQ(authorities.Check(Parsed(stolen), Purpose::kClient, kNow).message(), "is revoked by its authority");
  EXPECT_TRUE(authorities.Check(Parsed(other), Purpose::kClient, kNow).ok());
}

// OpenSSL takes one without the extension for every purpose.
TEST(CertificateTest, ACertificateWithoutPurposeHasNone) {
  const CertificateAndKey ca = Authority();
  const CertificateAndKey node = *Issue(ca, {Identity::Kind::kNode, "n1"}, ForDays(kNow, 5));
  const Certificate parsed = Parsed(node);
  const X509Ptr bare(X509_dup(const_cast<X509*>(parsed.x509())));
  X509_EXTENSION_free(X509_delete_ext(bare.get(), X509_get_ext_by_NID(bare.get(), NID_ext_key_usage, -1)));
  X509_sign(bare.get(), ParseKey(ca.key)->get(), EVP_sha256());
  BIO* const bio = BIO_new(BIO_s_mem());
  PEM_write_bio_X509(bio, bare.get());
  char* text = nullptr;
  const long size = BIO_get_mem_data(bio, &text);
  const Certificate without = *Certificate::Parse(std::string_view(text, static_cast<size_t>(size)));
  BIO_free(bio);
  for (const Purpose purpose : {Purpose::kClient, Purpose::kServer})
    EXPECT_EQ(Authorities::Parse(ca.certificate)->Check(without, purpose, kNow).message(), "is for another purpose (its extendedKeyUsage)");
}

}  // namespace
}  // namespace r2cc
