#include "base/core/glob.h"

#include <gtest/gtest.h>

#include <string>

namespace r2cc {
namespace {

TEST(GlobTest, StarsAndQuestionMarks) {
  EXPECT_TRUE(GlobFits("n1", "n1"));
  EXPECT_FALSE(GlobFits("n1", "n10"));
  EXPECT_FALSE(GlobFits("n10", "n1"));
  EXPECT_TRUE(GlobFits("n1*", "n10"));
  EXPECT_TRUE(GlobFits("n1*", "n1"));
  EXPECT_TRUE(GlobFits("*", ""));
  EXPECT_TRUE(GlobFits("*-rack3-*", "gpu-rack3-07"));
  EXPECT_FALSE(GlobFits("*-rack3-*", "gpu-rack30-07"));
  EXPECT_TRUE(GlobFits("n?", "n7"));
  EXPECT_FALSE(GlobFits("n?", "n"));
  EXPECT_TRUE(GlobFits("*ab*ab", "abababab"));
  EXPECT_FALSE(GlobFits("", "n1"));
}

TEST(GlobTest, NoPatternTakesForEver) {
  std::string stars;
  for (int i = 0; i < 1000; ++i) stars += "a*";
  EXPECT_FALSE(GlobFits(stars + "b", std::string(5000, 'a')));
}

}  // namespace
}  // namespace r2cc
