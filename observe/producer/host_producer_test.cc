#include "observe/producer/host_producer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "observe/producer/self_check.h"
#include "observe/ring/ring_reader.h"

namespace r2cc::observe {
namespace {

using Began = HostProducer::Began;
using Found = RingReader::Found;

struct Rig {
  explicit Rig(ProducerOptions options = {.run = "producer", .ring_bytes = 8192}) {
    producer = HostProducer::Open(options, &clock, &error);
    EXPECT_NE(producer, nullptr) << error;
  }
  std::unique_ptr<RingReader> Reader() {
    RunMemory* const memory = producer->memory();
    return std::make_unique<RingReader>(memory->control(), memory->ring(), memory->cursors(), 1);
  }
  uint32_t Add(std::vector<Tap> taps, uint32_t rows_most = 0, std::vector<Tap> tags = {}) {
    Layout layout;
    layout.taps = std::move(taps);
    layout.tags = std::move(tags);
    layout.rows_most = rows_most;
    uint32_t id = 99;
    EXPECT_TRUE(producer->AddLayout(layout, &id, &error)) << error;
    return id;
  }

  SteadyClock clock;
  std::string error;
  std::unique_ptr<HostProducer> producer;
};

template <typename T>
std::vector<T> Values(const RecordView& view, size_t tap) {
  const Slot& slot = view.slots->taps[tap];
  std::vector<T> values(slot.bytes / sizeof(T));
  std::memcpy(values.data(), view.bytes.data() + slot.offset, slot.bytes);
  return values;
}

TEST(HostProducer, CopiesRowsOddSizesAndStrides) {
  Rig rig;
  const uint32_t id = rig.Add({{"rows", Operator::kCopy, Dtype::kU8, 0, true, {3}},
                               {"all", Operator::kCopy, Dtype::kU16, 1, false, {2, 3}},
                               {"turned", Operator::kCopy, Dtype::kU16, 1, false, {3, 2}},
                               {"none", Operator::kCopy, Dtype::kF32, 2, false, {0, 4}}},
                              5);
  std::vector<uint8_t> rows(15);
  std::iota(rows.begin(), rows.end(), uint8_t{0});
  const std::vector<uint16_t> all = {1, 2, 3, 4, 5, 6};
  const uint32_t indices[] = {4, 0, 4};
  ASSERT_EQ(rig.producer->Begin(id, Phase::kDecode, {3, indices, 4}, &rig.error), Began::kTaken) << rig.error;
  const uint64_t of_rows[] = {5, 3}, of_all[] = {2, 3}, of_turned[] = {3, 2}, of_none[] = {0, 4};
  const int64_t turned[] = {2, 6};
  EXPECT_TRUE(rig.producer->Copy(false, 0, {rows.data(), of_rows, {}}, &rig.error)) << rig.error;
  EXPECT_TRUE(rig.producer->Copy(false, 1, {all.data(), of_all, {}}, &rig.error)) << rig.error;
  EXPECT_TRUE(rig.producer->Copy(false, 2, {all.data(), of_turned, turned}, &rig.error)) << rig.error;
  EXPECT_TRUE(rig.producer->Copy(false, 3, {nullptr, of_none, {}}, &rig.error)) << rig.error;
  ASSERT_TRUE(rig.producer->Finish(&rig.error)) << rig.error;
  const auto reader = rig.Reader();
  RecordView view;
  ASSERT_EQ(reader->Next(&view), Found::kRecord) << reader->error();
  EXPECT_EQ(view.header.rows, 3U);
  EXPECT_EQ(Values<uint8_t>(view, 0), (std::vector<uint8_t>{12, 13, 14, 0, 1, 2, 12, 13, 14}));
  EXPECT_EQ(Values<uint16_t>(view, 1), all);
  EXPECT_EQ(Values<uint16_t>(view, 2), (std::vector<uint16_t>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(view.slots->taps[3].bytes, 0U);
}

TEST(HostProducer, StatisticsAndHash) {
  Rig rig;
  const uint32_t id = rig.Add({{"s", Operator::kStats, Dtype::kF32, 0, true, {4}},
                               {"h", Operator::kHash, Dtype::kF32, 0, true, {4}},
                               {"b", Operator::kStats, Dtype::kBf16, 0, false, {2}}},
                              2);
  std::vector<float> x = {1, -3, NAN, INFINITY, NAN, NAN, NAN, NAN};
  const std::vector<uint16_t> b = {0x3f80, 0xc000};  // 1, -2
  const uint64_t shape[] = {2, 4}, of_b[] = {2};
  std::vector<uint64_t> hashes;
  const auto reader = rig.Reader();
  RecordView view;
  for (int i = 0; i < 3; ++i) {
    if (i == 2) x[1] = -4;
    ASSERT_EQ(rig.producer->Begin(id, Phase::kDecode, {2}, &rig.error), Began::kTaken);
    for (size_t tap : {0, 1}) ASSERT_TRUE(rig.producer->Copy(false, tap, {x.data(), shape, {}}, &rig.error)) << rig.error;
    ASSERT_TRUE(rig.producer->Copy(false, 2, {b.data(), of_b, {}}, &rig.error)) << rig.error;
    ASSERT_TRUE(rig.producer->Finish(&rig.error)) << rig.error;
    ASSERT_EQ(reader->Next(&view), Found::kRecord) << reader->error();
    hashes.push_back(Values<uint64_t>(view, 1)[0]);
  }
  const std::vector<StatsRow> s = Values<StatsRow>(view, 0), of_bf16 = Values<StatsRow>(view, 2);
  EXPECT_EQ(s[0].least, -4);
  EXPECT_EQ(s[0].greatest, 1);
  EXPECT_EQ(s[0].mean, -1.5);
  EXPECT_FLOAT_EQ(s[0].rms, std::sqrt(8.5F));
  EXPECT_EQ(s[0].nans, 1U);
  EXPECT_EQ(s[0].infinities, 1U);
  EXPECT_EQ(s[1].nans, 4U);
  EXPECT_TRUE(std::isnan(s[1].mean));
  EXPECT_EQ(of_bf16[0].least, -2);
  EXPECT_EQ(of_bf16[0].greatest, 1);
  EXPECT_EQ(hashes[0], hashes[1]);
  EXPECT_NE(hashes[1], hashes[2]);
}

TEST(HostProducer, SmallFloats) {
  EXPECT_EQ(ValueOf(Dtype::kF16, 0x3c00), 1);
  EXPECT_EQ(ValueOf(Dtype::kF16, 0x0001), std::ldexp(1.0, -24));
  EXPECT_EQ(ValueOf(Dtype::kF16, 0xfc00), -INFINITY);
  EXPECT_EQ(ValueOf(Dtype::kF8e4m3, 0x7e), 448);
  EXPECT_TRUE(std::isnan(ValueOf(Dtype::kF8e4m3, 0x7f)));
  EXPECT_EQ(ValueOf(Dtype::kF8e5m2, 0x7b), 57344);
  EXPECT_EQ(ValueOf(Dtype::kF8e5m2, 0x7c), INFINITY);
  EXPECT_EQ(ValueOf(Dtype::kI8, 0xff), -1);
}

TEST(HostProducer, OneValueThatChangesAlwaysChangesTheHash) {
  for (uint64_t index : {0, 1, 1000})
    for (uint64_t a = 0; a < 300; ++a) EXPECT_NE(HashTerm(a, index), HashTerm(a + 1, index));
  EXPECT_NE(HashTerm(0, 1) + HashTerm(1, 0), HashTerm(0, 0) + HashTerm(1, 1)) << "the place counts";
}

TEST(HostProducer, GroupsAndScheduleCountWhatIsNotWanted) {
  Rig rig({.run = "producer", .ring_bytes = 8192, .every = 2, .phases = static_cast<uint64_t>(Phase::kDecode)});
  const uint32_t id = rig.Add({{"a", Operator::kCopy, Dtype::kU8, 0, false, {}}, {"b", Operator::kCopy, Dtype::kU8, 1, false, {}}});
  const uint8_t byte = 7;
  const auto step = [&](Phase phase) {
    const Began began = rig.producer->Begin(id, phase, {}, &rig.error);
    for (size_t i : {0, 1}) EXPECT_TRUE(rig.producer->Copy(false, i, {&byte, {}, {}}, &rig.error));
    EXPECT_TRUE(rig.producer->Finish(&rig.error)) << rig.error;
    return began;
  };
  EXPECT_EQ(step(Phase::kPrefill), Began::kNotTaken);
  EXPECT_EQ(step(Phase::kDecode), Began::kNotTaken);
  EXPECT_EQ(step(Phase::kDecode), Began::kTaken);
  rig.producer->SetGroups(2);
  EXPECT_EQ(step(Phase::kDecode), Began::kNotTaken);
  EXPECT_EQ(step(Phase::kDecode), Began::kTaken);
  rig.producer->Close();
  const auto reader = rig.Reader();
  RecordView view;
  ASSERT_EQ(reader->Next(&view), Found::kRecord);
  EXPECT_EQ(view.gap, (Counts{0, 0, 0, 2, 0}));
  ASSERT_EQ(reader->Next(&view), Found::kRecord);
  EXPECT_EQ(view.header.groups, 2U);
  EXPECT_EQ(view.slots->taps[0].bytes, 0U);
  EXPECT_EQ(view.slots->taps[1].bytes, 1U);
  EXPECT_EQ(reader->Next(&view), Found::kEnd);
  EXPECT_EQ(reader->counts(), rig.producer->counts());
}

TEST(HostProducer, AFullRingDropsAndBlocksNoLongerThanItsBound) {
  for (const Nanos block : {Nanos{0}, 20 * kNanosPerMs}) {
    Rig rig({.run = "producer", .ring_bytes = 8192, .block_ns = block});
    const uint32_t id = rig.Add({{"a", Operator::kCopy, Dtype::kU8, 0, false, {1000}}});
    const std::vector<uint8_t> bytes(1000);
    const uint64_t shape[] = {1000};
    const auto reader = rig.Reader();
    ASSERT_TRUE(reader->Register());
    const Nanos begin = rig.clock.Now();
    for (int i = 0; i < 10; ++i) {
      rig.producer->Begin(id, Phase::kDecode, {}, &rig.error);
      ASSERT_TRUE(rig.producer->Copy(false, 0, {bytes.data(), shape, {}}, &rig.error));
      ASSERT_TRUE(rig.producer->Finish(&rig.error));
    }
    EXPECT_EQ(rig.producer->counts(), (Counts{6, 0, 4, 0, 0}));
    EXPECT_GE(rig.clock.Now() - begin, 4 * block);
    rig.producer->Close();
    RecordView view;
    for (int i = 0; i < 6; ++i) ASSERT_EQ(reader->Next(&view), Found::kRecord);
    EXPECT_EQ(reader->Next(&view), Found::kEnd);
    EXPECT_EQ(view.gap, (Counts{0, 0, 4, 0, 0})) << "drops after the last record are known, too";
    EXPECT_EQ(reader->counts(), rig.producer->counts());
  }
}

TEST(HostProducer, AStepThatDoesNotEndIsCountedAndLeavesNoRecord) {
  Rig rig;
  const uint32_t id = rig.Add({{"a", Operator::kCopy, Dtype::kU8, 0, false, {}}, {"b", Operator::kCopy, Dtype::kU8, 0, false, {}}});
  const uint8_t byte = 7;
  ASSERT_EQ(rig.producer->Begin(id, Phase::kDecode, {}, &rig.error), Began::kTaken);
  ASSERT_EQ(rig.producer->Begin(id, Phase::kDecode, {}, &rig.error), Began::kTaken);
  ASSERT_TRUE(rig.producer->Copy(false, 0, {&byte, {}, {}}, &rig.error));
  EXPECT_FALSE(rig.producer->Finish(&rig.error));
  EXPECT_EQ(rig.error, "b: it was not copied in step 1");
  EXPECT_EQ(rig.producer->counts(), (Counts{0, 0, 0, 2, 0}));
  RecordView view;
  EXPECT_EQ(rig.Reader()->Next(&view), Found::kNothing);
}

TEST(HostProducer, OneLineForWhatIsRefused) {
  Rig rig;
  Layout large;
  large.taps = {{"a", Operator::kCopy, Dtype::kU8, 0, false, {5000}}};
  uint32_t id = 0;
  EXPECT_FALSE(rig.producer->AddLayout(large, &id, &rig.error));
  EXPECT_EQ(rig.error,
            "a step has up to 5184 bytes and must fit twice into the host's ring of 8192: raise host_mib, or take fewer taps, rows, or "
            "statistics instead of copies");
  id = rig.Add({{"a", Operator::kCopy, Dtype::kU8, 0, true, {3}}}, 4);
  const auto refused = [&](const RowChoice& rows, std::span<const uint64_t> shape, std::span<const int64_t> strides = {}) {
    static const uint8_t bytes[64] = {};
    rig.error.clear();
    if (rig.producer->Begin(id, Phase::kDecode, rows, &rig.error) == Began::kTaken) {
      EXPECT_FALSE(rig.producer->Copy(false, 0, {bytes, shape, strides}, &rig.error));
    }
    return rig.error;
  };
  const uint64_t four_of_three[] = {4, 3}, two_of_three[] = {2, 3}, four_of_two[] = {4, 2};
  const int64_t one_stride[] = {3};
  const uint64_t far[] = {0, uint64_t{1} << 63};
  EXPECT_EQ(refused({5}, four_of_three), "5 rows, the layout has at most 4; indices have 4 or 8 bytes");
  EXPECT_EQ(refused({3}, two_of_three), "a: it has 2 rows, and row 2 is asked for");
  EXPECT_EQ(refused({2, far, 8}, four_of_three), "a: it has 4 rows, and row 9223372036854775808 is asked for");
  EXPECT_EQ(refused({2}, four_of_two), "a: its shape is [4, 2]; its layout has [rows, 3]");
  EXPECT_EQ(refused({2}, four_of_three, one_stride), "a: 1 strides for 2 dimensions");
  EXPECT_EQ(rig.producer->Begin(7, Phase::kDecode, {}, &rig.error), Began::kRefused);
  EXPECT_EQ(rig.error, "there is no layout 7");
  rig.producer->Close();
  EXPECT_EQ(rig.producer->Begin(id, Phase::kDecode, {}, &rig.error), Began::kRefused);
  EXPECT_EQ(rig.error, "the producer is closed");
  EXPECT_EQ(HostProducer::Open({.run = "x", .every = 0}, &rig.clock, &rig.error), nullptr);
  EXPECT_EQ(rig.error, "no step would ever be wanted: every is 0, phases are 3");
}

TEST(HostProducer, StridesThatTakeMoreLoopsAreRefused) {
  const Tap tap{"a", Operator::kCopy, Dtype::kU8, 0, false, {2, 2, 2, 2, 2}};
  const uint64_t shape[] = {2, 2, 2, 2, 2};
  TapWork work;
  std::string error;
  const int64_t with_holes[] = {1000, 300, 90, 20, 1}, too_many[] = {1000, 300, 90, 20, 3};
  EXPECT_FALSE(MakeTapWork(tap, 1, shape, with_holes, &work, &error));
  EXPECT_EQ(error, "a: its strides take 4 loops a row, at most 3: make it contiguous");
  EXPECT_FALSE(MakeTapWork(tap, 1, shape, too_many, &work, &error));
  const int64_t three[] = {1000, 300, 90, 2, 1};
  EXPECT_TRUE(MakeTapWork(tap, 1, shape, three, &work, &error));
  EXPECT_EQ(work.run_bytes, 4U);
  EXPECT_EQ(work.RowBytes(), 32U);
}

TEST(SelfCheck, ATensorThatChangesBeforeTheEndIsCopiedAtItsPoint) {
  EXPECT_EQ(PlacementOf({5, 5}), Placement::kLate);
  EXPECT_EQ(PlacementOf({5, 6}), Placement::kInline);
  EXPECT_EQ(PlacementOfTags(), Placement::kInline);
}

}  // namespace
}  // namespace r2cc::observe
