#include "daemon/core/store_table.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

constexpr Nanos kMs = kNanosPerMs;

TEST(StoreTableTest, PutReturnsChangesOnly) {
  StoreTable table;
  auto first = table.Put("/n/a", "1", 0, 0);
  ASSERT_TRUE(first.ok());
  EXPECT_EQ(**first, (StoreChange{"/n/a", "1", false, 1}));
  EXPECT_FALSE((*table.Put("/n/a", "1", 0, 0)).has_value());
  EXPECT_EQ((*table.Put("/n/a", "2", 0, 0))->revision, 2u);
}

TEST(StoreTableTest, ALeaseEndsUnlessPutAgain) {
  StoreTable table;
  ASSERT_TRUE(table.Put("/n/a", "1", 100, 0).ok());
  ASSERT_TRUE(table.Put("/n/b", "1", 100, 0).ok());
  ASSERT_TRUE(table.Put("/n/forever", "1", 0, 0).ok());
  EXPECT_TRUE(table.Expire(99 * kMs).empty());
  ASSERT_TRUE(table.Put("/n/b", "1", 100, 99 * kMs).ok());
  const auto gone = table.Expire(100 * kMs);
  ASSERT_EQ(gone.size(), 1u);
  EXPECT_EQ(gone[0].key, "/n/a");
  EXPECT_TRUE(gone[0].deleted);
  EXPECT_EQ(table.Expire(1'000'000 * kMs).size(), 1u);
  EXPECT_EQ(table.Snapshot("/").size(), 1u);
}

TEST(StoreTableTest, AnEmptyValueIsAValue) {
  StoreTable table;
  EXPECT_TRUE((*table.Put("/n/a", "", 0, 0)).has_value());
  EXPECT_EQ(table.Snapshot("").size(), 1u);
}

TEST(StoreTableTest, SnapshotIsTheWholePrefixAndNoMore) {
  StoreTable table;
  for (const char* key : {"/a", "/n/1", "/n/2", "/n0", "/o"}) ASSERT_TRUE(table.Put(key, "v", 0, 0).ok());
  const auto entries = table.Snapshot("/n/");
  ASSERT_EQ(entries.size(), 2u);
  EXPECT_EQ(entries[0].key, "/n/1");
  EXPECT_EQ(entries[1].key, "/n/2");
}

TEST(StoreTableTest, RefusesBeyondTheLimits) {
  StoreTable table;
  EXPECT_FALSE(table.Put("", "v", 0, 0).ok());
  EXPECT_FALSE(table.Put(std::string(StoreTable::kKeyBytesMax + 1, 'k'), "v", 0, 0).ok());
  EXPECT_FALSE(table.Put("k", std::string(StoreTable::kValueBytesMax + 1, 'v'), 0, 0).ok());
  EXPECT_FALSE(table.Put("k", "v", -1, 0).ok());
  EXPECT_FALSE(table.Put("k", "v", INT64_MAX, 0).ok());
  EXPECT_EQ(table.revision(), 0u);
  for (size_t i = 0; i < StoreTable::kEntriesMax; ++i) ASSERT_TRUE(table.Put(std::to_string(i), "", 0, 0).ok());
  EXPECT_EQ(table.Put("one-more", "", 0, 0).status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(table.Put("0", "new", 0, 0).ok());
}

}  // namespace
}  // namespace r2cc::daemon
