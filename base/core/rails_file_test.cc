#include "base/core/rails_file.h"

#include <gtest/gtest.h>

namespace r2cc {
namespace {

TEST(RailsFile, WrittenValuesAreRead) {
  const RailsFile file{4026531840, {"eth1", "10.2.0.1", "fd00::1", "guid:0x0002c9030000abcd"}};
  EXPECT_EQ(FormatRailsFile(file), "r2cc rails 1\nnetns 4026531840\neth1\n10.2.0.1\nfd00::1\nguid:0x0002c9030000abcd\n");
  const auto read = ParseRailsFile(FormatRailsFile(file));
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->netns_inode, file.netns_inode);
  EXPECT_EQ(read->rails, file.rails);
  EXPECT_TRUE(ParseRailsFile("r2cc rails 1\nnetns 7\n").has_value()) << "the operator named none";
}

TEST(RailsFile, NothingElseIs) {
  const std::string head = "r2cc rails 1\nnetns 7\n";
  std::string many = head;
  for (size_t i = 0; i <= kRailsFileRailsMax; ++i) many += "eth" + std::to_string(i) + "\n";
  for (const std::string& bad :
       {std::string(), std::string("r2cc rails 2\nnetns 7\neth1\n"), std::string("r2cc rails 1\neth1\n"),
        std::string("r2cc rails 1\nnetns x\n"), std::string("r2cc rails 1\nnetns 7x\n"),
        std::string("r2cc rails 1\nnetns 99999999999999999999\n"), head + "eth1", head + "\n", head + "eth1,eth2\n", head + "^eth1\n",
        head + "eth*\n", head + "eth?\n", head + "eth 1\n", head + "eth\x01\n", head + "eth\xff\n", head + std::string(48, 'a') + "\n",
        many, head + std::string(kRailsFileBytesMax, '\n')})
    EXPECT_FALSE(ParseRailsFile(bad).has_value()) << bad;
}

}  // namespace
}  // namespace r2cc
