#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "daemon/config/config.h"

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

absl::StatusOr<Config> Parse(const std::string& text) { return ParseConfig(text, "f", {"/run", "host", "", "/var"}); }

TEST(ConfigHttp, IsOnLoopbackUnlessConfiguredOtherwise) {
  EXPECT_EQ(Parse("")->http.listen, "127.0.0.1:9460");
  EXPECT_EQ(Parse("insecure: true")->http.listen, "127.0.0.1:9460");
  EXPECT_EQ(Parse("http { off: true }")->http.listen, "");
  EXPECT_EQ(Parse("http { listen: '[::1]:0' }")->http.listen, "[::1]:0");
  EXPECT_THAT(Parse("http { hosts: 'n0.example.org' hosts: '*.lab' }")->http.hosts, ElementsAre("n0.example.org", "*.lab"));
}

TEST(ConfigHttp, AnotherAddressNeedsTlsOrInsecure) {
  const auto refused = Parse("\nhttp { listen: '0.0.0.0:9460' }");
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(std::string(refused.status().message()), HasSubstr("f:2: http.listen: 0.0.0.0 is not loopback: it needs tls"));
  EXPECT_EQ(std::string(refused.status().message()).find('\n'), std::string::npos);
  EXPECT_EQ(Parse("insecure: true http { listen: '0.0.0.0:9460' }")->http.listen, "0.0.0.0:9460");
  EXPECT_EQ(Parse("tls { directory: '/t' } http { listen: '10.9.0.1:9460' }")->http.listen, "10.9.0.1:9460");
}

TEST(ConfigHttp, AMistakeIsOneLine) {
  EXPECT_THAT(std::string(Parse("http { listen: '127.0.0.1' }").status().message()), HasSubstr("f:1: http.listen: '127.0.0.1' is not"));
  EXPECT_THAT(std::string(Parse("http { off: true listen: '127.0.0.1:1' }").status().message()), HasSubstr("either off or has listen"));
  for (const char* const host : {"", "a b", "a/b", "n0:9460", "evil\\n"})
    EXPECT_THAT(std::string(Parse("http { hosts: '" + std::string(host) + "' }").status().message()), HasSubstr("is no name of a host"));
  std::string many = "http {";
  for (int i = 0; i < 65; ++i) many += " hosts: 'h'";
  EXPECT_THAT(std::string(Parse(many + " }").status().message()), HasSubstr("more than 64 hosts"));
}

}  // namespace
}  // namespace r2cc::daemon
