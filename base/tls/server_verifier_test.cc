#include "base/tls/server_verifier.h"

#include <gtest/gtest.h>

#include "base/tls/authority.h"

namespace r2cc {
namespace {

constexpr int64_t kNow = 1'800'000'000;

TEST(ServerVerifierTest, ANodeIsBelievedAndEachOtherIsRefusedWithAReason) {
  const CertificateAndKey ca = *MakeAuthority("r2cc test", ForDays(kNow, 10));
  const Authorities authorities = *Authorities::Parse(ca.certificate);
  const auto judged = [&](const std::string& pem, int64_t now = kNow) { return ServerIdentity(pem, authorities, now); };
  const std::string node = Issue(ca, {Identity::Kind::kNode, "n1"}, ForDays(kNow, 5))->certificate;
  EXPECT_EQ(*judged(node), (Identity{Identity::Kind::kNode, "n1"}));
  EXPECT_EQ(judged(node, kNow + 6 * 24 * 3600).status().message().substr(0, 41), "the certificate of node n1 expired on 202");
  const std::string alice = Issue(ca, {Identity::Kind::kOperator, "alice"}, ForDays(kNow, 5))->certificate;
  EXPECT_EQ(judged(alice).status().message(), "the certificate of operator alice is for another purpose (its extendedKeyUsage)");
  EXPECT_EQ(judged(ca.certificate).status().message().substr(0, 16), "its certificate ");
  EXPECT_EQ(judged("garbage").status().message().substr(0, 14), "what it shows ");
  const CertificateAndKey foreign = *MakeAuthority("another", ForDays(kNow, 10));
  EXPECT_TRUE(absl::IsPermissionDenied(judged(Issue(foreign, {Identity::Kind::kNode, "n1"}, ForDays(kNow, 5))->certificate).status()));
}

}  // namespace
}  // namespace r2cc
