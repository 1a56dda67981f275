#include "daemon/jobs/reduced_rails.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <tuple>
#include <vector>

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using Span = std::tuple<int64_t, int64_t, uint32_t, uint32_t>;

std::vector<Span> Spans(const ReducedList& list) {
  std::vector<Span> spans;
  for (const v1::ReducedRails& one : list) spans.emplace_back(one.begun_ns(), one.ended_ns(), one.usable(), one.rails());
  return spans;
}

ReducedList ListOf(const std::vector<Span>& spans) {
  ReducedList list;
  for (const auto& [begun, ended, usable, rails] : spans) {
    v1::ReducedRails* const one = list.Add();
    one->set_begun_ns(begun);
    one->set_ended_ns(ended);
    one->set_usable(usable);
    one->set_rails(rails);
  }
  return list;
}

TEST(ReducedRails, EachReportEndsTheOneBefore) {
  ReducedList list;
  NoteUse(4, 4, 5, &list);
  EXPECT_THAT(Spans(list), IsEmpty());
  NoteUse(3, 4, 10, &list);
  NoteUse(2, 4, 20, &list);
  EXPECT_THAT(Spans(list), ElementsAre(Span{10, 20, 3, 4}, Span{20, 0, 2, 4}));
  NoteUse(4, 4, 50, &list);
  EXPECT_THAT(Spans(list), ElementsAre(Span{10, 20, 3, 4}, Span{20, 50, 2, 4}));
  EndReduced(99, &list);
  EXPECT_EQ(list.size(), 2) << "nothing lasts";
}

TEST(ReducedRails, HalfAnHourWithFewerRailsIsHalfAnHour) {
  constexpr int64_t kMinute = 60'000'000'000;
  ReducedList one, other;
  NoteUse(3, 4, 10 * kMinute, &one);
  NoteUse(3, 4, 10 * kMinute + 3, &other);
  NoteUse(4, 4, 40 * kMinute, &one);
  MergeReduced(other, 40 * kMinute, &one);
  EXPECT_THAT(Spans(one), ElementsAre(Span{10 * kMinute, 40 * kMinute, 3, 4})) << "two processes of one job lose them at the same time";
}

TEST(ReducedRails, TheFewestOfAllProcessesCountAtEachMoment) {
  ReducedList list = ListOf({{10, 30, 3, 4}, {100, 0, 3, 4}});
  MergeReduced(ListOf({{20, 40, 2, 4}, {60, 70, 1, 2}}), 150, &list);
  EXPECT_THAT(Spans(list), ElementsAre(Span{10, 20, 3, 4}, Span{20, 40, 2, 4}, Span{60, 70, 1, 2}, Span{100, 150, 3, 4}));
}

TEST(ReducedRails, ImpossibleValuesAreLeftOut) {
  ReducedList list;
  MergeReduced(ListOf({{30, 10, 3, 4}, {5, 9, 4, 4}, {5, 9, 1, 0}, {5, 9, 1, 4'000'000'000u}, {-5, 9, 1, 4}, {1, 2, 0, 4}}), 100, &list);
  EXPECT_THAT(Spans(list), ElementsAre(Span{1, 2, 0, 4}));
}

TEST(ReducedRails, ManyBecomeFewer) {
  ReducedList list;
  for (int64_t i = 1; i <= 2 * kReducedMax; ++i) {
    NoteUse(3, 4, 10 * i, &list);
    NoteUse(4, 4, 10 * i + 5, &list);
    ASSERT_LE(list.size(), kReducedMax);
  }
  EXPECT_EQ(list[0].begun_ns(), 10);
  EXPECT_EQ(list[list.size() - 1].ended_ns(), 20 * kReducedMax + 5);
}

}  // namespace
}  // namespace r2cc::daemon
