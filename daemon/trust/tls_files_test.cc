#include "daemon/trust/tls_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/core/clock.h"
#include "base/tls/authority.h"

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr int64_t kNow = 1'800'000'000;
constexpr int64_t kDay = 24 * 3600;

class TlsFilesTest : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/tls.XXXXXX";
    ASSERT_NE(mkdtemp(folder_.data()), nullptr);
    spec_ = {folder_ + "/node.crt", folder_ + "/node.key", folder_ + "/ca.crt"};
    ca_ = *MakeAuthority("test", ForDays(kNow, 100));
    Put(*Issue(ca_, {Identity::Kind::kNode, "n1"}, ForDays(kNow, 10)));
    Write(spec_.ca_file, ca_.certificate);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& file, const std::string& text, mode_t mode = 0600) {
    std::ofstream(file) << text;
    chmod(file.c_str(), mode);
  }
  void Put(const CertificateAndKey& pair) {
    Write(spec_.certificate_file, pair.certificate);
    Write(spec_.key_file, pair.key);
  }
  std::vector<std::string> Check(const std::string& node = "n1", int64_t now_s = kNow) {
    return CheckTlsFiles(spec_, node, now_s, "f.conf: tls", operators_gid_);
  }

  std::string folder_;
  int64_t operators_gid_ = -1;
  TlsSpec spec_;
  CertificateAndKey ca_;
};

TEST_F(TlsFilesTest, SoundFilesAreSound) {
  EXPECT_THAT(Check(), IsEmpty());
  EXPECT_THAT(Check(""), IsEmpty());
}

TEST_F(TlsFilesTest, EachMistakeIsOneLineWithTheFileAndTheWayOut) {
  const std::string begin = "f.conf: tls: ";
  EXPECT_THAT(Check("n1", kNow + 11 * kDay), ElementsAre(HasSubstr(spec_.certificate_file + " expired on 2027-")));
  EXPECT_THAT(Check("n1", kNow - kDay), testing::Contains(HasSubstr(spec_.certificate_file + " is not valid before")));
  EXPECT_THAT(Check("n2"), ElementsAre(begin + spec_.certificate_file +
                                       " is the certificate of node n1, and this is node n2: copy this node's own, or correct `node` in "
                                       "the configuration"));
  chmod(spec_.key_file.c_str(), 0644);
  EXPECT_THAT(Check(), ElementsAre(HasSubstr(spec_.key_file + " can be read by every user of this machine: chown r2ccd: " + spec_.key_file +
                                             " && chmod 400 " + spec_.key_file)));
  chmod(spec_.key_file.c_str(), 0640);
  EXPECT_THAT(Check(), IsEmpty()) << "a group may be the daemon's own";
  // An operator of this node must not speak for the node everywhere.
  operators_gid_ = getegid();
  EXPECT_THAT(Check(), ElementsAre(HasSubstr(spec_.key_file + " can be read by all who may command this node")));
  chmod(spec_.key_file.c_str(), 0400);
  EXPECT_THAT(Check(), IsEmpty());
  chmod(spec_.key_file.c_str(), 0600);

  const CertificateAndKey other = *Issue(ca_, {Identity::Kind::kNode, "n1"}, ForDays(kNow, 10));
  Write(spec_.key_file, other.key);
  EXPECT_THAT(Check(), ElementsAre(HasSubstr(spec_.key_file + " is not the key of " + spec_.certificate_file)));
  Put(*Issue(*MakeAuthority("strangers", ForDays(kNow, 10)), {Identity::Kind::kNode, "n1"}, ForDays(kNow, 10)));
  EXPECT_THAT(Check(), ElementsAre(HasSubstr(spec_.certificate_file + " is not of this cluster's authority, but of /CN=strangers")));
  Put(*Issue(ca_, {Identity::Kind::kOperator, "alice"}, ForDays(kNow, 10)));
  EXPECT_THAT(Check(), ElementsAre(HasSubstr("is for another purpose"), HasSubstr("is the certificate of operator alice")));
  Write(spec_.certificate_file, "garbage");
  Write(spec_.key_file, "garbage");
  Write(spec_.ca_file, "garbage");
  EXPECT_THAT(Check(), ElementsAre(HasSubstr(spec_.certificate_file + " is not a certificate in PEM form"),
                                   HasSubstr(spec_.key_file + " is not a private key"),
                                   HasSubstr(spec_.ca_file + " is not a certificate in PEM form")));
  unlink(spec_.key_file.c_str());
  EXPECT_THAT(Check()[1], HasSubstr("cannot read " + spec_.key_file + ": No such file or directory; `r2ccctl certs issue` makes one"));
}

TEST_F(TlsFilesTest, AReplacedCertificateIsInUseSoon) {
  int64_t now = kNow * kNanosPerSecond;
  const auto files = TlsFiles::Load(spec_, [&now] { return now; });
  ASSERT_TRUE(files.ok()) << files.status();
  const auto before = (*files)->Get();
  const CertificateAndKey next = *Issue(ca_, {Identity::Kind::kNode, "n1"}, ForDays(kNow, 20));
  Write(spec_.key_file, next.key);
  now += 2 * kNanosPerSecond;
  EXPECT_EQ((*files)->Get(), before) << "the key does not fit yet";
  Write(spec_.certificate_file, next.certificate);
  now += 2 * kNanosPerSecond;
  EXPECT_EQ((*files)->Get()->pem, next.certificate);
  unlink(spec_.certificate_file.c_str());
  now += 2 * kNanosPerSecond;
  EXPECT_EQ((*files)->Get()->pem, next.certificate) << "what is gone leaves the last in force";
}

TEST_F(TlsFilesTest, UnusableCertificatesAreRefusedAtTheStart) {
  Write(spec_.ca_file, "garbage");
  EXPECT_EQ(TlsFiles::Load(spec_, [] { return int64_t{0}; }).status().message(), spec_.ca_file + " is not a certificate in PEM form");
}

}  // namespace
}  // namespace r2cc::daemon
