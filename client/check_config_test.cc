#include "client/local/check_config.h"

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

TEST(CheckConfig, WithoutAProgramItReportsThat) {
  EXPECT_THAT(std::string(client::Run(CheckConfigCommand{"f", "", "/nowhere/r2ccd"}).message()), HasSubstr("/nowhere/r2ccd"));
}

// r2ccctl and r2ccd themselves: one prints the output of the other, with its exit code.
TEST(CheckConfig, PrintsTheOutputOfTheDaemonsCheck) {
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

TEST(CheckConfig, AsJson) {
  EXPECT_THAT(CheckConfigArguments({.path = "f", .json = true}, "r2ccd"),
              ElementsAre("r2ccd", "--check_config", "--config", "f", "--log_format", "json"));
  const std::string folder = testing::TempDir() + "/check_config_json";
  std::filesystem::create_directories(folder);
  const std::string file = folder + "/r2ccd.textproto";
  const auto run = [&](std::string* output) {
    const int status = std::system(("client/r2ccctl -o json config check " + file + " --r2ccd daemon/r2ccd > " + folder + "/out").c_str());
    std::ifstream text(folder + "/out");
    output->assign(std::istreambuf_iterator<char>(text), {});
    return WEXITSTATUS(status);
  };
  std::string output;
  std::ofstream(file) << "node: 'n0'\nnics { name: 'rail0' address: '127.0.0.9' }\ngrants { roles: VIEW users: '0' }\n";
  EXPECT_EQ(run(&output), 0) << output;
  EXPECT_THAT(output, HasSubstr("{\n \"ok\": true,\n \"file\": \"" + file + "\",\n \"node\": \"n0\",\n \"nics\": 1,"));
  EXPECT_THAT(output, HasSubstr("grants replace the defaults: other users of this node lose VIEW"));
  std::ofstream(file) << "nice: 77\n";
  EXPECT_EQ(run(&output), 1);
  EXPECT_THAT(output, HasSubstr("\"ok\": false,"));
  EXPECT_THAT(output, HasSubstr(file + ":1: nice is -20 to 19, not 77"));
}

TEST(LocalCommands, AsJson) {
  const std::string folder = testing::TempDir() + "/local_json";
  std::filesystem::remove_all(folder);
  const auto output = [&](const std::string& arguments) {
    EXPECT_EQ(std::system(("client/r2ccctl -o json " + arguments + " > " + folder + ".out").c_str()), 0) << arguments;
    std::ifstream text(folder + ".out");
    return std::string(std::istreambuf_iterator<char>(text), {});
  };
  EXPECT_EQ(output("certs init --dir " + folder).find("{\n \"lines\": [\n  \"wrote " + folder + "/ca.crt, and "), 0U);
  EXPECT_THAT(output("certs issue n0 --dir " + folder), HasSubstr("node.crt and .key for node n0"));
  const std::string env = output("job env torchrun --rails eth1,eth2");
  EXPECT_THAT(env, HasSubstr("\"name\": \"R2CC_RAILS\",\n   \"value\": \"eth1,eth2\""));
  EXPECT_THAT(env, HasSubstr("\"text\": \"# In the script"));
  EXPECT_THAT(output("--run_dir " + folder + " support-bundle --out " + folder + "/bundle.tar.gz"),
              HasSubstr("written to " + folder + "/bundle.tar.gz, "));
}

}  // namespace
}  // namespace r2cc::client
