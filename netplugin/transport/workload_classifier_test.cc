#include "netplugin/transport/workload_classifier.h"

#include <gtest/gtest.h>

#include "netplugin/flow/tuning.h"

namespace r2cc::net {
namespace {

constexpr uint64_t kLarge = tuning::kSmallBytesMost + 1, kSmall = tuning::kSmallBytesMost;

struct WorkloadClassifierTest : testing::Test {
  void Account(uint64_t message_bytes, int times) {
    for (int i = 0; i < times; ++i) workload.Account(message_bytes);
  }
  WorkloadClassifier workload;
};

TEST_F(WorkloadClassifierTest, SmallMessagesAreNoBulk) {
  Account(kSmall, 1000);
  EXPECT_FALSE(workload.is_bulk());
}

TEST_F(WorkloadClassifierTest, OneLargeMessageIs) {
  Account(kLarge, 1);
  EXPECT_TRUE(workload.is_bulk());
}

TEST_F(WorkloadClassifierTest, AFewSmallMessagesDoNotEndIt) {
  for (int i = 0; i < 100; ++i) {
    Account(kLarge, 1);
    Account(kSmall, tuning::kSmallMessagesMost - 1);
    EXPECT_TRUE(workload.is_bulk());
  }
}

TEST_F(WorkloadClassifierTest, ARunOfSmallMessagesEndsBulkAndALargeOneBeginsItAgain) {
  Account(kLarge, 100);
  Account(kSmall, tuning::kSmallMessagesMost);
  EXPECT_FALSE(workload.is_bulk());
  Account(kLarge, 1);
  EXPECT_TRUE(workload.is_bulk());
}

TEST_F(WorkloadClassifierTest, EmptyMessagesAreNoSmallMessages) {
  Account(kLarge, 1);
  Account(0, 1000);
  EXPECT_TRUE(workload.is_bulk());
}

}  // namespace
}  // namespace r2cc::net
