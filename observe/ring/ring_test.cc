#include <gtest/gtest.h>

#include <vector>

#include "observe/ring/ring_rig.h"

namespace r2cc::observe {
namespace {

using Found = RingReader::Found;

std::vector<uint64_t> All(RingReader* reader) {
  std::vector<uint64_t> steps;
  RecordView view;
  while (reader->Next(&view) == Found::kRecord) steps.push_back(RingRig::StepOf(view));
  return steps;
}

TEST(Ring, ARegisteredReaderSeesEachRecordInPlace) {
  RingRig rig;
  const auto reader = rig.Reader();
  ASSERT_TRUE(reader->Register());
  RecordView view;
  EXPECT_EQ(reader->Next(&view), Found::kNothing);
  for (uint64_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(rig.Step(static_cast<uint32_t>(1 + i % 60)));
    ASSERT_EQ(reader->Next(&view), Found::kRecord) << reader->error();
    EXPECT_EQ(RingRig::StepOf(view), i);
    EXPECT_GE(view.bytes.data(), rig.memory->ring().data());
    EXPECT_EQ(view.gap, Counts());
    EXPECT_TRUE(reader->Release());
  }
  rig.writer->Close("");
  EXPECT_EQ(reader->Next(&view), Found::kEnd);
  EXPECT_EQ(reader->counts(), rig.counts);
}

TEST(Ring, WithoutReadersTheLatestRecordsAreKept) {
  RingRig rig;
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(rig.Step());
  const auto reader = rig.Reader();
  RecordView view;
  ASSERT_EQ(reader->Next(&view), Found::kRecord);
  const uint64_t first = RingRig::StepOf(view);
  EXPECT_EQ(view.gap.missed, first);
  const std::vector<uint64_t> rest = All(reader.get());
  ASSERT_FALSE(rest.empty());
  EXPECT_EQ(rest.back(), 99U);
  EXPECT_EQ(first + rest.size(), 99U);
  EXPECT_GT(rest.size(), 8U) << "4096 bytes, records of 256";
  // One that does not register is overtaken, and knows.
  for (int i = 0; i < 50; ++i) ASSERT_TRUE(rig.Step());
  ASSERT_EQ(reader->Next(&view), Found::kRecord);
  EXPECT_EQ(view.gap.missed, RingRig::StepOf(view) - 100);
}

TEST(Ring, ARegisteredReaderKeepsWhatItHasNotReadUntilItStalls) {
  RingRig rig;
  const auto reader = rig.Reader();
  ASSERT_TRUE(reader->Register());
  uint64_t taken = 0;
  while (rig.Step()) ++taken;
  EXPECT_FALSE(rig.Step());
  RecordView view;
  ASSERT_EQ(reader->Next(&view), Found::kRecord);
  EXPECT_EQ(RingRig::StepOf(view), 0U);
  ASSERT_TRUE(reader->Release());
  ASSERT_TRUE(rig.Step());
  for (uint64_t step = 1; step < taken; ++step) {
    ASSERT_EQ(reader->Next(&view), Found::kRecord);
    EXPECT_EQ(RingRig::StepOf(view), step);
  }
  ASSERT_EQ(reader->Next(&view), Found::kRecord);
  EXPECT_EQ(RingRig::StepOf(view), taken + 2);
  EXPECT_EQ(view.gap, (Counts{0, 0, 2, 0, 0}));
  // It stalls with a record in its hands.
  while (rig.Step()) {
  }
  rig.now += RingRig::kTimeout;
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(rig.Step());
  EXPECT_EQ(rig.writer->cut_off(), 1U);
  EXPECT_FALSE(reader->Release()) << "what it held may be overwritten";
  EXPECT_EQ(reader->times_cut_off(), 1U);
  EXPECT_FALSE(reader->registered());
  ASSERT_TRUE(reader->Register());
  All(reader.get());
  rig.writer->Close("");
  EXPECT_EQ(reader->Next(&view), Found::kEnd);
  Counts counts = reader->counts();
  EXPECT_GT(counts.missed, 0U);
  counts.records += counts.missed;
  counts.missed = 0;
  EXPECT_EQ(counts, rig.counts);
}

TEST(Ring, SixteenReadersAndNoMore) {
  RingRig rig;
  std::vector<std::unique_ptr<RingReader>> readers;
  for (size_t i = 0; i < kReadersMax; ++i) {
    readers.push_back(rig.Reader());
    EXPECT_TRUE(readers.back()->Register());
  }
  EXPECT_FALSE(rig.Reader()->Register());
  readers.pop_back();
  EXPECT_TRUE(rig.Reader()->Register());
}

TEST(Ring, ACursorBeyondTheHeadIsALie) {
  RingRig rig;
  const auto reader = rig.Reader();
  ASSERT_TRUE(reader->Register());
  ASSERT_TRUE(rig.Step());
  rig.memory->cursors()->cursors[0].word = CursorWord(1, uint64_t{1} << 30);
  for (int i = 0; i < 40; ++i) EXPECT_TRUE(rig.Step());
  EXPECT_EQ(rig.writer->lied(), 1U);
  EXPECT_EQ(rig.writer->cut_off(), 1U);
  RecordView view;
  EXPECT_EQ(reader->Next(&view), Found::kRecord);
  EXPECT_EQ(reader->times_cut_off(), 1U);
}

TEST(Ring, AReaderThatWasCutOffCannotMoveItsSuccessor) {
  RingRig rig;
  const auto first = rig.Reader(), second = rig.Reader();
  ASSERT_TRUE(first->Register());
  while (rig.Step()) {
  }
  rig.now += RingRig::kTimeout;
  ASSERT_TRUE(rig.Step());
  ASSERT_EQ(rig.writer->cut_off(), 1U);
  ASSERT_TRUE(second->Register());
  const uint64_t word = rig.memory->cursors()->cursors[0].word;
  EXPECT_FALSE(first->Release());
  first->Unregister();
  EXPECT_EQ(rig.memory->cursors()->cursors[0].word, word);
  EXPECT_TRUE(second->Release());
}

TEST(Ring, PositionsOfCursorsMayWrap) {
  const uint64_t oldest = 3 * kPositionSpan - 128;
  EXPECT_EQ(PositionOf(CursorWord(7, oldest + 256), oldest), oldest + 256);
  EXPECT_EQ(PositionOf(CursorWord(7, oldest), oldest), oldest);
  EXPECT_EQ(PositionOf(CursorWord(7, oldest - 64), oldest), oldest);
  EXPECT_EQ(GenerationOf(CursorWord(0x12345, 64)), 0x2345U);
}

TEST(Ring, SeveralRecordsAreOpenAndCommittedInOrder) {
  RingRig rig;
  uint8_t* const a = rig.writer->Reserve(256, rig.now);
  uint8_t* const b = rig.writer->Reserve(512, rig.now);
  ASSERT_NE(a, nullptr);
  ASSERT_EQ(b, a + 256 + 64);
  rig.writer->Abandon();
  EXPECT_EQ(rig.writer->Reserve(128, rig.now), b);
  EXPECT_EQ(rig.writer->Reserve(4096, rig.now), nullptr) << "larger than the ring with its frame";
  EXPECT_EQ(rig.writer->Reserve(3712, rig.now), nullptr) << "what is open is never overwritten";
}

TEST(Ring, ALargerRecordThanTheRingIsNone) {
  RingRig rig;
  EXPECT_FALSE(rig.Step(600));
  EXPECT_TRUE(rig.Step(8));
}

TEST(Ring, AProducerThatDiesBetweenCountAndCommitLeavesOneUnfinished) {
  RingRig rig;
  ASSERT_TRUE(rig.Step());
  ++rig.counts.records;
  rig.writer->Publish(rig.counts);  // and nothing more
  const auto reader = rig.Reader();
  EXPECT_EQ(All(reader.get()), (std::vector<uint64_t>{0}));
  RecordView view;
  EXPECT_EQ(reader->Next(&view), Found::kNothing);
  reader->AssumeClosed();
  EXPECT_EQ(reader->Next(&view), Found::kEnd);
  EXPECT_EQ(view.gap, (Counts{0, 0, 0, 0, 1}));
}

TEST(Ring, AFailedProducerGivesItsCause) {
  RingRig rig;
  rig.writer->Close("the device is gone\n");
  const auto reader = rig.Reader();
  RecordView view;
  EXPECT_EQ(reader->Next(&view), Found::kEnd);
  EXPECT_EQ(reader->life(), Life::kFailed);
  EXPECT_EQ(reader->Cause(), "the device is gone?");
}

TEST(HostileRing, NoValueOfItEndsTheReaderOrGivesItBytesOutside) {
  // Each word of frame, header and trailer, and of the control's positions and layouts, with values that somebody would try.
  const uint64_t values[] = {0, 1, 63, 64, 4096, 1U << 31, ~uint64_t{0}, ~uint64_t{63}, uint64_t{1} << 62};
  size_t broken = 0;
  for (size_t word = 0;; ++word) {
    for (uint64_t value : values) {
      RingRig rig;
      for (int i = 0; i < 3; ++i) ASSERT_TRUE(rig.Step(2));
      std::vector<uint64_t*> words = {&rig.memory->control()->head,         &rig.memory->control()->oldest,
                                      &rig.memory->control()->reclaiming,   &rig.memory->control()->life,
                                      &rig.memory->control()->records,      &rig.memory->control()->dropped_device,
                                      &rig.memory->control()->dropped_host, &rig.memory->control()->layouts_end};
      for (size_t i = 0; i < 40; ++i) words.push_back(reinterpret_cast<uint64_t*>(rig.memory->ring().data()) + i);
      for (size_t i = 0; i < 8; ++i) words.push_back(reinterpret_cast<uint64_t*>(rig.memory->control()->layouts) + i);
      if (word >= words.size()) {
        EXPECT_GT(broken, 100U);
        return;
      }
      *words[word] = value;
      rig.memory->control()->life = word == 3 ? value : 1;
      const auto reader = rig.Reader();
      if (value % 2 == 0) reader->Register();
      RecordView view;
      for (int i = 0; i < 10; ++i) {
        const Found found = reader->Next(&view);
        if (found == Found::kBroken) {
          ++broken;
          EXPECT_NE(reader->error(), "");
          EXPECT_EQ(reader->error().find('\n'), std::string::npos);
        }
        if (found != Found::kRecord) continue;
        EXPECT_EQ(view.header.bytes, view.bytes.size());
        for (const Slot& slot : view.slots->taps) EXPECT_LE(slot.offset + slot.bytes, view.bytes.size());
      }
    }
  }
}

}  // namespace
}  // namespace r2cc::observe
