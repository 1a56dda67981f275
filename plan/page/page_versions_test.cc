// Pages of other releases, and of a daemon that ends on purpose.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>

#include "plan/page/hostile_page.h"

namespace r2cc::plan {
namespace {

TEST(Page, AnEndLeaseCountsForLongerAndNoLongerThanThat) {
  HostilePage page;
  page->newest = kPageVersion;
  page.Fill(PageCopyOf(PlanOf(1, 2)));
  page.Seal();
  std::string error;
  const auto reader = page.Open(&error);
  ASSERT_NE(reader, nullptr) << error;
  constexpr Nanos kEnd = 1000 * kNanosPerSecond;
  page->heartbeat_ns = static_cast<uint64_t>(kEnd);
  EXPECT_FALSE(reader->ended());
  EXPECT_TRUE(reader->Stale(kEnd + kPageStaleAfter + 1));
  page->end_lease_until_ns = static_cast<uint64_t>(kEnd + kPageEndLease);
  EXPECT_TRUE(reader->ended());
  EXPECT_FALSE(reader->Stale(kEnd + kPageStaleAfter + 1));
  EXPECT_FALSE(reader->Stale(kEnd + kPageEndLease));
  EXPECT_TRUE(reader->Stale(kEnd + kPageEndLease + 1));
  // A longer lease is not believed.
  for (const uint64_t until : {UINT64_MAX, uint64_t{1}, static_cast<uint64_t>(kEnd + 10 * kPageEndLease)}) {
    page->end_lease_until_ns = until;
    EXPECT_TRUE(reader->Stale(kEnd + kPageStaleAfter + 1)) << until;
  }
}

TEST(Page, RangesOfVersionsThatMeetAreRead) {
  const auto refused = [](uint32_t version, uint32_t newest) {
    HostilePage page;
    page->version = version;
    page->newest = newest;
    page.Fill(PageCopyOf(PlanOf(1, 2)));
    page.Seal();
    std::string error;
    return page.Open(&error) == nullptr ? error : "";
  };
  EXPECT_EQ(refused(1, 2), "") << "release 0.2.0's";
  EXPECT_EQ(refused(kPageVersionLeast, kPageVersion), "");
  EXPECT_EQ(refused(1, 0), "page version 1, this release reads 2 to 3: upgrade r2ccd or the plugin") << "release 0.1.0's";
  EXPECT_EQ(refused(kPageVersion, kPageVersion + 1), "") << "the next release's";
  EXPECT_EQ(refused(kPageVersion + 1, kPageVersion + 2), "page version 4 to 5, this release reads 2 to 3: upgrade r2ccd or the plugin");
  EXPECT_EQ(refused(0, 0), "page version 0, this release reads 2 to 3: upgrade r2ccd or the plugin");
}

}  // namespace
}  // namespace r2cc::plan
