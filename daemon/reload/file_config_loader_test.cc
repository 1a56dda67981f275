#include "daemon/reload/file_config_loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>

namespace r2cc::daemon {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class FileConfigLoaderTest : public testing::Test {
 protected:
  FileConfigLoaderTest() { flags_.file = testing::TempDir() + "/r2ccd.textproto"; }
  absl::StatusOr<LoadedConfig> Load(const std::string& text, const Config* in_force = nullptr) {
    std::ofstream(flags_.file) << text;
    return FileConfigLoader(flags_, [] { return 1'700'000'000; }).Load(in_force);
  }

  ConfigFlags flags_;
};

TEST_F(FileConfigLoaderTest, WholeWithRolesAsTheMachineNumbersThem) {
  const auto loaded = Load("node: 'n0' nics { name: 'lo0' interface: 'lo' } grants { roles: VIEW users: 'root' }");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_TRUE(loaded->roles().Has({.kind = Caller::Kind::kLocal, .uid = 0}, Role::kView));
  EXPECT_FALSE(loaded->roles().Has({.kind = Caller::Kind::kLocal, .uid = 1}, Role::kView));
  EXPECT_EQ(SoundConfigLine(loaded->config), flags_.file + ": ok: node n0, 1 NICs, 0 peers");
}

TEST_F(FileConfigLoaderTest, EveryThingThatIsWrongIsALine) {
  const auto loaded = Load("node: 'n0'\nlisten: '127.0.0.1:1'\ntls { directory: '/nowhere' }\ngrants { roles: VIEW users: 'nobody-such' }");
  EXPECT_THAT(std::string(loaded.status().message()),
              AllOf(HasSubstr("/nowhere/node.crt"), HasSubstr("/nowhere/node.key"), HasSubstr("/nowhere/ca.crt"),
                    HasSubstr(flags_.file + ":4: grants: this machine has no user 'nobody-such'")));
}

TEST_F(FileConfigLoaderTest, ANicThatTheMachineHasLostIsNoMistakeOfTheFile) {
  const std::string text = "node: 'n0' nics { name: 'rail0' interface: 'gone0' }";
  EXPECT_THAT(std::string(Load(text).status().message()), HasSubstr("there is no interface 'gone0'"));
  const auto in_force = ParseConfig(text, "f", {"/run", "host", "", "/lib"});
  ASSERT_TRUE(in_force.ok());
  EXPECT_TRUE(Load(text, &*in_force).ok());
  EXPECT_FALSE(Load("node: 'n0' nics { name: 'rail0' interface: 'gone1' }", &*in_force).ok());
}

TEST_F(FileConfigLoaderTest, ADaemonStartsWithoutNicsThatACheckRefuses) {
  const std::string text =
      "node: 'n0' nics { name: 'rail0' interface: 'gone0' } nics { name: 'rail1' address: '2001:db8:77::/64' } "
      "nics { interface: 'gone*' }";
  EXPECT_FALSE(Load(text).ok());
  const auto started = ReadConfig(flags_, nullptr, Absent::kAccept);
  ASSERT_TRUE(started.ok()) << started.status();
  ASSERT_EQ(started->nics.size(), 2u);
  EXPECT_EQ(started->nics[0].interface, "gone0");
  EXPECT_EQ(started->nics[1].interface, "in 2001:db8:77::/64");
  EXPECT_FALSE(started->nics_by_default);
  EXPECT_TRUE(Load(text, &*started).ok()) << "what it lacks already stops no reload";
  EXPECT_FALSE(Load(text + " nics { name: 'rail2' interface: 'typo0' }", &*started).ok());
  const std::string all = text + " nics { interface: '*' }";
  std::ofstream(flags_.file) << all;
  const auto with_all = ReadConfig(flags_, nullptr, Absent::kAccept);
  ASSERT_TRUE(with_all.ok()) << with_all.status();
  EXPECT_TRUE(Load(all, &*with_all).ok()) << Load(all, &*with_all).status();
}

TEST_F(FileConfigLoaderTest, FlagsWinAndDefaultNicsStay) {
  flags_.node = "flag";
  flags_.log_level = Severity::kError;
  const auto loaded = Load("node: 'n0' log_level: 'debug'");
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->config.node, "flag");
  EXPECT_EQ(loaded->config.log_level, Severity::kError);
  EXPECT_TRUE(loaded->config.nics_by_default);
  Config in_force = loaded->config;
  in_force.nics = {{"was", "was", ""}};
  EXPECT_EQ(Load("node: 'n0'", &in_force)->config.nics, in_force.nics);
}

}  // namespace
}  // namespace r2cc::daemon
