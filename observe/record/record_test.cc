#include "observe/record/record.h"

#include <gtest/gtest.h>

#include <string>

#include "observe/record/account.h"

namespace r2cc::observe {
namespace {

RecordHeader Header(uint64_t step, uint64_t sequence, uint32_t unwanted) {
  RecordHeader header{};
  header.magic = kRecordMagic;
  header.version = kRecordVersion;
  header.kind = static_cast<uint8_t>(RecordKind::kRecord);
  header.step = step;
  header.sequence = sequence;
  header.bytes = 256;
  header.parts = 1;
  header.unwanted = unwanted;
  return header;
}

RecordTrailer TrailerOf(const RecordHeader& header) { return {kTrailerMagic, 0, header.step, header.sequence, header.bytes}; }

TEST(Record, EveryFieldThatIsWrongIsFound) {
  const RecordHeader good = Header(9, 4, 5);
  ASSERT_EQ(FindError(good, TrailerOf(good), 256), nullptr);
  const auto wrong = [&](auto change) {
    RecordHeader header = good;
    RecordTrailer trailer = TrailerOf(good);
    change(&header, &trailer);
    const char* const found = FindError(header, trailer, 256);
    return std::string(found == nullptr ? "" : found);
  };
  EXPECT_EQ(wrong([](RecordHeader* h, RecordTrailer*) { h->magic = 0; }), "a foreign magic number");
  EXPECT_EQ(wrong([](RecordHeader* h, RecordTrailer*) { h->version = 2; }), "another version than 1");
  EXPECT_EQ(wrong([](RecordHeader* h, RecordTrailer*) { h->kind = 2; }), "a kind that no reader gets");
  EXPECT_EQ(wrong([](RecordHeader* h, RecordTrailer*) { h->bytes = 320; }), "another length than its place");
  EXPECT_EQ(wrong([](RecordHeader* h, RecordTrailer*) { h->parts = 2; }), "several parts, which this release does not read");
  EXPECT_EQ(wrong([](RecordHeader* h, RecordTrailer*) { h->sequence = 10; }), "more steps taken than executed");
  EXPECT_EQ(wrong([](RecordHeader*, RecordTrailer* t) { t->magic = 0; }), "no trailer");
  EXPECT_EQ(wrong([](RecordHeader*, RecordTrailer* t) { t->zero = 1; }), "no trailer");
  EXPECT_EQ(wrong([](RecordHeader*, RecordTrailer* t) { t->step = 8; }), "the trailer of another record");
  EXPECT_EQ(wrong([](RecordHeader*, RecordTrailer* t) { t->sequence = 5; }), "the trailer of another record");
  EXPECT_EQ(wrong([](RecordHeader*, RecordTrailer* t) { t->bytes = 64; }), "the trailer of another record");
}

TEST(Account, GapsAreCountedByCause) {
  Account account;
  Counts gap;
  ASSERT_TRUE(account.Add(Header(0, 0, 0), 0, &gap));
  EXPECT_EQ(gap, Counts());
  // Steps 1 to 9 are not here: three were not wanted, four had no room on the device, one none on the host, one this reader missed.
  ASSERT_TRUE(account.Add(Header(10, 3, 3), 1, &gap));
  EXPECT_EQ(gap, (Counts{0, 4, 1, 3, 1}));
  EXPECT_EQ(account.counts(), (Counts{2, 4, 1, 3, 1}));
  EXPECT_EQ(account.counts().Steps(), 11U);
  RecordHeader closing = Header(12, 5, 3);
  closing.kind = static_cast<uint8_t>(RecordKind::kClosing);
  ASSERT_TRUE(account.Add(closing, 2, &gap));
  EXPECT_EQ(gap, (Counts{0, 0, 1, 0, 0}));
  EXPECT_EQ(account.counts().Steps(), 12U);
}

TEST(Account, TheCountOfUnwantedStepsMayWrap) {
  Account account;
  Counts gap;
  ASSERT_TRUE(account.Add(Header(uint64_t{0xffffffff}, 0, 0xffffffff), 0, &gap));
  ASSERT_TRUE(account.Add(Header(uint64_t{0x100000002}, 1, 1), 0, &gap));
  EXPECT_EQ(gap, (Counts{0, 0, 0, 2, 0}));
}

TEST(Account, RecordsThatContradictEachOtherChangeNothing) {
  Account account;
  Counts gap;
  ASSERT_TRUE(account.Add(Header(10, 5, 2), 3, &gap));
  const Counts before = account.counts();
  EXPECT_FALSE(account.Add(Header(10, 6, 2), 3, &gap)) << "a step twice";
  EXPECT_FALSE(account.Add(Header(12, 5, 2), 3, &gap)) << "a sequence twice";
  EXPECT_FALSE(account.Add(Header(12, 6, 2), 2, &gap)) << "fewer drops than before";
  EXPECT_FALSE(account.Add(Header(12, 8, 2), 3, &gap)) << "more taken than executed";
  EXPECT_FALSE(account.Add(Header(12, 6, 2), 4, &gap)) << "more drops than steps that were taken";
  EXPECT_FALSE(account.Add(Header(12, 6, 5), 3, &gap)) << "more that were not wanted than steps";
  EXPECT_EQ(account.counts(), before);
  EXPECT_TRUE(account.Add(Header(11, 6, 2), 3, &gap));
}

}  // namespace
}  // namespace r2cc::observe
