#include "base/core/release.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace r2cc {
namespace {

TEST(Release, IsAVersionOfThreeNumbers) { EXPECT_THAT(Release(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+")); }

TEST(Release, ALocalBuildHasNoRevision) { EXPECT_EQ(ReleaseAndRevision(), Release() + " (revision unknown: not from a package)"); }

TEST(Release, ProtocolsAreRangesWhereTheyAre) {
  EXPECT_EQ(ProtocolText({{"peers", 2, 2}}), "peers 2");
  EXPECT_EQ(ProtocolText({{"peers", 2, 2}, {"wire", 4, 5}}), "peers 2, wire 4 to 5");
}

TEST(Release, VersionNamesTheProgram) {
  EXPECT_EQ(VersionText("r2ccx", {{"peers", 2, 2}}), "r2ccx " + ReleaseAndRevision() + "\nprotocols: peers 2");
}

}  // namespace
}  // namespace r2cc
