#include "client/check_config.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace r2cc::client {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

TEST(CheckConfig, AFileOrItsDirectory) {
  const std::string folder = testing::TempDir() + "/check_config";
  std::filesystem::create_directories(folder);
  const std::string file = folder + "/r2ccd.textproto";
  EXPECT_THAT(CheckConfigArguments({folder, "", ""}, "r2ccd"), ElementsAre("r2ccd", "--check_config", "--config", file));
  EXPECT_THAT(CheckConfigArguments({file, "n1", ""}, "r2ccd"), ElementsAre("r2ccd", "--check_config", "--config", file, "--node", "n1"));
}

TEST(CheckConfig, WithoutAProgramItSaysSo) {
  EXPECT_THAT(std::string(client::Run(CheckConfigCommand{"f", "", "/nowhere/r2ccd"}).message()), HasSubstr("/nowhere/r2ccd"));
}

// r2ccctl and r2ccd themselves: one says what the other says, with the other's exit code.
TEST(CheckConfig, ItIsTheDaemonThatChecks) {
  const std::string folder = testing::TempDir() + "/check_config_run";
  std::filesystem::create_directories(folder + "/r2ccd.d");
  const std::string file = folder + "/r2ccd.textproto";
  const auto run = [&](std::string* output) {
    const std::string out = folder + "/out";
    const int status = std::system(("client/r2ccctl config check " + folder + " --r2ccd daemon/r2ccd > " + out + " 2>&1").c_str());
    std::ifstream text(out);
    output->assign(std::istreambuf_iterator<char>(text), {});
    return WEXITSTATUS(status);
  };
  std::string output;
  std::ofstream(file) << "node: 'n0'\n";
  EXPECT_EQ(run(&output), 0) << output;
  EXPECT_THAT(output, HasSubstr(file + ": ok: node n0, "));
  std::ofstream(folder + "/r2ccd.d/10-more.textproto") << "\nnice: 77\n";
  EXPECT_EQ(run(&output), 1);
  EXPECT_EQ(output, "r2ccd: " + folder + "/r2ccd.d/10-more.textproto:2: nice is -20 to 19, not 77\n");
}

}  // namespace
}  // namespace r2cc::client
