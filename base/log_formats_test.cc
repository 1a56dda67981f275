#include "base/log_formats.h"

#include <gtest/gtest.h>

#include <string>

namespace r2cc {
namespace {

TEST(LogFormats, AnEntryOfTheJournal) {
  EXPECT_EQ(FormatJournalEntry(Severity::kError, "r2ccd", "text a=1",
                               {{"a", 1}, LogField::Structured("message_id", "00ff"), {"odd key=", "x"}, LogField::Structured("none", "")}),
            "PRIORITY=3\nSYSLOG_IDENTIFIER=r2ccd\nMESSAGE=text a=1\nR2CC_A=1\nMESSAGE_ID=00ff\nR2CC_ODD_KEY_=x\n");
}

TEST(LogFormats, AValueWithNewlinesForgesNoField) {
  EXPECT_EQ(FormatJournalEntry(Severity::kInfo, "r2ccd", "text", {{"name", "a\nPRIORITY=0"}}),
            std::string("PRIORITY=6\nSYSLOG_IDENTIFIER=r2ccd\nMESSAGE=text\nR2CC_NAME\n") + std::string("\x0c\0\0\0\0\0\0\0", 8) +
                "a\nPRIORITY=0\n");
}

TEST(LogFormats, AnObjectOfJson) {
  EXPECT_EQ(FormatJsonRecord(1'769'860'800'123'456'789, Severity::kWarning, "nic failed",
                             {{"nic", "n0/r1"}, {"empty", ""}, LogField::Structured("job", ""), LogField::Structured("to", "FAILED")}),
            R"({"time":"2026-01-31T12:00:00.123Z","level":"warning","message":"nic failed","nic":"n0/r1","empty":"","to":"FAILED"})");
}

TEST(LogFormats, JsonIsValidForAnyRecord) {
  const auto message = [](const std::string& text) {
    const std::string line = FormatJsonRecord(0, Severity::kInfo, text, {});
    const std::string before = R"({"time":"1970-01-01T00:00:00.000Z","level":"info","message":)";
    EXPECT_EQ(line.substr(0, before.size()), before);
    return line.substr(before.size(), line.size() - before.size() - 1);
  };
  EXPECT_EQ(message("a\"b\\c\n\x01\x7f"), R"("a\"b\\c\u000a\u0001\u007f")");
  EXPECT_EQ(message("gr\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80"), "\"gr\xc3\xbc\xe2\x82\xac\xf0\x9f\x98\x80\"");
  // Cut off, too long, a surrogate, beyond the last one, and no first byte.
  for (const char* bad : {"\xc3", "\xe2\x82", "\xc0\xaf", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff", "\x80"}) {
    const std::string text = message(bad);
    EXPECT_EQ(text.substr(0, 7), R"("\ufffd)") << bad;
    for (const char c : text) EXPECT_GE(c, ' ') << "ASCII alone is left";
  }
}

}  // namespace
}  // namespace r2cc
