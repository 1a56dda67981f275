#include "daemon/state/audit.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "base/fake_executor.h"
#include "daemon/io/fake_files.h"

namespace r2cc::daemon {
namespace {

constexpr char kPath[] = "/lib/audit.log";
const Caller kUser{.kind = Caller::Kind::kLocal, .uid = 1000, .gid = 1000, .pid = 4711};
const Caller kAlice{.kind = Caller::Kind::kOperator, .name = "alice", .address = "10.9.0.7:4", .via = "n1", .via_proven = true};

class AuditTest : public testing::Test {
 protected:
  AuditTest() { Restart(); }

  void Restart() {
    audit_.reset();
    audit_ =
        std::make_unique<Audit>(&files_, &disk_, &core_, kPath, &reporter_, [this](const absl::Status& s) { turns_.push_back(s.ok()); });
  }
  // Each line in turn.
  void Settle() {
    for (int line = 0; line < 100; ++line) {
      disk_.RunPosted();
      core_.RunPosted();
    }
  }
  void Done(const std::string& nic) {
    audit_->Add({.action = "drain", .node = "n0", .nic = nic}, kUser);
    Settle();
  }
  std::vector<std::string> Loaded(size_t most, std::string* trouble) {
    std::vector<std::string> messages;
    for (const v1::Event& event : audit_->Load(most, trouble)) messages.push_back(event.message());
    return messages;
  }

  FakeFiles files_;
  FakeExecutor disk_;
  FakeExecutor core_;
  EventLog log_;
  EventReporter reporter_{&log_, "n0", &core_, [] { return 1'700'000'000'000'000'000; }};
  std::vector<bool> turns_;
  std::unique_ptr<Audit> audit_;
};

TEST_F(AuditTest, RecordsCallerActionTimeOriginAndResult) {
  audit_->Add({.action = "fail", .node = "n0", .nic = "rail0", .more = "for 10m", .status = absl::PermissionDeniedError("drills are off")},
              kAlice);
  Settle();
  const auto event = log_.After(0);
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->message(), "refused: fail n0/rail0 for 10m, by operator alice at 10.9.0.7:4 on n1: drills are off");
  EXPECT_EQ(event->time_ns(), 1'700'000'000'000'000'000);
  const v1::AuditRecord& audit = event->audit();
  EXPECT_EQ(audit.action(), "fail");
  EXPECT_EQ(audit.target(), "n0/rail0");
  EXPECT_EQ(audit.name(), "alice");
  EXPECT_EQ(audit.address(), "10.9.0.7:4");
  EXPECT_EQ(audit.via(), "n1");
  EXPECT_TRUE(audit.via_proven());
  EXPECT_TRUE(audit.refused());
  EXPECT_EQ(audit.result(), "drills are off");
  EXPECT_FALSE(audit.has_uid());

  Done("rail1");
  const auto done = log_.After(1);
  EXPECT_EQ(done->message(), "drain n0/rail1, by uid 1000 (pid 4711)");
  EXPECT_EQ(done->audit().uid(), 1000u);
  EXPECT_EQ(done->audit().pid(), 4711);
  EXPECT_EQ(done->audit().result(), "done");
  const std::string file = *files_.Read(kPath);
  EXPECT_EQ(std::count(file.begin(), file.end(), '\n'), 2);
  EXPECT_NE(file.find(R"x("action":"drain","target":"n0/rail1","who":"uid 1000 (pid 4711)","uid":1000,"pid":4711)x"), std::string::npos)
      << file;
}

TEST_F(AuditTest, OutlivesTheDaemon) {
  for (const char* nic : {"a", "b", "c"}) Done(nic);
  Restart();
  std::string trouble;
  EXPECT_EQ(Loaded(2, &trouble), (std::vector<std::string>{"drain n0/b, by uid 1000 (pid 4711)", "drain n0/c, by uid 1000 (pid 4711)"}));
  EXPECT_EQ(trouble, "");
}

TEST_F(AuditTest, HasTwoGenerations) {
  const std::string filler(Audit::kFileBytesMax - 100, '\n');
  ASSERT_TRUE(files_.Append(kPath, filler).ok());
  Restart();
  std::string trouble;
  EXPECT_TRUE(Loaded(9, &trouble).empty());
  Done("a");
  EXPECT_EQ(files_.Read("/lib/audit.log.1")->size(), filler.size());
  EXPECT_LT(files_.Read(kPath)->size(), 1000u);
  ASSERT_TRUE(files_.Append(kPath, filler).ok());
  Restart();
  EXPECT_EQ(Loaded(9, &trouble).size(), 1u);
  Done("b");
  Restart();
  EXPECT_EQ(Loaded(9, &trouble), (std::vector<std::string>{"drain n0/a, by uid 1000 (pid 4711)", "drain n0/b, by uid 1000 (pid 4711)"}))
      << "both generations are read, the older one first";
}

// Weeks of a full disk fill no file: a generation that was turned for bytes that nobody wrote would take the older one with it.
TEST_F(AuditTest, AFullDiskTurnsNoGeneration) {
  ASSERT_TRUE(files_.WriteAtomically(std::string(kPath) + ".1", "the older one").ok());
  ASSERT_TRUE(files_.Append(kPath, std::string(Audit::kFileBytesMax - 4096, '\n')).ok());
  Restart();
  std::string trouble;
  Loaded(9, &trouble);
  files_.SetFull(true);
  Done("a");
  for (int attempt = 0; attempt < 100; ++attempt) {
    core_.Advance(Audit::kRetryMax);
    Settle();
  }
  files_.SetFull(false);
  core_.Advance(Audit::kRetryMax);
  Settle();
  EXPECT_EQ(turns_, (std::vector<bool>{false, true}));
  EXPECT_TRUE(*files_.Read(std::string(kPath) + ".1") == "the older one");
  EXPECT_EQ(Loaded(9, &trouble).back(), "drain n0/a, by uid 1000 (pid 4711)");
}

TEST_F(AuditTest, AFullFileThatSomebodyRemovedIsBegunAgain) {
  ASSERT_TRUE(files_.Append(kPath, std::string(Audit::kFileBytesMax, '\n')).ok());
  Restart();
  std::string trouble;
  Loaded(9, &trouble);
  files_.Lose();
  Done("a");
  EXPECT_TRUE(turns_.empty());
  EXPECT_EQ(Loaded(9, &trouble), std::vector<std::string>{"drain n0/a, by uid 1000 (pid 4711)"});
}

TEST_F(AuditTest, ATornLineCostsNoOther) {
  Done("a");
  files_.SetFull(true);
  Done("b");
  EXPECT_EQ(turns_, std::vector<bool>{false});
  files_.SetFull(false);
  Done("c");
  core_.Advance(Audit::kRetryFirst);
  Settle();
  EXPECT_EQ(turns_, (std::vector<bool>{false, true}));
  ASSERT_TRUE(files_.Append(kPath, "{\"sequ").ok());  // a crash
  Restart();
  std::string trouble;
  EXPECT_EQ(Loaded(9, &trouble).size(), 3u);
  EXPECT_EQ(trouble, "/lib/audit.log: 1 garbled lines of the audit are left out; they stay in the file");
  Done("d");
  Restart();
  EXPECT_EQ(Loaded(9, &trouble).back(), "drain n0/d, by uid 1000 (pid 4711)");
}

// Nobody does anything more: the alarm ends all the same, and nothing is lacking.
TEST_F(AuditTest, LinesAreWrittenWhenTheDiskHasRoomAgain) {
  Done("a");
  files_.SetFull(true);
  for (const char* nic : {"b", "c", "d"}) Done(nic);
  EXPECT_EQ(turns_, std::vector<bool>{false});
  const auto wait = [&](Nanos time) {
    for (Nanos waited = 0; waited < time; waited += kNanosPerSecond / 4) {
      core_.Advance(kNanosPerSecond / 4);
      Settle();
    }
  };
  wait(20 * kNanosPerSecond);
  EXPECT_EQ(turns_, std::vector<bool>{false}) << "it is full, and that is known";
  files_.SetFull(false);
  wait(Audit::kRetryMax);
  EXPECT_EQ(turns_, (std::vector<bool>{false, true}));
  Done("e");
  Restart();
  std::string trouble, nics;
  for (const v1::Event& event : audit_->Load(9, &trouble)) nics += event.nic();
  EXPECT_EQ(nics, "abcde");
}

TEST_F(AuditTest, PendingLinesForAFullDiskAreBounded) {
  files_.SetFull(true);
  for (int i = 0; i < 4000; ++i) audit_->Add({.action = "drain", .node = "n0", .nic = "a", .result = std::string(500, 'x')}, kUser);
  Settle();
  files_.SetFull(false);
  core_.Advance(kNanosPerSecond);
  for (int i = 0; i < 40; ++i) Settle();
  EXPECT_EQ(turns_, (std::vector<bool>{false, true}));
  std::string last;
  for (uint64_t sequence = 0;;) {
    const auto event = log_.After(sequence);
    if (!event.has_value()) break;
    sequence = event->sequence();
    last = event->message();
  }
  EXPECT_THAT(last, testing::ContainsRegex("^the audit's file lacks [0-9]+ lines"));
  Restart();
  std::string trouble;
  const size_t kept = audit_->Load(9999, &trouble).size();
  EXPECT_GT(kept, 500u);
  EXPECT_LT(kept, 2000u);
}

TEST_F(AuditTest, APowerLossCostsNothingThatWasWritten) {
  for (const FakeFiles::Torn torn : {FakeFiles::Torn::kNothing, FakeFiles::Torn::kHalf, FakeFiles::Torn::kAll})
    for (int changes = 0; changes < 9; ++changes) {
      SCOPED_TRACE(absl::StrCat("after ", changes, " changes, ", static_cast<int>(torn)));
      files_.Lose();
      Restart();
      // The generation is full a few records later.
      ASSERT_TRUE(files_.Append(kPath, std::string(Audit::kFileBytesMax - 1000, 'x') + "\n").ok());
      std::string trouble;
      Loaded(99, &trouble);
      files_.CutPower(changes, torn);
      std::vector<std::string> written;
      for (int number = 0; !files_.power_is_off(); ++number) {
        const std::string nic = absl::StrCat("nic", number);
        Done(nic);
        if (!files_.power_is_off()) written.push_back(absl::StrCat("drain n0/", nic, ", by uid 1000 (pid 4711)"));
      }
      // The record in whose midst it went may be whole.
      const std::string last = absl::StrCat("drain n0/nic", written.size(), ", by uid 1000 (pid 4711)");
      audit_.reset();
      Settle();
      files_.TurnPowerOn();
      Restart();
      std::vector<std::string> loaded = Loaded(99, &trouble);
      if (!loaded.empty() && loaded.back() == last) written.push_back(last);
      EXPECT_EQ(loaded, written);
      Done("next");
      Restart();
      written.push_back("drain n0/next, by uid 1000 (pid 4711)");
      EXPECT_EQ(Loaded(99, &trouble), written) << trouble;
    }
}

// The daemon ends while lines wait for the disk.
TEST_F(AuditTest, NothingIsLostAtTheEnd) {
  for (const char* nic : {"a", "b", "c"}) audit_->Add({.action = "drain", .node = "n0", .nic = nic}, kUser);
  Restart();
  Settle();
  std::string trouble;
  EXPECT_EQ(Loaded(9, &trouble).size(), 3u);
}

TEST_F(AuditTest, AFileThatCannotBeReadStays) {
  Done("a");
  files_.Damage(kPath);
  Restart();
  std::string trouble;
  EXPECT_TRUE(Loaded(9, &trouble).empty());
  EXPECT_EQ(trouble, "cannot read /lib/audit.log: Input/output error; it stays as it is, and a new audit is started");
  files_.Damage("");
  Restart();
  EXPECT_EQ(Loaded(9, &trouble).size(), 1u);
}

TEST_F(AuditTest, AThousandRefusalsDisplaceNothing) {
  Done("a");
  for (int i = 0; i < 1000; ++i)
    audit_->Add({.action = "drain", .node = "n0", .nic = "x", .status = absl::PermissionDeniedError("no")}, kUser);
  Settle();
  EXPECT_EQ(log_.last_sequence(), 1 + RefusalAllowance::kBurst);
  EXPECT_EQ(log_.After(0)->audit().target(), "n0/a");
  core_.Advance(RefusalAllowance::kInterval);
  audit_->Add({.action = "drain", .node = "n0", .nic = "x", .status = absl::PermissionDeniedError("no")}, kUser);
  Settle();
  EXPECT_EQ(log_.After(log_.last_sequence() - 1)->message(),
            "refused: drain n0/x, by uid 1000 (pid 4711): no; 968 more refusals before it are not written");
  Done("b");
  EXPECT_EQ(log_.After(log_.last_sequence() - 1)->audit().target(), "n0/b") << "what is done is always written";
}

TEST_F(AuditTest, UnauthenticatedCallersAreRecordedAndDisplaceNothing) {
  Done("a");
  for (int i = 0; i < 1000; ++i) audit_->AddRefused({"peers", "certificate", "node n2 at h9:1", "to act on a NIC: it expired", 3});
  audit_->AddRefused({"peers", "garbage", "h9:2", "it uses no known protocol"});
  Settle();
  EXPECT_EQ(log_.last_sequence(), 1 + Audit::kRefusedBurst + 1) << "each kind has its own allowance";
  const auto first = log_.After(1);
  EXPECT_EQ(first->kind(), "stranger");
  EXPECT_EQ(first->message(),
            "refused on peers: to act on a NIC: it expired, by node n2 at h9:1; with it 3 such (certificate) since the last such event");
  EXPECT_TRUE(first->audit().refused());
  EXPECT_EQ(log_.After(log_.last_sequence() - 1)->message(), "refused on peers: it uses no known protocol, by h9:2");
  core_.Advance(Audit::kRefusedInterval);
  audit_->AddRefused({"peers", "certificate", "node n2 at h9:1", "to act on a NIC: it expired"});
  Settle();
  EXPECT_THAT(log_.After(log_.last_sequence() - 1)->message(), testing::HasSubstr("with it 2977 such (certificate)"));
  Restart();
  std::string trouble;
  EXPECT_EQ(Loaded(99, &trouble).size(), 1 + Audit::kRefusedBurst + 2) << trouble;
}

}  // namespace
}  // namespace r2cc::daemon
