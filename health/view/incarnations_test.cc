#include "health/view/incarnations.h"

#include <gtest/gtest.h>

namespace r2cc::health {
namespace {

using Verdict = Incarnations::Verdict;
constexpr Nanos kSecond = kNanosPerSecond;
// Runs have no order: the number of the true one is in turn the greater and the lesser.
constexpr uint64_t kOld = 700;
constexpr uint64_t kNew = 30;
constexpr uint64_t kThird = 900;

class IncarnationsTest : public testing::Test {
 protected:
  Incarnations::Judgement Stream(uint64_t run, uint64_t stream, Nanos now) {
    return incarnations_.Judge("n1", run, {stream, "stream " + std::to_string(stream)}, now);
  }
  Incarnations::Judgement Store(uint64_t run, Nanos now) { return incarnations_.Judge("n1", run, {0, "store"}, now); }
  Verdict FromStream(uint64_t run, uint64_t stream, Nanos now) { return Stream(run, stream, now).verdict; }
  Verdict FromStore(uint64_t run, Nanos now) { return Store(run, now).verdict; }
  bool Twice() { return incarnations_.TakeDuplicate("n1").found; }

  Incarnations incarnations_;
};

TEST_F(IncarnationsTest, AStreamThatEndsFreesTheNameAtOnce) {
  EXPECT_EQ(FromStream(kOld, 1, kSecond), Verdict::kCurrent);
  incarnations_.StreamEnded(1);
  const auto takeover = Stream(kNew, 2, kSecond + 1);
  EXPECT_EQ(takeover.verdict, Verdict::kTakesOver);
  EXPECT_FALSE(takeover.known_former);
  EXPECT_EQ(takeover.before, kOld);
  EXPECT_EQ(takeover.silent, 1);
  EXPECT_EQ(incarnations_.Current("n1"), kNew);
  EXPECT_FALSE(Twice());
}

// The machine lost power: nobody closed its stream, and it is back before that is noticed.
TEST_F(IncarnationsTest, ASilentStreamKeepsTheNameForTwoSeconds) {
  FromStream(kOld, 1, kSecond);
  const auto pending = Stream(kNew, 2, kSecond + 1);
  EXPECT_EQ(pending.verdict, Verdict::kPending);
  EXPECT_EQ(pending.ripe_at, kSecond + Incarnations::kStreamAlive);
  EXPECT_EQ(pending.current_from, "stream 1");
  EXPECT_EQ(FromStream(kNew, 2, 3 * kSecond - 1), Verdict::kPending);
  EXPECT_EQ(FromStream(kNew, 2, 3 * kSecond), Verdict::kTakesOver);
  EXPECT_FALSE(Twice()) << "the former one sent nothing more";
  // Its earlier messages may still come in: they are not believed as long as the new one sends.
  EXPECT_EQ(FromStream(kOld, 1, 3 * kSecond + 1), Verdict::kPending);
  EXPECT_TRUE(Stream(kOld, 1, 3 * kSecond + 1).known_former);
}

TEST_F(IncarnationsTest, TheSendingRunKeepsTheNameAndTheOtherIsReported) {
  for (Nanos now = kSecond; now < 20 * kSecond; now += kSecond / 2) {
    EXPECT_EQ(FromStream(kOld, 1, now), Verdict::kCurrent);
    EXPECT_EQ(Twice(), now == 4 * kSecond) << now << ": once, and only when both have spoken for a while";
    if (now <= 2 * kSecond) continue;
    EXPECT_EQ(FromStream(kNew, 2, now + 1), Verdict::kPending);
  }
  // A third one is reported again.
  EXPECT_EQ(FromStream(kThird, 3, 20 * kSecond), Verdict::kPending);
  FromStream(kThird, 3, 21 * kSecond);
  FromStream(kOld, 1, 21 * kSecond);
  const auto twice = incarnations_.TakeDuplicate("n1");
  EXPECT_TRUE(twice.found);
  EXPECT_EQ(twice.current_from, "stream 1");
  EXPECT_EQ(twice.other_from, "stream 3");
}

TEST_F(IncarnationsTest, ARunThatWasReplacedIsBelievedAgainIfItAloneSends) {
  FromStream(kOld, 1, kSecond);
  FromStream(kNew, 2, 4 * kSecond);
  EXPECT_EQ(incarnations_.Current("n1"), kNew);
  EXPECT_EQ(FromStream(kOld, 1, 4 * kSecond + 1), Verdict::kPending);
  const auto back = Stream(kOld, 1, 6 * kSecond);
  EXPECT_EQ(back.verdict, Verdict::kTakesOver) << "the true daemon is never silenced for good";
  EXPECT_TRUE(back.known_former);
}

TEST_F(IncarnationsTest, TheStoresOrderDecidesAmongItsOwnEntries) {
  EXPECT_EQ(FromStore(kOld, kSecond), Verdict::kCurrent);
  EXPECT_TRUE(incarnations_.EntryIsCurrent("n1"));
  EXPECT_EQ(FromStore(kNew, kSecond + 1), Verdict::kTakesOver) << "put over the other's entry";
  EXPECT_TRUE(incarnations_.EntryIsCurrent("n1"));
  incarnations_.EntryGone("n1");
  EXPECT_FALSE(incarnations_.EntryIsCurrent("n1"));
  EXPECT_EQ(FromStore(kThird, 9 * kSecond), Verdict::kTakesOver) << "the other's lease had run out";
}

TEST_F(IncarnationsTest, AnEntryThatIsPutDuringAStreamWaitsForTheStream) {
  FromStore(kOld, kSecond);
  FromStream(kOld, 1, 2 * kSecond);
  incarnations_.StreamEnded(1);
  const auto pending = Store(kNew, 3 * kSecond);
  EXPECT_EQ(pending.verdict, Verdict::kPending);
  EXPECT_EQ(pending.ripe_at, 4 * kSecond);
  EXPECT_EQ(FromStore(kNew, 4 * kSecond), Verdict::kTakesOver);
}

// A daemon that starts later, or connects again, finds the entry of a daemon that died.
TEST_F(IncarnationsTest, AnOldEntryNeverWinsOverAStream) {
  FromStream(kNew, 1, kSecond);
  const auto pending = Store(kOld, kSecond + 1);
  EXPECT_EQ(pending.verdict, Verdict::kPending);
  EXPECT_EQ(pending.ripe_at, kSecond + 1 + Incarnations::kEntryAlive) << "by then the lease of a daemon that is gone has run out";
  EXPECT_FALSE(incarnations_.EntryIsCurrent("n1")) << "and it is no sign of life";
  EXPECT_TRUE(incarnations_.EntryIs("n1", kOld));
  for (Nanos now = 2 * kSecond; now < 7 * kSecond; now += kSecond / 2) {
    FromStream(kNew, 1, now);
    EXPECT_EQ(FromStore(kOld, now), Verdict::kPending);
    EXPECT_FALSE(Twice()) << "an unchanged entry is no news";
  }
  incarnations_.EntryGone("n1");
  EXPECT_FALSE(incarnations_.EntryIs("n1", kOld));
}

// The same entry, and this time its daemon runs: it keeps its lease.
TEST_F(IncarnationsTest, AnEntryThatOutlastsItsLeaseIsBelievedWhenTheStreamIsSilent) {
  FromStore(kOld, kSecond);
  EXPECT_EQ(FromStream(kNew, 1, 100 * kSecond), Verdict::kTakesOver);
  EXPECT_EQ(FromStore(kOld, 100 * kSecond + Incarnations::kEntryAlive - 1), Verdict::kPending) << "however old the entry is";
  EXPECT_EQ(FromStore(kOld, 100 * kSecond + Incarnations::kEntryAlive), Verdict::kTakesOver);
}

TEST_F(IncarnationsTest, AnEntryThatComesBackAfterItWasReplacedIsASecondDaemon) {
  FromStore(kOld, kSecond);
  FromStore(kNew, 2 * kSecond);
  EXPECT_FALSE(Twice());
  EXPECT_EQ(FromStore(kOld, 4 * kSecond), Verdict::kPending) << "a put that was late, or a second daemon";
  EXPECT_TRUE(Twice());
  EXPECT_EQ(FromStore(kNew, 6 * kSecond), Verdict::kCurrent);
  EXPECT_EQ(FromStore(kOld, 8 * kSecond), Verdict::kPending);
  EXPECT_FALSE(Twice()) << "once";
  EXPECT_EQ(FromStore(kOld, 15 * kSecond), Verdict::kTakesOver) << "the other one puts nothing over it any more";
}

TEST_F(IncarnationsTest, ADaemonOfTheSameNameThatWritesIntoTheStoreIsReported) {
  FromStore(kOld, kSecond);
  FromStream(kOld, 1, 2 * kSecond);
  EXPECT_EQ(FromStore(kNew, 2 * kSecond + 1), Verdict::kPending);
  FromStream(kOld, 1, 3 * kSecond);
  EXPECT_FALSE(Twice());
  FromStream(kOld, 1, 3 * kSecond + 1);
  EXPECT_TRUE(Twice());
}

TEST_F(IncarnationsTest, ALostStoreProvesNothing) {
  FromStore(kOld, kSecond);
  FromStream(kNew, 1, 2 * kSecond);
  incarnations_.StoreLost();
  EXPECT_FALSE(incarnations_.EntryIs("n1", kOld));
  incarnations_.StreamEnded(1);
  EXPECT_EQ(FromStore(kOld, 3 * kSecond), Verdict::kPending) << "it is there again, and proves nothing of the order";
}

TEST_F(IncarnationsTest, TheStateOfANodeIsBounded) {
  FromStream(kOld, 1, kSecond);
  for (uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(FromStream(kThird + i, 2 + i, kSecond + 1), Verdict::kPending);
  EXPECT_EQ(FromStream(kOld, 1, kSecond + 2), Verdict::kCurrent);
  for (uint64_t i = 0; i < 100; ++i) FromStream(kThird + i, 5000, (10 + 3 * static_cast<Nanos>(i)) * kSecond);
  EXPECT_FALSE(Stream(kOld, 1, 308 * kSecond).known_former) << "forgotten, and believed or not as any other";
  incarnations_.Forget("n1");
  EXPECT_EQ(incarnations_.Current("n1"), 0u);
  EXPECT_EQ(FromStream(kOld, 1, 309 * kSecond), Verdict::kCurrent);
}

}  // namespace
}  // namespace r2cc::health
