#include "nccl/record.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace r2cc::nccl {
namespace {

std::vector<uint32_t> Minimum(const std::vector<Record>& records) {
  std::vector<uint32_t> minimum(records.size() * kRecordWords, UINT32_MAX);
  for (uint32_t rank = 0; rank < records.size(); ++rank) {
    std::vector<uint32_t> own(minimum.size());
    Encode(records[rank], rank, own);
    for (size_t i = 0; i < own.size(); ++i) minimum[i] = std::min(minimum[i], own[i]);
  }
  return minimum;
}

Record Of(uint64_t node, uint32_t kept, uint32_t child = 0) {
  return {.node_key = node, .kept_permille = kept, .rails = 8, .free_mib = 1000, .child = child, .able = true};
}

TEST(Record, AMinimumHasEverybodysRecord) {
  std::vector<Record> records = {Of(UINT64_MAX, 1000), Of(7, 500), Of(9, 0), Of(7, 750), Of(uint64_t{1} << 40, 1000)};
  records[2].free_mib = 5;
  records[3].rails = 4;
  const Vector vector = Decode(Minimum(records), 0);
  EXPECT_EQ(vector.problem, "");
  // The facts of a node's processes may differ: the least counts.
  EXPECT_EQ(vector.nodes.kept_permille, (std::vector<uint32_t>{1000, 500, 0, 1000}));
  EXPECT_EQ(vector.node_of, (std::vector<uint32_t>{0, 1, 2, 1, 3}));
  EXPECT_EQ(vector.nodes.ranks, 5U);
  EXPECT_EQ(vector.nodes.channels, 8U);
  EXPECT_EQ(vector.free_mib, 5U);
  EXPECT_FALSE(vector.all_have_child);
}

TEST(Record, TheChildIsThereIfAllHaveThatOne) {
  EXPECT_TRUE(Decode(Minimum({Of(1, 1000, 3), Of(2, 1000, 3), Of(3, 1000, 3)}), 3).all_have_child);
  EXPECT_FALSE(Decode(Minimum({Of(1, 1000, 3), Of(2, 1000, 2), Of(3, 1000, 3)}), 3).all_have_child);
  EXPECT_FALSE(Decode(Minimum({Of(1, 1000, 3), Of(2, 1000, 0), Of(3, 1000, 3)}), 3).all_have_child);
  EXPECT_FALSE(Decode(Minimum({Of(1, 1000, 3), Of(2, 1000, 3), Of(3, 1000, 3)}), 4).all_have_child);
  EXPECT_FALSE(Decode(Minimum({Of(1, 1000), Of(2, 1000), Of(3, 1000)}), 0).all_have_child);
}

TEST(Record, ARankThatCannotIsNamed) {
  std::vector<Record> records = {Of(1, 1000), Of(2, 1000), Of(3, 1000)};
  records[1].able = false;
  EXPECT_NE(Decode(Minimum(records), 0).problem.find("rank 1 lacks"), std::string::npos);
  std::vector<uint32_t> other = Minimum({Of(1, 1000), Of(2, 1000), Of(3, 1000)});
  other[2 * kRecordWords] += 1;
  EXPECT_NE(Decode(other, 0).problem.find("rank 2 has another release"), std::string::npos);
  EXPECT_NE(Decode(std::vector<uint32_t>(3 * kRecordWords, UINT32_MAX), 0).problem, "");
  EXPECT_NE(Decode(std::vector<uint32_t>(3 * kRecordWords, 0), 0).problem, "");
  const Vector small = Decode(Minimum({Of(1, 1000), Of(2, 1000), Of(2, 1000)}), 0);
  EXPECT_NE(small.problem.find("fewer than three nodes"), std::string::npos);
  EXPECT_TRUE(small.is_small);
  EXPECT_FALSE(Decode(Minimum(records), 0).is_small);
}

TEST(Record, NoValuesBreakIt) {
  // Values that no encoder writes.
  std::vector<uint32_t> odd = Minimum({Of(1, 1000), Of(2, 1000), Of(3, 1000)});
  for (uint32_t rank = 0; rank < 3; ++rank) odd[rank * kRecordWords + 3] = 0xffff;
  const Vector vector = Decode(odd, 0);
  EXPECT_EQ(vector.nodes.kept_permille, (std::vector<uint32_t>{1000, 1000, 1000}));
  EXPECT_EQ(vector.nodes.channels, 2U);
}

}  // namespace
}  // namespace r2cc::nccl
