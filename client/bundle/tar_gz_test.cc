#include "client/bundle/tar_gz.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>

namespace r2cc::client {
namespace {

std::string Output(const std::string& command) {
  FILE* const pipe = popen(command.c_str(), "r");
  std::string text;
  char buffer[4096];
  for (size_t got = 0; (got = fread(buffer, 1, sizeof(buffer), pipe)) > 0;) text.append(buffer, got);
  EXPECT_EQ(pclose(pipe), 0) << command;
  return text;
}

TEST(TarGz, ThePlainTarReadsIt) {
  const std::string file = testing::TempDir() + "/x.tar.gz";
  const std::string large(100'000, 'x');
  const auto archive = MakeTarGz("bundle", {{"a.txt", "hello\n"}, {"b.txt", large}, {"empty", ""}}, 1'700'000'000);
  ASSERT_TRUE(archive.ok()) << archive.status();
  EXPECT_LT(archive->size(), 2000u) << "it is compressed";
  std::ofstream(file, std::ios::binary) << *archive;
  EXPECT_EQ(Output("tar tzf " + file), "bundle/a.txt\nbundle/b.txt\nbundle/empty\n");
  EXPECT_EQ(Output("tar xzOf " + file + " bundle/a.txt"), "hello\n");
  EXPECT_EQ(Output("tar xzOf " + file + " bundle/b.txt"), large);
  EXPECT_THAT(Output("TZ=UTC tar tvzf " + file),
              testing::AllOf(testing::HasSubstr("-rw------- 0/0"), testing::HasSubstr("2023-11-14 22:13 bundle/empty")));
}

TEST(TarGz, TheSameFilesGiveTheSameBytes) {
  const std::vector<BundleFile> files = {{"a.txt", "hello\n"}, {"b.txt", std::string(5'000'000, 'y')}};
  const auto one = MakeTarGz("bundle", files, 1'700'000'000), other = MakeTarGz("bundle", files, 1'700'000'000);
  ASSERT_TRUE(one.ok() && other.ok()) << one.status() << other.status();
  EXPECT_EQ(*one, *other);
  EXPECT_EQ(one->substr(4, 4), std::string(4, '\0')) << "no time in gzip's header";
}

TEST(TarGz, NamesThatLeadElsewhereAreRefused) {
  for (const std::string& name : {std::string("/etc/passwd"), std::string("../x"), std::string(""), std::string(120, 'x')})
    EXPECT_TRUE(absl::IsInvalidArgument(MakeTarGz("b", {{name, ""}}, 0).status())) << name;
}

}  // namespace
}  // namespace r2cc::client
