#include "daemon/service/handed_descriptors.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(HandedNames, AreForThisProcessAndAsManyAsWereCounted) {
  EXPECT_THAT(HandedNames("7", "2", "attach-1:other", 7), ElementsAre("attach-1", "other"));
  EXPECT_THAT(HandedNames("8", "2", "attach-1:other", 7), IsEmpty()) << "another process's";
  EXPECT_THAT(HandedNames("7", "3", "attach-1:other", 7), IsEmpty());
  EXPECT_THAT(HandedNames("7", "1", "attach-1:other", 7), IsEmpty());
  for (const char* count : {"0", "-1", "17", "x", ""}) EXPECT_THAT(HandedNames("7", count, "attach-1", 7), IsEmpty()) << count;
  EXPECT_THAT(HandedNames("x", "1", "attach-1", 7), IsEmpty());
  EXPECT_THAT(HandedNames(nullptr, "1", "attach-1", 7), IsEmpty());
  EXPECT_THAT(HandedNames("7", nullptr, "attach-1", 7), IsEmpty());
  EXPECT_THAT(HandedNames("7", "1", nullptr, 7), IsEmpty());
}

bool IsOpen(int fd) { return fcntl(fd, F_GETFD) >= 0; }

TEST(HandedDescriptors, AnUnclaimedDescriptorIsClosed) {
  // In a child, whose descriptors from 3 on are its own affair.
  EXPECT_EXIT(
      {
        for (int fd = kHandedFirst; fd < kHandedFirst + 8; ++fd) close(fd);
        for (int i = 0; i < 3; ++i)
          if (dup(0) < 0) _exit(1);
        int taken = -1;
        {
          HandedDescriptors handed({"a", "b", "a", "never-open"});
          if (handed.names() != std::vector<std::string>{"a", "b"}) _exit(2);
          if (IsOpen(kHandedFirst + 2)) _exit(3);  // the second of a name
          if (fcntl(kHandedFirst, F_GETFD) != FD_CLOEXEC) _exit(4);
          taken = handed.Take("a");
          if (taken != kHandedFirst || handed.Take("a") != -1 || handed.Take("c") != -1) _exit(5);
        }
        _exit(IsOpen(taken) && !IsOpen(kHandedFirst + 1) ? 0 : 6);
      },
      testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace r2cc::daemon
