#include "tests/figures/table.h"

#include <gtest/gtest.h>

namespace r2cc::figures {
namespace {

TEST(Table, IsCsvUnderItsName) {
  Table table("bounds", {"p", "scheme", "ratio"});
  table.Add({3, "ring", {1.14285714, 4}});
  table.Add({1024, "direct", {2.0, 4}});
  EXPECT_EQ(table.Text(), "#bounds\np,scheme,ratio\n3,ring,1.1429\n1024,direct,2.0000\n\n");
}

TEST(Table, ARoundedZeroHasNoSign) {
  EXPECT_EQ(Cell(-0.00001, 3).text, "0.000");
  EXPECT_EQ(Cell(-0.01, 3).text, "-0.010");
  EXPECT_EQ(Cell(-0.0, 0).text, "0");
}

TEST(TableDeathTest, RefusesARowThatDoesNotFit) {
  Table table("bounds", {"p", "ratio"});
  EXPECT_DEATH(table.Add({3}), "cells.size");
  EXPECT_DEATH(table.Add({3, "a,b"}), "find_first_of");
}

}  // namespace
}  // namespace r2cc::figures
