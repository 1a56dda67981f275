#include "netplugin/collnet/plan_book.h"

#include <gtest/gtest.h>

namespace r2cc::collnet {
namespace {

Stamp Make(uint64_t epoch, OperationId from, OperationId through, uint64_t rate = 1) {
  return {epoch, from, through, PlanFor({rate, 4, 4}, 65'536)};
}

TEST(PlanBookTest, AnOperationFollowsWhatWasStampedForItAndWaitsUntilSomethingIs) {
  PlanBook book;
  EXPECT_EQ(book.Find(0), nullptr);
  EXPECT_EQ(book.Add(Make(1, 0, 16)), "");
  EXPECT_EQ(book.Find(15)->epoch, 1u);
  EXPECT_EQ(book.Find(16), nullptr);
  EXPECT_EQ(book.Add(Make(1, 0, 24)), "");
  EXPECT_EQ(book.Find(23)->epoch, 1u);
  EXPECT_EQ(book.Add(Make(2, 24, 40, 3)), "");
  EXPECT_EQ(book.Find(23)->epoch, 1u);
  EXPECT_EQ(book.Find(24)->epoch, 2u);
  EXPECT_EQ(book.through(), 40u);
}

TEST(PlanBookTest, ARepeatedStampChangesNothing) {
  PlanBook book;
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(book.Add(Make(1, 0, 16)), "");
    EXPECT_EQ(book.Add(Make(1, 0, 24)), "");
  }
  EXPECT_EQ(book.through(), 24u);
  EXPECT_EQ(book.Add(Make(2, 24, 40, 3)), "");
  EXPECT_EQ(book.Add(Make(1, 0, 16)), "");
  EXPECT_EQ(book.Add(Make(2, 24, 40, 3)), "");
  EXPECT_EQ(book.through(), 40u);
}

TEST(PlanBookTest, AStampCannotBeChanged) {
  PlanBook book;
  ASSERT_EQ(book.Add(Make(1, 0, 16)), "");
  EXPECT_EQ(book.Add(Make(1, 0, 16, 3)), "another plan 1 for operations 0 up to 16 than before");
  EXPECT_EQ(book.Add(Make(1, 1, 16)), "another plan 1 for operations 1 up to 16 than before");
  EXPECT_EQ(book.Add(Make(2, 15, 20, 3)), "plan 2 for operations 15 up to 20 where plan 2 from operation 16 on is the next");
  EXPECT_EQ(book.Add(Make(2, 17, 20, 3)), "plan 2 for operations 17 up to 20 where plan 2 from operation 16 on is the next");
  EXPECT_NE(book.Add(Make(3, 16, 20, 3)), "");
  EXPECT_NE(book.Add(Make(2, 16, 16, 3)), "");
  ASSERT_EQ(book.Add(Make(2, 16, 20, 3)), "");
  EXPECT_EQ(book.Add(Make(1, 0, 17)), "plan 1 for operations 0 up to 17, of which some follow a later plan");
  EXPECT_EQ(book.Find(16)->epoch, 2u);
  PlanBook empty;
  EXPECT_NE(empty.Add(Make(1, 1, 16)), "");
  EXPECT_NE(empty.Add(Make(2, 0, 16)), "");
}

TEST(PlanBookTest, DoneOperationsAreForgottenAndTheLastPlanKept) {
  PlanBook book;
  ASSERT_EQ(book.Add(Make(1, 0, 16)), "");
  ASSERT_EQ(book.Add(Make(2, 16, 32, 3)), "");
  book.ForgetBefore(15);
  EXPECT_NE(book.Find(15), nullptr);
  book.ForgetBefore(16);
  EXPECT_EQ(book.Find(15), nullptr);
  book.ForgetBefore(100);
  EXPECT_EQ(book.Find(31)->epoch, 2u);
  EXPECT_EQ(book.Add(Make(1, 0, 16)), "");
  EXPECT_EQ(book.Add(Make(3, 32, 48, 2)), "");
}

TEST(StamperTest, ItStampsAheadAndAgainWhenHalfIsUsedUp) {
  Stamper stamper(Make(1, 0, 0).plan, 16);
  EXPECT_EQ(stamper.Next(0), Make(1, 0, 16));
  EXPECT_EQ(stamper.Next(0), std::nullopt);
  EXPECT_EQ(stamper.Next(8), std::nullopt);
  EXPECT_EQ(stamper.Next(9), Make(1, 0, 25));
  EXPECT_EQ(stamper.Next(9), std::nullopt);
}

TEST(StamperTest, AnotherPlanBeginsWhereNothingIsStamped) {
  Stamper stamper(Make(1, 0, 0).plan, 16);
  PlanBook book;
  ASSERT_EQ(book.Add(*stamper.Next(0)), "");
  stamper.SetPlan(Make(1, 0, 0, 3).plan);
  stamper.SetPlan(Make(1, 0, 0, 4).plan);
  EXPECT_EQ(stamper.Next(8), std::nullopt) << "what is stamped stands";
  const auto next = stamper.Next(9);
  EXPECT_EQ(next, Make(2, 16, 25, 4)) << "the last plan, not each of them";
  EXPECT_EQ(book.Add(*next), "");
}

// Any word ahead, any pace: an operation that is called is always stamped, and every stamp follows from those before.
TEST(StamperTest, CalledOperationsAreStamped) {
  for (const OperationId ahead : {1, 2, 3, 16}) {
    Stamper stamper(Make(1, 0, 0).plan, ahead);
    PlanBook book;
    for (OperationId called = 0; called < 100; ++called) {
      if (called % 7 == 0) stamper.SetPlan(Make(1, 0, 0, 3 + called % 2).plan);
      while (const auto stamp = stamper.Next(called)) ASSERT_EQ(book.Add(*stamp), "");
      ASSERT_TRUE(called == 0 || book.Find(called - 1) != nullptr) << ahead << " ahead, " << called << " called";
    }
  }
}

}  // namespace
}  // namespace r2cc::collnet
