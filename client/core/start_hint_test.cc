#include "client/core/start_hint.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace r2cc::client {
namespace {

TEST(StartHint, TheServiceIsStartedByItsManager) {
  EXPECT_EQ(HowToStart("/run/r2cc/r2ccd.sock", true), "`systemctl start r2ccd` starts it, `systemctl status r2ccd` shows why it ended");
  const std::string by_hand = "start it with `r2ccd --run_dir=/run/r2cc --config=FILE`, or name another with --run_dir or --socket";
  EXPECT_EQ(HowToStart("/run/r2cc/r2ccd.sock", false), by_hand);
  EXPECT_EQ(HowToStart("/tmp/r2ccd.sock", true).rfind("start it with `r2ccd --run_dir=/tmp ", 0), 0u) << "the unit serves elsewhere";
}

TEST(StartHint, AUnitCountsWhereSystemdRuns) {
  const std::string root = testing::TempDir() + "/start_hint";
  std::filesystem::remove_all(root);
  std::filesystem::create_directories(root + "/usr/lib/systemd/system");
  std::ofstream(root + "/usr/lib/systemd/system/r2ccd.service") << "[Unit]\n";
  EXPECT_FALSE(HasUnit(root)) << "a container without systemd";
  std::filesystem::create_directories(root + "/run/systemd/system");
  EXPECT_TRUE(HasUnit(root));
  std::filesystem::remove(root + "/usr/lib/systemd/system/r2ccd.service");
  EXPECT_FALSE(HasUnit(root));
}

}  // namespace
}  // namespace r2cc::client
