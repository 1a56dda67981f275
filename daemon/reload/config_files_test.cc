#include "daemon/reload/config_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class ConfigFilesTest : public testing::Test {
 protected:
  ConfigFilesTest() : folder_(testing::TempDir() + "/config_files_test") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  void Write(const std::string& name, const std::string& text) const { std::ofstream(folder_ + "/" + name) << text; }
  // NAME=TEXT of each.
  std::vector<std::string> Read(const std::string& name = "r2ccd.textproto") const {
    const auto texts = ReadConfigFiles(folder_ + "/" + name);
    if (!texts.ok()) return {std::string(texts.status().message())};
    std::vector<std::string> read;
    for (const ConfigText& text : *texts) read.push_back(text.file.substr(folder_.size() + 1) + "=" + text.text);
    return read;
  }

  const std::string folder_;
};

TEST_F(ConfigFilesTest, TheFileAloneAndThenItsDirectoryByName) {
  Write("r2ccd.textproto", "a");
  EXPECT_THAT(Read(), ElementsAre("r2ccd.textproto=a"));
  std::filesystem::create_directory(folder_ + "/r2ccd.d");
  EXPECT_THAT(Read(), ElementsAre("r2ccd.textproto=a"));
  Write("r2ccd.d/20-peers.textproto", "c");
  Write("r2ccd.d/10-tls.textproto", "b");
  Write("r2ccd.d/10-tls.textproto.dpkg-old", "x");
  Write("r2ccd.d/README", "x");
  EXPECT_THAT(Read(), ElementsAre("r2ccd.textproto=a", "r2ccd.d/10-tls.textproto=b", "r2ccd.d/20-peers.textproto=c"));
}

TEST_F(ConfigFilesTest, AFileOfAnotherEndingHasNoDirectory) {
  Write("r2ccd.conf", "a");
  std::filesystem::create_directory(folder_ + "/r2ccd.d");
  Write("r2ccd.d/10.textproto", "b");
  EXPECT_THAT(Read("r2ccd.conf"), ElementsAre("r2ccd.conf=a"));
  EXPECT_EQ(ConfigDirectory("/etc/r2cc/r2ccd.textproto"), "/etc/r2cc/r2ccd.d");
}

TEST_F(ConfigFilesTest, FilesAreBounded) {
  Write("r2ccd.textproto", "a");
  std::filesystem::create_directories(folder_ + "/r2ccd.d");
  for (size_t i = 1; i < kConfigFilesMax; ++i) Write("r2ccd.d/" + std::to_string(i) + ".textproto", "b");
  EXPECT_EQ(Read().size(), kConfigFilesMax);
  Write("r2ccd.d/one-more.textproto", "b");
  EXPECT_THAT(Read(), ElementsAre(HasSubstr("has 256 files, and at most 255 are read")));
}

TEST_F(ConfigFilesTest, UnreadableInputIsNamed) {
  EXPECT_THAT(Read(), ElementsAre(HasSubstr(folder_ + "/r2ccd.textproto")));
  Write("r2ccd.textproto", "a");
  Write("r2ccd.d", "a file in the directory's place");
  EXPECT_THAT(Read(), ElementsAre(HasSubstr("cannot read the directory " + folder_ + "/r2ccd.d")));
  std::filesystem::remove(folder_ + "/r2ccd.d");
  std::filesystem::create_directories(folder_ + "/r2ccd.d/10.textproto");
  EXPECT_THAT(Read(), ElementsAre(HasSubstr(folder_ + "/r2ccd.d/10.textproto")));
}

}  // namespace
}  // namespace r2cc::daemon
