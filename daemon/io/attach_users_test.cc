#include "daemon/io/attach_users.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

TEST(AttachUsersTest, OneUserLeavesRoomForTheOthers) {
  AttachUsers users;
  for (size_t i = 0; i < AttachUsers::kProcessesMax; ++i) {
    ASSERT_TRUE(users.Connect(1000));
    ASSERT_TRUE(users.MayAttach(1000));
    users.Attach(1000);
  }
  ASSERT_TRUE(users.Connect(1000)) << "to be told why it may not";
  EXPECT_FALSE(users.MayAttach(1000));
  users.Leave(1000, /*attached=*/false);
  ASSERT_TRUE(users.Connect(1001));
  EXPECT_TRUE(users.MayAttach(1001));
  users.Leave(1000, /*attached=*/true);
  ASSERT_TRUE(users.Connect(1000));
  EXPECT_TRUE(users.MayAttach(1000)) << "one of his went";
}

TEST(AttachUsersTest, ConnectionsThatSayNothingAreBounded) {
  AttachUsers users;
  for (size_t i = 0; i < AttachUsers::kGreetingsMax; ++i) ASSERT_TRUE(users.Connect(1000));
  EXPECT_FALSE(users.Connect(1000));
  EXPECT_TRUE(users.Connect(1001));
  users.Leave(1000, /*attached=*/false);
  EXPECT_TRUE(users.Connect(1000));
}

TEST(AttachUsersTest, RefusalsAreCountedAndToldOnceASecond) {
  AttachUsers users;
  EXPECT_EQ(users.Refuse(1000, 0), 0u);
  for (int i = 1; i < 100; ++i) EXPECT_EQ(users.Refuse(1000, i), std::nullopt);
  EXPECT_EQ(users.Refuse(1001, 100), 0u) << "another user's is news";
  EXPECT_EQ(users.Refuse(1000, kNanosPerSecond), 99u);
  EXPECT_EQ(users.refused(), 102u);
  for (uint32_t uid = 0; uid < 10'000; ++uid) users.Refuse(uid, 2 * kNanosPerSecond);
}

TEST(AttachUsersTest, AUserSaysSoMuchASecondInAllHisRings) {
  AttachUsers users;
  int taken = 0;
  for (int ring = 0; ring < 1000; ++ring) taken += users.TakeRecords(7, 256, kNanosPerSecond);
  EXPECT_EQ(taken, AttachUsers::kRecordsBurst);
  EXPECT_EQ(users.TakeRecords(8, 256, kNanosPerSecond), 256) << "another has his own";
  EXPECT_EQ(users.TakeRecords(7, 1'000'000, 2 * kNanosPerSecond), AttachUsers::kRecordsPerSecond);
}

}  // namespace
}  // namespace r2cc::daemon
