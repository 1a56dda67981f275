#include "observe/record/layout.h"

#include <gtest/gtest.h>

#include <cstring>

namespace r2cc::observe {
namespace {

Layout Example() {
  Layout layout;
  layout.id = 7;
  layout.rank = 2;
  layout.rows_most = 4;
  layout.tags = {{"request", Operator::kCopy, Dtype::kI64, 0, true, {}}};
  layout.taps = {{"h.0", Operator::kCopy, Dtype::kBf16, 0, true, {3}},
                 {"h.0:stats", Operator::kStats, Dtype::kBf16, 1, true, {3}},
                 {"w:hash", Operator::kHash, Dtype::kF32, 2, false, {5, 7}},
                 {"w", Operator::kCopy, Dtype::kF32, 3, false, {5, 7}}};
  return layout;
}

TEST(Layout, LocatesAllParts) {
  const std::optional<Slots> all = SlotsOf(Example(), 0xf, 3);
  ASSERT_TRUE(all);
  EXPECT_EQ(all->tags[0].offset, 64U);
  EXPECT_EQ(all->tags[0].bytes, 24U);
  EXPECT_EQ(all->taps[0].offset, 96U);
  EXPECT_EQ(all->taps[0].bytes, 18U);
  EXPECT_EQ(all->taps[1].offset, 128U);
  EXPECT_EQ(all->taps[1].bytes, 72U);
  EXPECT_EQ(all->taps[2].offset, 208U);
  EXPECT_EQ(all->taps[2].bytes, 8U);
  EXPECT_EQ(all->taps[3].offset, 224U);
  EXPECT_EQ(all->taps[3].bytes, 140U);
  EXPECT_EQ(all->record_bytes, 448U);
  const std::optional<Slots> some = SlotsOf(Example(), 0x4, 3);
  ASSERT_TRUE(some);
  EXPECT_EQ(some->taps[0].bytes, 0U);
  EXPECT_EQ(some->taps[2].offset, 96U);
  EXPECT_EQ(some->record_bytes, 192U);
  EXPECT_FALSE(SlotsOf(Example(), 0xf, 5)) << "more rows than it has";
}

TEST(Layout, ComesBackFromItsBytes) {
  const std::vector<uint8_t> bytes = Encode(Example());
  Layout found;
  std::string error;
  ASSERT_TRUE(Decode(bytes, &found, &error)) << error;
  EXPECT_EQ(Encode(found), bytes);
  EXPECT_EQ(found.taps[1].name, "h.0:stats");
  EXPECT_EQ(found.taps[3].shape, (std::vector<uint64_t>{5, 7}));
}

TEST(Layout, NoBytesEndTheReader) {
  const std::vector<uint8_t> good = Encode(Example());
  Layout found;
  std::string error;
  for (size_t at = 0; at < good.size(); ++at) {
    EXPECT_FALSE(Decode(std::span(good).first(at), &found, &error)) << at;
    for (int bit = 0; bit < 8; ++bit) {
      std::vector<uint8_t> changed = good;
      changed[at] ^= static_cast<uint8_t>(1U << bit);
      if (Decode(changed, &found, &error)) {
        EXPECT_EQ(Check(found), "");
      } else {
        EXPECT_NE(error, "");
        EXPECT_EQ(error.find('\n'), std::string::npos);
      }
    }
  }
}

TEST(Layout, OneLineForEachThatMakesNoSense) {
  const auto refused = [](auto change) {
    Layout layout = Example();
    change(&layout);
    return Check(layout);
  };
  EXPECT_EQ(refused([](Layout* l) { l->taps.clear(); }), "layout 7: it has no tap");
  EXPECT_EQ(refused([](Layout* l) { l->taps[1].name = "h.0"; }), "layout 7: h.0 is there twice");
  EXPECT_EQ(refused([](Layout* l) { l->taps[1].name = "a\nb"; }),
            "layout 7: name \"a?b\": 1 to 200 printable ASCII characters without blanks");
  EXPECT_EQ(refused([](Layout* l) { l->taps[1].group = 64; }), "layout 7: h.0:stats: group 64, at most 63");
  EXPECT_EQ(refused([](Layout* l) { l->taps[3].shape = {uint64_t{1} << 40, uint64_t{1} << 40}; }), "layout 7: w: more than 1 TiB");
  EXPECT_EQ(refused([](Layout* l) { l->rows_most = ~0U, l->taps[0].shape = {uint64_t{1} << 20}; }),
            "layout 7: a record would have more than 1 TiB");
  EXPECT_EQ(refused([](Layout* l) { l->taps.resize(4097, l->taps[0]); }), "layout 7: 4097 taps, at most 4096");
  EXPECT_EQ(refused([](Layout* l) { l->tags.resize(65, l->tags[0]); }), "layout 7: 65 tags, at most 64");
}

}  // namespace
}  // namespace r2cc::observe
