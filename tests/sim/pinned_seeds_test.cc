#include "tests/sim/pinned_seeds.h"

#include <gtest/gtest.h>

#include <string>

namespace r2cc::sim {
namespace {

TEST(PinnedSeeds, AreReadBackAsTheyWereWritten) {
  const PinnedSeeds seeds{{"All/LateWrite", {7}}, {"Verbs/KeyStale", {1, 1'000'001, 18'446'744'073'709}}};
  PinnedSeeds back;
  std::string error;
  ASSERT_TRUE(ParsePinnedSeeds(PinnedSeedsText(seeds, "how to refresh"), &back, &error)) << error;
  EXPECT_EQ(back, seeds);

  const std::string path = testing::TempDir() + "/pinned_seeds.txt";
  ASSERT_TRUE(WritePinnedSeeds(path, seeds, "how to refresh", &error)) << error;
  back.clear();
  ASSERT_TRUE(ReadPinnedSeeds(path, &back, &error)) << error;
  EXPECT_EQ(back, seeds);
}

TEST(PinnedSeeds, ALineThatIsNoneIsNamed) {
  for (const char* const line : {"A", "A x", "A 1x", "A -1", "A 1 2 3 4", "A 99999999999999999999", "A 1\nA 2"}) {
    PinnedSeeds seeds;
    std::string error;
    EXPECT_FALSE(ParsePinnedSeeds("# comment\n" + std::string(line) + "\n", &seeds, &error)) << line;
    EXPECT_EQ(error.rfind("line ", 0), 0u) << error;
  }
}

TEST(PinnedSeeds, AFileThatIsNotThereIsAnError) {
  PinnedSeeds seeds;
  std::string error;
  EXPECT_FALSE(ReadPinnedSeeds("/nowhere/at/all", &seeds, &error));
  EXPECT_FALSE(WritePinnedSeeds("/nowhere/at/all", seeds, "", &error));
  EXPECT_EQ(error, "cannot write /nowhere/at/all");
}

}  // namespace
}  // namespace r2cc::sim
