#include "daemon/reload/certificate_watch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "base/fake_executor.h"

namespace r2cc::daemon {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

constexpr int64_t kDay = 86'400;
constexpr int64_t kNow = 1'800'000'000;

CertificateAlarm After(int64_t days) { return JudgeCertificates({{}, kNow + days * kDay}, "n1", kNow); }

TEST(JudgeCertificates, AWarningInTheLastMonthAnErrorInTheLastWeek) {
  EXPECT_EQ(After(30), CertificateAlarm());
  EXPECT_EQ(After(29).level, Severity::kWarning);
  EXPECT_THAT(After(29).text, StartsWith("a certificate of this node ends in 29 days, on 2027-"));
  EXPECT_THAT(After(29).text, HasSubstr("`r2ccctl certs issue n1`"));
  EXPECT_EQ(After(7).level, Severity::kWarning);
  EXPECT_EQ(After(6).level, Severity::kError);
  EXPECT_EQ(JudgeCertificates({}, "n1", kNow), CertificateAlarm()) << "without TLS there is none";
}

TEST(JudgeCertificates, AWrongCertificateIsAnError) {
  const CertificateAlarm alarm = JudgeCertificates({{"node.crt expired on 2026-11-21", "node.key is missing"}, 0}, "n1", kNow);
  EXPECT_EQ(alarm.text, "node.crt expired on 2026-11-21 (and 1 more)");
  EXPECT_EQ(alarm.level, Severity::kError);
}

TEST(CertificateWatch, SetsTheAlarmAndLogsWhatGetsWorse) {
  FakeExecutor core, disk;
  FakeConfigLoader loader{absl::NotFoundError("there are no files")};
  std::vector<std::string> lines;
  ScopedLogCapture capture([&](Severity level, const std::string& line) {
    lines.push_back((level == Severity::kError ? "error: " : level == Severity::kWarning ? "warning: " : "info: ") + line);
  });
  int64_t now_s = kNow;
  std::string alarm = "not set";
  CertificateWatch watch({&core, &disk, &loader, [&] { return now_s; }, [&](const std::string& text) { alarm = text; }}, Config());
  const auto look = [&](int64_t days) {
    loader.SetCertificates({{}, kNow + days * kDay});
    watch.Look();
    disk.RunPosted();
    core.RunPosted();
  };
  look(40);
  EXPECT_EQ(alarm, "");
  look(20);
  look(19);
  EXPECT_THAT(alarm, HasSubstr("in 19 days"));
  look(5);
  look(300);
  EXPECT_EQ(alarm, "");
  EXPECT_THAT(lines, ElementsAre(HasSubstr("warning: a certificate of this node ends in 20 days"),
                                 HasSubstr("error: a certificate of this node ends in 5 days"), HasSubstr("as they should be again")));
}

}  // namespace
}  // namespace r2cc::daemon
