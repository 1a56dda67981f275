#include "daemon/trust/service_user.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::StartsWith;

TEST(UnreadableFor, AKeyOfRootsAlone) {
  if (geteuid() != 0) GTEST_SKIP() << "needs root: reads as another user";
  std::string folder = "/tmp/r2cc-service-user.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ASSERT_EQ(chmod(folder.c_str(), 0755), 0);
  const std::string key = folder + "/node.key", certificate = folder + "/node.crt";
  for (const std::string& file : {key, certificate}) std::ofstream(file) << "x";
  chmod(key.c_str(), 0600);
  chmod(certificate.c_str(), 0644);
  const std::vector<std::string> files = {certificate, key, folder + "/missing"};
  EXPECT_THAT(UnreadableFor("nobody", files),
              ElementsAre(StartsWith("user nobody cannot read " + key + ": Permission denied; chown nobody: " + key + " && chmod 400 ")));
  EXPECT_EQ(geteuid(), 0u) << "this process stays what it is";
  ASSERT_EQ(chown(key.c_str(), 65534, 65534), 0);
  ASSERT_EQ(chmod(key.c_str(), 0400), 0);
  EXPECT_THAT(UnreadableFor("nobody", files), IsEmpty());
  EXPECT_THAT(UnreadableFor("no-such-user", {key}), IsEmpty());
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace r2cc::daemon
