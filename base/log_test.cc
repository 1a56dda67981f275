#include "base/log.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace r2cc {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

TEST(Log, FieldsAreKeyEqualsValue) {
  EXPECT_EQ(FormatLogRecord("nic failed", {{"nic", "n0/r1"}, {"port", 7460}, {"up", false}, {"share", 0.5}}),
            "nic failed nic=n0/r1 port=7460 up=false share=0.5");
}

TEST(Log, ARecordStaysOneLineWithAnyContent) {
  EXPECT_EQ(FormatLogRecord("a\nb", {{"name", std::string("x\"y\n=\x01 z")}, {"none", ""}}), "a\\nb name=\"x\\\"y\\n=\\x01 z\" none=\"\"");
}

TEST(Log, RecordsBelowTheLevelAreNotWritten) {
  std::vector<std::string> lines;
  {
    ScopedLogCapture capture([&lines](Severity, const std::string& line) { lines.push_back(line); });
    LogDebug("one");
    LogInfo("two");
    SetMinSeverity(Severity::kError);
    LogWarning("three");
    LogError("four");
    SetMinSeverity(Severity::kInfo);
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

TEST(LogDeathTest, LinesThatNobodyReadsHoldUpNobodyAndAreCounted) {
  EXPECT_EXIT(
      {
        int ends[2];
        if (pipe2(ends, O_CLOEXEC) != 0 || dup2(ends[1], STDERR_FILENO) < 0) _exit(2);
        LogWithoutWaiting();
        for (int i = 0; i < 10'000; ++i) LogWarning(std::string(100, '.'));
        fcntl(ends[0], F_SETFL, O_NONBLOCK);
        std::string all;
        for (int i = 0; i < 100; ++i) {
          char some[65536];
          for (ssize_t got; (got = read(ends[0], some, sizeof(some))) > 0;) all.append(some, static_cast<size_t>(got));
          FlushLog();
        }
        const size_t at = all.find("log lines are lost: the reader of standard error took none for a while lines=");
        _exit(at != std::string::npos && all.find("Z warning ....") == all.find("Z ") ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
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

// In processes of their own, as these are for good.
TEST(Log, WithoutItsSocketALineForTheJournalBeginsWithItsPriority) {
  EXPECT_EXIT(
      {
        LogForJournal("/nonexistent/socket");
        LogWarning("n0/r1: HEALTHY -> FAILED", {{"event", "nic-state"}});
        _exit(0);
      },
      testing::ExitedWithCode(0), "^<4>n0/r1: HEALTHY -> FAILED event=nic-state\n$");
  EXPECT_EQ(JournalPrefix(Severity::kInfo), "<6>");
}

TEST(Log, TheJournalGetsFieldsAndStandardErrorWhatItDoesNotTake) {
  // In /tmp and not in TEST_TMPDIR: the path of a Unix socket has room for 107 bytes.
  std::string folder = "/tmp/r2cc-log.XXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  const std::string path = folder + "/journal";
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  ASSERT_LT(path.size(), sizeof(address.sun_path)) << path;
  std::memcpy(address.sun_path, path.data(), path.size());
  const int journal = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(journal, reinterpret_cast<const sockaddr*>(&address), sizeof(address)), 0);
  EXPECT_EXIT(
      {
        LogForJournal(path);
        LogWarning("n0/r1: HEALTHY -> FAILED",
                   {{"event", "nic-state"}, LogField::Structured("nic", "r1"), LogField::Structured("job", "")});
        unlink(path.c_str());
        LogInfo("the journal is gone");
        _exit(0);
      },
      testing::ExitedWithCode(0), "^<6>the journal is gone\n$");
  char entry[1024];
  const ssize_t bytes = recv(journal, entry, sizeof(entry), MSG_DONTWAIT);
  ASSERT_GT(bytes, 0);
  EXPECT_THAT(std::string(entry, static_cast<size_t>(bytes)),
              AllOf(StartsWith("PRIORITY=4\nSYSLOG_IDENTIFIER=unit_test\nMESSAGE=n0/r1: HEALTHY -> FAILED event=nic-state\n"),
                    EndsWith("R2CC_EVENT=nic-state\nR2CC_NIC=r1\n")));
  close(journal);
  rmdir(folder.c_str());
}

TEST(Log, EachRecordIsAJsonObjectOnALine) {
  EXPECT_EXIT(
      {
        LogAsJson();
        LogInfo("one \"two\"", {{"nic", "n0/r1"}});
        _exit(0);
      },
      testing::ExitedWithCode(0),
      R"(^\{"time":"20.*Z","level":"info","message":"one \\"two\\"","nic":"n0/r1"\})"
      "\n$");
}

TEST(Log, LevelsAreParsed) {
  EXPECT_EQ(ParseSeverity("debug"), Severity::kDebug);
  EXPECT_EQ(ParseSeverity("warning"), Severity::kWarning);
  EXPECT_EQ(ParseSeverity("loud"), std::nullopt);
}

}  // namespace
}  // namespace r2cc
