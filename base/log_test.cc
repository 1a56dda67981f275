#include "base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace r2cc {
namespace {

using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;

TEST(Log, FieldsAreKeyEqualsValue) {
  EXPECT_EQ(FormatLogRecord("nic failed", {{"nic", "n0/r1"}, {"port", 7460}, {"up", false}, {"share", 0.5}}),
            "nic failed nic=n0/r1 port=7460 up=false share=0.5");
}

TEST(Log, ARecordStaysOneLineWhateverItHolds) {
  EXPECT_EQ(FormatLogRecord("a\nb", {{"name", std::string("x\"y\n=\x01 z")}, {"none", ""}}), "a\\nb name=\"x\\\"y\\n=\\x01 z\" none=\"\"");
}

TEST(Log, RecordsBelowTheLevelAreNotWritten) {
  std::vector<std::string> lines;
  {
    ScopedLogCapture capture([&lines](LogLevel, const std::string& line) { lines.push_back(line); });
    LogDebug("one");
    LogInfo("two");
    SetLogLevel(LogLevel::kError);
    LogWarning("three");
    LogError("four");
    SetLogLevel(LogLevel::kInfo);
  }
  EXPECT_THAT(lines, ElementsAre("two", "four"));
}

TEST(Log, WritesTimeLevelAndTextToStandardError) {
  testing::internal::CaptureStderr();
  LogWarning("100% of {} done", {{"nic", "n0/r1"}});
  const std::string text = testing::internal::GetCapturedStderr();
  EXPECT_THAT(text, HasSubstr("Z warning "));
  EXPECT_THAT(text, EndsWith("100% of {} done nic=n0/r1\n"));
}

TEST(Log, TheJournalIsKnownByItsDeviceAndInode) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  struct stat there {};
  ASSERT_EQ(fstat(ends[1], &there), 0);
  const std::string stream = std::to_string(there.st_dev) + ":" + std::to_string(there.st_ino);
  EXPECT_TRUE(IsJournal(stream, ends[1]));
  EXPECT_FALSE(IsJournal(stream, STDIN_FILENO)) << "standard error was sent elsewhere";
  EXPECT_FALSE(IsJournal("", ends[1]));
  EXPECT_FALSE(IsJournal(stream, -1));
  close(ends[0]);
  close(ends[1]);
}

TEST(Log, InTheJournalALineBeginsWithItsPriority) {
  // In a process of its own, as it is for good.
  EXPECT_EXIT(
      {
        LogForJournal();
        LogWarning("n0/r1: HEALTHY -> FAILED", {{"event", "nic-state"}});
        _exit(0);
      },
      testing::ExitedWithCode(0), "^<4>n0/r1: HEALTHY -> FAILED event=nic-state\n$");
  EXPECT_EQ(JournalPrefix(LogLevel::kInfo), "<6>");
}

TEST(Log, LevelsAreParsed) {
  EXPECT_EQ(ParseLogLevel("debug"), LogLevel::kDebug);
  EXPECT_EQ(ParseLogLevel("warning"), LogLevel::kWarning);
  EXPECT_EQ(ParseLogLevel("loud"), std::nullopt);
}

}  // namespace
}  // namespace r2cc
