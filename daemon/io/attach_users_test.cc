#include "daemon/io/attach_users.h"

#include <gtest/gtest.h>

namespace r2cc::daemon {
namespace {

// Attaches processes of `share`, which come as `uid`, up to `most`; how many were.
size_t AttachUpTo(AttachUsers* users, uint32_t uid, const std::string& share, size_t most) {
  for (size_t i = 0; i < most; ++i) {
    if (!users->Connect(uid)) return i;
    if (!users->WhyNotAttach(share).empty()) {
      users->Disconnect(uid);
      return i;
    }
    users->Attach(uid, share);
  }
  return most;
}

TEST(AttachUsersTest, OneUserLeavesRoomForTheOthers) {
  AttachUsers users;
  const std::string his = AttachUsers::ShareOf(1000);
  EXPECT_EQ(AttachUpTo(&users, 1000, his, 1000), AttachUsers::kProcessesMax);
  ASSERT_TRUE(users.Connect(1000)) << "to get the reason of its refusal";
  EXPECT_EQ(users.WhyNotAttach(his), "uid 1000 has 64 processes attached, the most for one user or container");
  users.Disconnect(1000);
  EXPECT_EQ(AttachUpTo(&users, 1001, AttachUsers::ShareOf(1001), 1), 1u);
  users.Leave(his);
  EXPECT_EQ(AttachUpTo(&users, 1000, his, 1000), 1u) << "one of the user's went";
}

// Root of a container becomes as many users as it likes.
TEST(AttachUsersTest, AContainerIsOneShareForAllItsUids) {
  AttachUsers users;
  size_t attached = 0;
  for (uint32_t uid = 2000; uid < 3000; ++uid) attached += AttachUpTo(&users, uid, "container /pods/a", 64);
  EXPECT_EQ(attached, AttachUsers::kProcessesMax);
  EXPECT_EQ(AttachUpTo(&users, 2000, "container /pods/b", 1), 1u);
}

// Users enough to take all places leave those of the reserve.
TEST(AttachUsersTest, AReserveStaysForRootAndForThoseWhoHaveNone) {
  AttachUsers users;
  size_t attached = 0;
  for (uint32_t uid = 1; uid <= 100; ++uid) attached += AttachUpTo(&users, uid, AttachUsers::ShareOf(uid), 1000);
  EXPECT_GE(attached, AttachUsers::kPlacesMax - AttachUsers::kReserve);
  EXPECT_LE(attached, AttachUsers::kPlacesMax - AttachUsers::kReserve + 100);
  EXPECT_EQ(AttachUpTo(&users, 5000, AttachUsers::ShareOf(5000), 3), 1u) << "one that has none gets one";
  EXPECT_EQ(AttachUpTo(&users, 0, AttachUsers::ShareOf(0), 8), 8u);
  for (uint32_t uid = 6000; users.Connect(uid); ++uid) ASSERT_LT(uid, 6000 + AttachUsers::kPlacesMax);
  EXPECT_FALSE(users.Connect(0)) << "there is an end";
}

TEST(AttachUsersTest, SilentConnectionsAreBounded) {
  AttachUsers users;
  for (size_t i = 0; i < AttachUsers::kGreetingsMax; ++i) ASSERT_TRUE(users.Connect(1000));
  EXPECT_FALSE(users.Connect(1000));
  EXPECT_TRUE(users.Connect(1001));
  users.Disconnect(1000);
  EXPECT_TRUE(users.Connect(1000));
}

TEST(AttachUsersTest, RefusalsAreCountedAndLoggedOnceASecond) {
  AttachUsers users;
  EXPECT_EQ(users.Refuse(1000, 0), 0u);
  for (int i = 1; i < 100; ++i) EXPECT_EQ(users.Refuse(1000, i), std::nullopt);
  EXPECT_EQ(users.Refuse(1001, 100), 0u) << "another user's is news";
  EXPECT_EQ(users.Refuse(1000, kNanosPerSecond), 99u);
  EXPECT_EQ(users.refused(), 102u);
  int lines = 0;
  for (uint32_t uid = 0; uid < 10'000; ++uid) lines += users.Refuse(uid, 2 * kNanosPerSecond).has_value() ? 1 : 0;
  EXPECT_EQ(lines, AttachUsers::kLinesBurst) << "root of a container has all uids";
}

TEST(AttachUsersTest, AUsersRingsShareOneRateLimit) {
  AttachUsers users;
  int taken = 0;
  for (int ring = 0; ring < 1000; ++ring) taken += users.TakeRecords("uid 7", 256, kNanosPerSecond);
  EXPECT_EQ(taken, AttachUsers::kRecordsBurst);
  EXPECT_EQ(users.TakeRecords("uid 8", 256, kNanosPerSecond), 256) << "another user has its own";
  users.GiveBack("uid 7", 200);
  EXPECT_EQ(users.TakeRecords("uid 7", 256, kNanosPerSecond), 200) << "rings that have few cost few";
  EXPECT_EQ(users.TakeRecords("uid 7", 1'000'000, 2 * kNanosPerSecond), AttachUsers::kRecordsPerSecond);
}

}  // namespace
}  // namespace r2cc::daemon
