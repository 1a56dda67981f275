#include "base/tls/certificate.h"

#include <gtest/gtest.h>

#include "base/tls/authority.h"

namespace r2cc {
namespace {

constexpr int64_t kNow = 1'800'000'000;
constexpr int64_t kDay = 24 * 3600;

CertificateAndKey Authority(int64_t now = kNow) { return *MakeAuthority("r2cc test", ForDays(now, 10)); }
Certificate Parsed(const CertificateAndKey& pair) { return *Certificate::Parse(pair.certificate); }

TEST(CertificateTest, SaysWhoseItIsAndIsBelieved) {
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

}  // namespace
}  // namespace r2cc
