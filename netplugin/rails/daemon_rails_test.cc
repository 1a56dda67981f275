#include "netplugin/rails/daemon_rails.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "netplugin/rails/fake_host_network.h"
#include "netplugin/rails/rails.h"

namespace r2cc::net {
namespace {

using Strings = std::vector<std::string>;

class DaemonRailsTest : public testing::Test {
 protected:
  DaemonRailsTest() {
    host_.Add("lo", {"127.0.0.1"});
    for (int i = 0; i < 3; ++i)
      host_.AddNic("eth" + std::to_string(i), "0000:2" + std::to_string(i) + ":00.0", {"10." + std::to_string(i) + ".0.1"});
  }
  std::string Spec(const std::string& rails) {
    warnings_.clear();
    return DaemonRails("r2cc rails 1\nnetns " + std::to_string(host_.netns_inode) + "\n" + rails, host_, ports_, &warnings_);
  }

  FakeHostNetwork host_;
  std::vector<verbs::PortFacts> ports_;
  Strings warnings_;
};

TEST_F(DaemonRailsTest, TheNicsOfTheDaemonInItsOrder) {
  EXPECT_EQ(Spec("eth2\neth1\n"), "eth2,eth1");
  EXPECT_EQ(Spec("10.2.0.1\neth1\n127.0.0.9\n"), "10.2.0.1,eth1,127.0.0.9");
  EXPECT_EQ(warnings_, Strings());
  std::vector<Rail> rails;
  std::string error;
  ASSERT_TRUE(ResolveRails(Spec("10.2.0.1\neth1\n127.0.0.9\n"), host_, {}, &rails, &error)) << error;
  EXPECT_EQ(rails.size(), 3u);
}

TEST_F(DaemonRailsTest, AnotherNetworkNamespaceIsIgnored) {
  EXPECT_EQ(DaemonRails("r2cc rails 1\nnetns 1\neth1\n", host_, {}, &warnings_), "");
  host_.netns_inode = 0;
  EXPECT_EQ(Spec("eth1\n"), "");
  EXPECT_EQ(warnings_, Strings());
}

TEST_F(DaemonRailsTest, AnInvalidFileIsIgnored) {
  for (const std::string text : {"", "eth1\n", "r2cc rails 9\nnetns 4026531840\neth1\n"})
    EXPECT_EQ(DaemonRails(text, host_, {}, &warnings_), "");
  EXPECT_EQ(Spec(""), "") << "the operator named none";
}

TEST_F(DaemonRailsTest, TheJobStartsWithTheRailsThatExist) {
  EXPECT_EQ(Spec("eth1\neth7\n10.9.9.9\neth2\n"), "eth1,eth2");
  EXPECT_EQ(warnings_, Strings{"R2CC: this node does not have eth7, 10.9.9.9, a NIC of r2ccd: the job starts without that rail"});
  EXPECT_EQ(Spec("eth7\n"), "") << "then those that it would have without the daemon";
}

TEST_F(DaemonRailsTest, AnInfiniBandPortIsNamedByItsGuid) {
  ports_ = {{.device = "mlx5_0", .port = 1, .guid = 0x2c9030000abcd}};
  EXPECT_EQ(Spec("eth1\nguid:0x0002c9030000abcd\n"), "eth1,mlx5_0");
  ports_.clear();
  EXPECT_EQ(Spec("eth1\nguid:0x0002c9030000abcd\n"), "eth1") << "R2CC_TRANSPORT=tcp";
}

TEST_F(DaemonRailsTest, ReadsTheFileNextToTheSocketAndWaitsForNothing) {
  const std::string folder = testing::TempDir() + "/rails-file";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directory(folder);
  EXPECT_EQ(ReadRailsFile(folder + "/attach.sock"), std::nullopt);
  EXPECT_EQ(ReadRailsFile(""), std::nullopt) << "R2CC_ATTACH=none";
  std::ofstream(folder + "/rails") << "text\n";
  EXPECT_EQ(ReadRailsFile(folder + "/attach.sock"), "text\n");
  std::ofstream(folder + "/rails") << std::string(100'000, 'x');
  EXPECT_LT(ReadRailsFile(folder + "/attach.sock")->size(), 5'000u);
  std::filesystem::remove(folder + "/rails");
  ASSERT_EQ(mkfifo((folder + "/rails").c_str(), 0600), 0);
  EXPECT_EQ(ReadRailsFile(folder + "/attach.sock"), std::nullopt);
  std::filesystem::remove(folder + "/rails");
  std::filesystem::create_directory(folder + "/rails");
  EXPECT_EQ(ReadRailsFile(folder + "/attach.sock"), std::nullopt);
}

}  // namespace
}  // namespace r2cc::net
