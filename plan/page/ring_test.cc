#include "plan/page/ring.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <set>
#include <thread>
#include <utility>

#include "plan/page/ring_layout.h"

namespace r2cc::plan {
namespace {

EvidenceRecord RecordOf(uint64_t number) {
  EvidenceRecord record{};
  record.kind = static_cast<uint32_t>(EvidenceRecordKind::kRailTotals);
  record.time_ns = static_cast<int64_t>(number);
  record.local_rail = static_cast<uint32_t>(number % 4);
  record.bytes = number;
  record.received_bytes = ~number;
  std::strcpy(record.peer_node, "node1");
  std::strcpy(record.peer_nic, "nic2");
  return record;
}

void Share(EvidenceRecord* record, EvidenceRecordKind kind, uint32_t permille) {
  record->kind = static_cast<uint32_t>(kind);
  record->share_permille = permille;
}

// Both ends of one ring, and the memory as a hostile producer sees it.
class Ring : public testing::Test {
 protected:
  void SetUp() override {
    std::string error;
    reader_ = EvidenceRingReader::Create(&error);
    ASSERT_NE(reader_, nullptr) << error;
    writer_ = EvidenceRingWriter::Open(dup(reader_->fd()), &error);
    ASSERT_NE(writer_, nullptr) << error;
    void* memory = mmap(nullptr, sizeof(RingLayout), PROT_READ | PROT_WRITE, MAP_SHARED, reader_->fd(), 0);
    ASSERT_NE(memory, MAP_FAILED);
    raw_ = static_cast<RingLayout*>(memory);
  }
  void TearDown() override { munmap(raw_, sizeof(RingLayout)); }

  std::unique_ptr<EvidenceRingReader> reader_;
  std::unique_ptr<EvidenceRingWriter> writer_;
  RingLayout* raw_ = nullptr;
};

TEST(Cause, EveryCauseHasItsOwnName) {
  std::set<std::string> names;
  for (uint32_t i = 0; i <= static_cast<uint32_t>(kEvidenceCauseNewest); ++i) names.insert(CauseName(static_cast<EvidenceCause>(i)));
  EXPECT_EQ(names.size(), 12u);
  EXPECT_EQ(names.count("unknown"), 0u);
  EXPECT_STREQ(CauseName(static_cast<EvidenceCause>(77)), "unknown");
}

TEST_F(Ring, GivesBackWhatWasPutInOrder) {
  for (uint64_t i = 0; i < 10; ++i) EXPECT_TRUE(writer_->Put(RecordOf(i)));
  std::vector<EvidenceRecord> out;
  EXPECT_EQ(reader_->Take(3, &out), 3);
  EXPECT_EQ(reader_->Take(100, &out), 7);
  EXPECT_EQ(reader_->Take(100, &out), 0);
  ASSERT_EQ(out.size(), 10u);
  for (uint64_t i = 0; i < 10; ++i) {
    const EvidenceRecord expected = RecordOf(i);
    EXPECT_EQ(std::memcmp(&out[i], &expected, sizeof(expected)), 0) << i;
  }
  EXPECT_EQ(reader_->garbled(), 0u);
}

TEST_F(Ring, FullRingDropsTheNewestAndCounts) {
  for (uint64_t i = 0; i < kRingRecords; ++i) ASSERT_TRUE(writer_->Put(RecordOf(i)));
  EXPECT_FALSE(writer_->Put(RecordOf(1)));
  EXPECT_FALSE(writer_->Put(RecordOf(1)));
  EXPECT_EQ(reader_->dropped(), 2u);
  std::vector<EvidenceRecord> out;
  EXPECT_EQ(reader_->Take(1, &out), 1);
  EXPECT_TRUE(writer_->Put(RecordOf(kRingRecords)));
  EXPECT_FALSE(writer_->Put(RecordOf(1)));
  EXPECT_EQ(reader_->Take(kRingRecords + 1, &out), static_cast<int>(kRingRecords));
  for (uint64_t i = 0; i < out.size(); ++i) ASSERT_EQ(out[i].bytes, i);
}

TEST_F(Ring, GarbledRecordsAreSkippedAndCounted) {
  auto put = [this](auto change) {
    EvidenceRecord record = RecordOf(1);
    change(record);
    ASSERT_TRUE(writer_->Put(record));
  };
  put([](EvidenceRecord& r) { r.kind = 0; });
  put([](EvidenceRecord& r) { r.kind = static_cast<uint32_t>(kEvidenceRecordKindNewest) + 1; });
  put([](EvidenceRecord& r) { r.cause = 12; });
  put([](EvidenceRecord& r) { r.time_ns = -1; });
  put([](EvidenceRecord& r) { r.local_rail = 32; });
  put([](EvidenceRecord& r) { r.peer_node[0] = '\n'; });
  put([](EvidenceRecord& r) { r.peer_nic[1] = '\xff'; });
  put([](EvidenceRecord& r) { Share(&r, EvidenceRecordKind::kRailSlow, 1001); });
  put([](EvidenceRecord& r) { Share(&r, EvidenceRecordKind::kRailSteady, UINT32_MAX); });
  put([](EvidenceRecord&) {});
  std::vector<EvidenceRecord> out;
  EXPECT_EQ(reader_->Take(4, &out), 4) << "garbled ones count too: they cost as much";
  EXPECT_EQ(reader_->Take(100, &out), 6);
  EXPECT_EQ(out.size(), 1u);
  EXPECT_EQ(reader_->garbled(), 9u);
}

TEST_F(Ring, ASlowRailsShareTakesTheIncarnationsPlace) {
  for (const auto& [kind, permille] :
       {std::pair(EvidenceRecordKind::kRailSlow, 0u), {EvidenceRecordKind::kRailSlow, 250u}, {EvidenceRecordKind::kRailSteady, 1000u}}) {
    EvidenceRecord record = RecordOf(1);
    Share(&record, kind, permille);
    ASSERT_TRUE(writer_->Put(record));
    std::vector<EvidenceRecord> out;
    ASSERT_EQ(reader_->Take(1, &out), 1);
    EXPECT_EQ(out[0].kind, static_cast<uint32_t>(kind));
    EXPECT_EQ(out[0].share_permille, permille);
  }
  EvidenceRecord up = RecordOf(1);
  up.kind = static_cast<uint32_t>(EvidenceRecordKind::kLinkUp);
  up.incarnation = UINT32_MAX;  // a number like any other
  ASSERT_TRUE(writer_->Put(up));
  std::vector<EvidenceRecord> out;
  EXPECT_EQ(reader_->Take(1, &out), 1);
}

TEST_F(Ring, ANewCauseReachesAReaderThatKnowsIt) {
  EvidenceRecord record = RecordOf(1);
  record.kind = static_cast<uint32_t>(EvidenceRecordKind::kProofFailed);
  record.cause = static_cast<uint32_t>(EvidenceCause::kLargeLost);
  record.bytes = 1500;
  ASSERT_TRUE(writer_->Put(record));
  std::vector<EvidenceRecord> out;
  ASSERT_EQ(reader_->Take(1, &out), 1);
  EXPECT_EQ(std::memcmp(&out[0], &record, sizeof(record)), 0);
}

TEST_F(Ring, ADaemonOf020GetsNoKindThatItDoesNotKnow) {
  EXPECT_TRUE(writer_->reads_numbers());
  raw_->newest_kind = 0;  // as 0.2.0 makes rings
  std::string error;
  writer_ = EvidenceRingWriter::Open(dup(reader_->fd()), &error);
  ASSERT_NE(writer_, nullptr) << error;
  EXPECT_FALSE(writer_->reads_numbers());
  for (uint32_t kind = 1; kind <= static_cast<uint32_t>(kEvidenceRecordKindNewest); ++kind) {
    EvidenceRecord record = RecordOf(1);
    record.kind = kind;
    EXPECT_TRUE(writer_->Put(record));
  }
  std::vector<EvidenceRecord> out;
  EXPECT_EQ(reader_->Take(100, &out), static_cast<int>(kEvidenceRecordKindOf020));
  EXPECT_EQ(reader_->garbled(), 0u);
}

TEST_F(Ring, ADaemonOf020GetsSilenceInstead) {
  raw_->newest_cause = 0;  // as 0.2.0 makes rings
  std::string error;
  writer_ = EvidenceRingWriter::Open(dup(reader_->fd()), &error);
  ASSERT_NE(writer_, nullptr) << error;
  EvidenceRecord record = RecordOf(1);
  record.kind = static_cast<uint32_t>(EvidenceRecordKind::kLinkFenced);
  const std::pair<EvidenceCause, EvidenceCause> causes[] = {{EvidenceCause::kStalled, EvidenceCause::kSilence},
                                                            {EvidenceCause::kLargeLost, EvidenceCause::kSilence},
                                                            {EvidenceCause::kRetired, EvidenceCause::kRetired},
                                                            {EvidenceCause::kLinkDown, EvidenceCause::kLinkDown}};
  for (const auto& [put, taken] : causes) {
    record.cause = static_cast<uint32_t>(put);
    ASSERT_TRUE(writer_->Put(record));
    std::vector<EvidenceRecord> out;
    ASSERT_EQ(reader_->Take(1, &out), 1) << CauseName(put);
    EXPECT_EQ(out[0].cause, static_cast<uint32_t>(taken));
  }
}

TEST_F(Ring, UnendedStringsAreCut) {
  EvidenceRecord record = RecordOf(1);
  std::memset(record.peer_node, 'n', sizeof(record.peer_node));
  std::memset(record.peer_nic, 'c', sizeof(record.peer_nic));
  ASSERT_TRUE(writer_->Put(record));
  std::vector<EvidenceRecord> out;
  ASSERT_EQ(reader_->Take(1, &out), 1);
  EXPECT_EQ(std::string(out[0].peer_node), std::string(63, 'n'));
  EXPECT_EQ(std::string(out[0].peer_nic), std::string(23, 'c'));
}

TEST_F(Ring, ImpossibleIndicesAreClampedAndTheRingGoesOn) {
  std::vector<EvidenceRecord> out;
  for (uint64_t index : {uint64_t{kRingRecords} + 1, ~uint64_t{0}, uint64_t{1} << 63, uint64_t{0}}) {
    out.clear();
    const uint64_t before = reader_->garbled();
    raw_->put = index;
    EXPECT_EQ(reader_->Take(1 << 30, &out), 0);
    EXPECT_EQ(reader_->garbled(), before + 1);
    EXPECT_EQ(raw_->taken, index);
  }
  EXPECT_TRUE(writer_->Put(RecordOf(3)));
  EXPECT_EQ(reader_->Take(10, &out), 1);
}

// A ring that claims a full load and has written nothing: reading it takes no memory from the reader.
TEST_F(Ring, HolesAreReadAndNotAllocated) {
  struct stat before {
  }, after{};
  ASSERT_EQ(fstat(reader_->fd(), &before), 0);
  raw_->put = kRingRecords;
  std::vector<EvidenceRecord> out;
  EXPECT_EQ(reader_->Take(1 << 30, &out), static_cast<int>(kRingRecords));
  EXPECT_TRUE(out.empty());
  ASSERT_EQ(fstat(reader_->fd(), &after), 0);
  EXPECT_LE(after.st_blocks, before.st_blocks + 8) << "512 bytes each";
}

TEST_F(Ring, ProducerTreatsAnImpossibleIndexAsFull) {
  raw_->taken = 5;  // more than was ever put
  EXPECT_FALSE(writer_->Put(RecordOf(1)));
  raw_->taken = 0;
  EXPECT_TRUE(writer_->Put(RecordOf(1)));
}

TEST_F(Ring, CountsWrapWithoutAGap) {
  raw_->put = ~uint64_t{0} - 2;
  raw_->taken = ~uint64_t{0} - 2;
  std::vector<EvidenceRecord> out;
  reader_->Take(10, &out);  // resyncs
  std::string error;
  auto writer = EvidenceRingWriter::Open(dup(reader_->fd()), &error);
  for (uint64_t i = 0; i < 10; ++i) ASSERT_TRUE(writer->Put(RecordOf(i)));
  EXPECT_EQ(reader_->Take(100, &out), 10);
  for (uint64_t i = 0; i < 10; ++i) EXPECT_EQ(out[i].bytes, i);
}

TEST(RingOpen, RefusesWhatIsNotARing) {
  std::string error;
  EXPECT_EQ(EvidenceRingWriter::Open(-1, &error), nullptr);
  EXPECT_EQ(EvidenceRingWriter::Open(open("/dev/null", O_RDWR | O_CLOEXEC), &error), nullptr);
  struct Case {
    uint64_t magic;
    uint32_t version;
    size_t bytes;
    int seals;
    const char* expected;
  };
  const int good = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  const Case cases[] = {
      {kRingMagic, kRingVersion, sizeof(RingLayout), good, ""},
      {kRingMagic + 1, kRingVersion, sizeof(RingLayout), good, "magic"},
      {kRingMagic, 9, sizeof(RingLayout), good, "ring version 9, this release reads 1"},
      {kRingMagic, kRingVersion, sizeof(RingLayout) - 8, good, "bytes instead of"},
      {kRingMagic, kRingVersion, sizeof(RingLayout), F_SEAL_GROW | F_SEAL_SEAL, "not sealed"},
      {kRingMagic, kRingVersion, sizeof(RingLayout), 0, "not sealed"},
  };
  for (const Case& c : cases) {
    const int fd = memfd_create("ring", MFD_ALLOW_SEALING | MFD_CLOEXEC);
    ASSERT_EQ(ftruncate(fd, static_cast<off_t>(c.bytes)), 0);
    ASSERT_EQ(pwrite(fd, &c.magic, 8, 0), 8);
    ASSERT_EQ(pwrite(fd, &c.version, 4, 8), 4);
    ASSERT_EQ(fcntl(fd, F_ADD_SEALS, c.seals), 0);
    auto writer = EvidenceRingWriter::Open(fd, &error);
    EXPECT_EQ(writer != nullptr, *c.expected == '\0') << error;
    EXPECT_NE(error.find(c.expected), std::string::npos) << error;
  }
}

TEST_F(Ring, StressTwoThreads) {
  constexpr uint64_t kCount = 200'000;
  std::thread producer([this] {
    for (uint64_t i = 0; i < kCount;) {
      if (writer_->Put(RecordOf(i))) {
        ++i;
      } else {
        std::this_thread::yield();
      }
    }
  });
  uint64_t next = 0;
  std::vector<EvidenceRecord> out;
  while (next < kCount) {
    out.clear();
    if (reader_->Take(64, &out) == 0) std::this_thread::yield();
    for (const EvidenceRecord& record : out) {
      ASSERT_EQ(record.bytes, next);
      ASSERT_EQ(record.received_bytes, ~next);
      ++next;
    }
  }
  producer.join();
  EXPECT_EQ(reader_->garbled(), 0u);
}

TEST_F(Ring, FuzzGarbledMemory) {
  std::mt19937_64 random(4);
  std::vector<EvidenceRecord> out;
  uint64_t taken = 0;
  for (int i = 0; i < 100'000; ++i) {
    writer_->Put(RecordOf(static_cast<uint64_t>(i)));
    for (uint64_t flips = random() % 4; flips > 0; --flips)
      raw_->records[random() % 64][random() % kRingRecordWords] ^= 1ull << (random() % 64);
    if (random() % 16 == 0) raw_->put = random() % 8 == 0 ? random() : raw_->put + random() % 8;
    if (random() % 64 == 0) raw_->taken = random();
    out.clear();
    const int count = reader_->Take(16, &out);
    ASSERT_GE(static_cast<size_t>(count), out.size());
    ASSERT_LE(count, 16);
    taken += out.size();
    for (const EvidenceRecord& record : out) {
      ASSERT_LT(strnlen(record.peer_node, 64), 64u);
      ASSERT_LT(strnlen(record.peer_nic, 24), 24u);
      ASSERT_LT(record.local_rail, 32u);
    }
  }
  EXPECT_GT(taken, 0u);
  EXPECT_GT(reader_->garbled(), 0u);
}

TEST_F(Ring, ACauseIsTextForAPerson) {
  EXPECT_EQ(CauseText(EvidenceCause::kStalled, StalledDetail(1, 1)), "its connection carries nothing");
  EXPECT_EQ(CauseText(EvidenceCause::kStalled, StalledDetail(1, 4)), "one of 4 connections carries nothing");
  EXPECT_EQ(CauseText(EvidenceCause::kStalled, StalledDetail(2, 4)), "2 of 4 connections carry nothing");
  EXPECT_EQ(CauseText(EvidenceCause::kLargeLost, 1500), "packets over 1500 bytes are lost");
  // Numbers from a ring may be anything.
  EXPECT_EQ(CauseText(EvidenceCause::kStalled, 0), "some of its connections carry nothing");
  EXPECT_EQ(CauseText(EvidenceCause::kStalled, StalledDetail(5, 4)), "some of its connections carry nothing");
  EXPECT_EQ(CauseText(EvidenceCause::kSilence, 7), "the other end does not answer on it");
  for (uint32_t i = 0; i <= static_cast<uint32_t>(kEvidenceCauseNewest); ++i) {
    const auto cause = static_cast<EvidenceCause>(i);
    EXPECT_EQ(CauseText(cause, 0).find('-'), std::string::npos) << "a code word: " << CauseText(cause, 0);
  }
  EXPECT_EQ(CauseText(static_cast<EvidenceCause>(77), 0), "unknown");
}

}  // namespace
}  // namespace r2cc::plan
