#include "client/local/certs.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/tls/certificate.h"

namespace r2cc::client {
namespace {

constexpr int64_t kNow = 1'800'000'000;

class CertsTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/certs.XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Read(const std::string& name) {
    std::ifstream file(folder_ + "/" + name);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
  }
  mode_t Mode(const std::string& name) {
    struct stat about {};
    return stat((folder_ + "/" + name).c_str(), &about) == 0 ? about.st_mode & 0777 : 0;
  }
  absl::Status Init() { return client::Run(CertsCommand{.init = true, .directory = folder_, .name = "test", .days = 100}, kNow, out_); }
  absl::Status Issue(const std::string& name, bool is_operator = false) {
    return client::Run(CertsCommand{.directory = folder_, .name = name, .is_operator = is_operator, .days = 10}, kNow, out_);
  }

  std::string folder_;
  std::ostringstream out_;
};

TEST_F(CertsTest, AnAuthorityAndANodesDirectory) {
  ASSERT_TRUE(Init().ok());
  ASSERT_TRUE(Issue("n1").ok());
  ASSERT_TRUE(Issue("alice", true).ok());
  EXPECT_EQ(Mode("ca.key"), 0600u);
  EXPECT_EQ(Mode("n1/node.key"), 0600u);
  EXPECT_EQ(Mode("alice/operator.key"), 0600u);
  EXPECT_EQ(Mode("n1/node.crt"), 0644u);
  EXPECT_EQ(Read("n1/ca.crt"), Read("ca.crt"));
  const auto certificate = Certificate::Parse(Read("n1/node.crt"));
  ASSERT_TRUE(certificate.ok()) << certificate.status();
  EXPECT_EQ(certificate->identity()->name, "n1");
  EXPECT_TRUE(certificate->Fits(ParseKey(Read("n1/node.key"))->get()));
  EXPECT_TRUE(Authorities::Parse(Read("ca.crt"))->Check(*certificate, Purpose::kServer, kNow).ok());
  EXPECT_NE(out_.str().find("n1/node.crt and .key for node n1, until "), std::string::npos) << out_.str();

  const std::string before = Read("n1/node.crt");
  ASSERT_TRUE(Issue("n1").ok());
  EXPECT_NE(Read("n1/node.crt"), before) << "a new one in its place";
}

TEST_F(CertsTest, AKeyForTheService) {
  ASSERT_TRUE(Init().ok());
  CertsCommand command{.directory = folder_, .name = "n1", .days = 10};
  ASSERT_TRUE(client::Run(command, kNow, out_).ok());
  EXPECT_NE(out_.str().find("chown r2ccd: /etc/r2cc/tls/node.key && chmod 400 /etc/r2cc/tls/node.key"), std::string::npos);
  command.owner = "no-such-user";
  EXPECT_EQ(client::Run(command, kNow, out_).message(), "this machine has no user 'no-such-user': install r2ccd before its certificate");
  if (geteuid() != 0) GTEST_SKIP() << "needs root: gives a key to another user";
  out_.str("");
  command.owner = "nobody";
  ASSERT_TRUE(client::Run(command, kNow, out_).ok());
  EXPECT_EQ(out_.str().find("chown"), std::string::npos) << out_.str();
  EXPECT_EQ(Mode("n1/node.key"), 0400u);
  struct stat about {};
  ASSERT_EQ(stat((folder_ + "/n1/node.key").c_str(), &about), 0);
  EXPECT_EQ(about.st_uid, 65534u);
  EXPECT_EQ(about.st_gid, 65534u);
}

TEST_F(CertsTest, ExistingFilesAreNotLost) {
  ASSERT_TRUE(Init().ok());
  const std::string before = Read("ca.key");
  EXPECT_EQ(Init().message(), folder_ + "/ca.crt is there already: an authority is not replaced; name another directory with --dir");
  EXPECT_EQ(Read("ca.key"), before);
}

TEST_F(CertsTest, MistakesAreReportedInOneLine) {
  EXPECT_EQ(Issue("n1").message(),
            "cannot read " + folder_ + "/ca.crt: `r2ccctl certs init` makes an authority; --dir names its directory");
  ASSERT_TRUE(Init().ok());
  EXPECT_EQ(Issue("../n1").message(), "'../n1' is not a name (letters, digits and -_.:@, at most 63)");
  std::ofstream(folder_ + "/ca.key") << "garbage";
  EXPECT_EQ(Issue("n1").message(), "the authority's key is not a private key in PEM form without a passphrase");
  EXPECT_FALSE(std::filesystem::exists(folder_ + "/n1"));
}

}  // namespace
}  // namespace r2cc::client
