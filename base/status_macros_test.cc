#include "base/status_macros.h"

#include <gtest/gtest.h>

#include <memory>

namespace r2cc {
namespace {

absl::StatusOr<std::unique_ptr<int>> Box(int value) {
  if (value < 0) return absl::InvalidArgumentError("negative");
  return std::make_unique<int>(value);
}

absl::StatusOr<int> Sum(int a, int b) {
  ASSIGN_OR_RETURN(const std::unique_ptr<int> first, Box(a));
  ASSIGN_OR_RETURN(const std::unique_ptr<int> second, Box(b));
  return *first + *second;
}

absl::Status Both(const absl::Status& a, const absl::Status& b, int* reached) {
  RETURN_IF_ERROR(a);
  *reached = 1;
  RETURN_IF_ERROR(b);
  *reached = 2;
  return absl::OkStatus();
}

TEST(StatusMacros, AssignOrReturnGivesTheValueOrLeaves) {
  EXPECT_EQ(*Sum(2, 3), 5);
  EXPECT_EQ(Sum(2, -1).status(), absl::InvalidArgumentError("negative"));
}

TEST(StatusMacros, ReturnIfErrorLeavesAtTheFirstError) {
  int reached = 0;
  EXPECT_EQ(Both(absl::OkStatus(), absl::AbortedError("b"), &reached), absl::AbortedError("b"));
  EXPECT_EQ(reached, 1);
  EXPECT_TRUE(Both(absl::OkStatus(), absl::OkStatus(), &reached).ok());
  EXPECT_EQ(reached, 2);
}

}  // namespace
}  // namespace r2cc
