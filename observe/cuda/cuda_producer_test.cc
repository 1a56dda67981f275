// The GPU's producer over a driver that runs its kernels' code on the processor: each record is the host producer's, byte for byte.
#include "observe/cuda/cuda_producer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "observe/cuda/cuda_rig.h"
#include "observe/producer/host_producer.h"
#include "observe/ring/ring_reader.h"

namespace r2cc::observe {
namespace {

struct Tensor {
  std::vector<uint8_t> memory;
  uint64_t offset = 0;
  std::vector<uint64_t> shape;
  std::vector<int64_t> strides;
  bool is_inline = false;

  TensorSource Source() const { return {memory.data() + offset, shape, strides}; }
};

// One of any type, shape and strides that taps may have.
Tensor MakeTensor(const Tap& tap, uint64_t rows, bool is_flat, std::mt19937_64* random) {
  const auto below = [&](uint64_t most) { return (*random)() % most; };
  Tensor tensor;
  tensor.shape = tap.shape;
  if (tap.rows) tensor.shape.insert(tensor.shape.begin(), rows);
  const uint64_t item = BytesOf(tap.dtype);
  // With holes behind each dimension, and two of them swapped, or without.
  const bool has_holes = !is_flat && below(2) != 0;
  std::vector<size_t> order(tensor.shape.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  if (!is_flat && order.size() >= 2 && below(3) == 0) std::swap(order[order.size() - 1], order[below(order.size() - 1)]);
  tensor.strides.resize(order.size());
  uint64_t stride = item;
  for (size_t i = order.size(); i-- > 0;) {
    tensor.strides[order[i]] = static_cast<int64_t>(stride);
    stride *= std::max<uint64_t>(tensor.shape[order[i]], 1);
    if (has_holes && below(2) != 0) stride += item * below(3);
  }
  tensor.offset = is_flat ? 0 : item * below(4);
  tensor.memory.resize(tensor.offset + stride + 64);
  for (uint8_t& byte : tensor.memory) byte = static_cast<uint8_t>((*random)());
  tensor.is_inline = below(4) == 0;
  return tensor;
}

TEST_F(CudaProducerTest, EachRecordIsTheHostProducersByteForByte) {
  const auto kernels_run = Of<int()>("stub_kernels_run");
  const auto flat_kernels_run = Of<int()>("stub_flat_kernels_run");
  int small_parts = 0, large_parts = 0, flat_parts = 0;  // steps of several launches; those of which one is of flat taps
  for (uint64_t seed = 0; seed < 150; ++seed) {
    SCOPED_TRACE(seed);
    std::mt19937_64 random(seed);
    const auto below = [&](uint64_t most) { return random() % most; };
    // Drivers before CUDA 12.1 take small launches alone.
    Of<void(int)>("stub_set_version")(seed % 3 == 0 ? 12000 : 13000);
    const uint64_t ring_bytes = uint64_t{1} << 22;
    ProducerOptions options{.run = "cuda." + std::to_string(getpid()), .ring_bytes = ring_bytes, .device_bytes = ring_bytes};
    const auto producer = Open(options);
    ASSERT_NE(producer, nullptr);
    options.run = "host." + std::to_string(getpid());
    const auto host = HostProducer::Open(options, &clock_, &error_);
    ASSERT_NE(host, nullptr) << error_;
    const auto reader = Reader(producer.get()), host_reader = Reader(host.get());
    ASSERT_TRUE(reader->Register() && host_reader->Register());
    const uint64_t rows_most = 1 + below(40);
    const bool is_flat = seed % 5 == 1;  // most taps, as most activations are
    Layout layout;
    layout.rows_most = static_cast<uint32_t>(rows_most);
    for (uint64_t i = 0, tags = below(3), taps = seed % 10 == 0 ? 600 : 1 + below(60); i < tags + taps; ++i) {
      Tap tap;
      tap.name = "t" + std::to_string(i);
      tap.op = i < tags ? Operator::kCopy : static_cast<Operator>(below(4) % 3);
      tap.dtype = static_cast<Dtype>(below(static_cast<uint64_t>(Dtype::kStats)));
      tap.group = static_cast<uint8_t>(below(4));
      tap.rows = below(2) != 0;
      for (uint64_t d = below(4); d > 0; --d) tap.shape.push_back(below(8) == 0 ? below(3) : 1 + below(d == 1 && taps < 60 ? 200 : 6));
      if (is_flat && i >= tags && below(8) != 0) {
        tap.op = Operator::kCopy;
        tap.shape = {16 * (1 + below(60))};
      }
      (i < tags ? layout.tags : layout.taps).push_back(tap);
    }
    uint32_t id = 0, host_id = 0;
    if (!host->AddLayout(layout, &host_id, &error_)) continue;  // as large as chance has it
    ASSERT_TRUE(producer->AddLayout(layout, &id, &error_)) << error_;
    for (int step = 0; step < 6; ++step) {
      std::vector<uint64_t> indices(rows_most);
      std::vector<uint32_t> short_indices(rows_most);
      const uint64_t tensor_rows = rows_most + below(5);
      for (uint64_t i = 0; i < rows_most; ++i) short_indices[i] = static_cast<uint32_t>(indices[i] = below(tensor_rows));
      RowChoice rows, host_rows;
      uint64_t count = below(rows_most + 1);
      rows.count = host_rows.count = count;
      const uint64_t kind = below(3);
      if (kind == 1) rows.indices = indices.data();
      if (kind == 2) {
        rows.indices = short_indices.data();
        rows.index_bytes = 4;
      }
      host_rows = rows;
      if (below(2) == 0) {
        rows.count = 0;
        rows.count_at = &count;
      }
      const bool prefill = below(3) == 0;
      ASSERT_EQ(producer->Begin(id, prefill ? Phase::kPrefill : Phase::kDecode, rows, &error_), Producer::Began::kTaken) << error_;
      const auto began = host->Begin(host_id, prefill ? Phase::kPrefill : Phase::kDecode, host_rows, &error_);
      ASSERT_NE(began, Producer::Began::kRefused) << error_;
      std::vector<Tensor> tensors;
      for (const bool is_tag : {true, false})
        for (const Tap& tap : is_tag ? layout.tags : layout.taps) tensors.push_back(MakeTensor(tap, tensor_rows, is_flat, &random));
      for (size_t i = 0; i < tensors.size(); ++i) {
        Tensor& tensor = tensors[i];
        const bool is_tag = i < layout.tags.size();
        const size_t index = is_tag ? i : i - layout.tags.size();
        const TensorSource source = tensor.Source();
        TapWork work;
        if (!MakeTapWork(is_tag ? layout.tags[index] : layout.taps[index], 1, source.shape, source.strides, &work, &error_)) {
          tensor.strides.clear();  // more loops than there are: without holes then
          tensor.memory.resize(tensor.memory.size() * 2 + 4096);
        }
        ASSERT_TRUE(host->Copy(is_tag, index, tensor.Source(), &error_)) << error_;
        if (is_tag || tensor.is_inline) {
          ASSERT_TRUE(producer->Copy(is_tag, index, tensor.Source(), &error_)) << error_;
          std::fill(tensor.memory.begin(), tensor.memory.end(), 0xee);
        } else {
          ASSERT_TRUE(producer->CopyLate(index, tensor.Source(), &error_)) << error_;
        }
      }
      const int before = kernels_run(), flat_before = flat_kernels_run();
      ASSERT_TRUE(producer->Finish(&error_)) << error_;
      flat_parts += kernels_run() - before > 1 && flat_kernels_run() > flat_before ? 1 : 0;
      (layout.taps.size() > 500 ? large_parts : small_parts) += kernels_run() - before > 1 ? 1 : 0;
      ASSERT_TRUE(host->Finish(&error_)) << error_;
      const uint64_t groups = below(2) != 0 ? ~uint64_t{0} : 1 + below(15);
      producer->SetGroups(groups);
      host->SetGroups(groups);
      ASSERT_TRUE(producer->Flush(kNanosPerSecond, &error_)) << error_;
      ASSERT_EQ(producer->counts(), host->counts());
      RecordView view, host_view;
      ASSERT_EQ(reader->Next(&view), Found::kRecord) << reader->error();
      ASSERT_EQ(host_reader->Next(&host_view), Found::kRecord) << host_reader->error();
      RecordHeader header = view.header;
      header.time_ns = host_view.header.time_ns;
      ASSERT_EQ(std::memcmp(&header, &host_view.header, sizeof(header)), 0);
      ASSERT_EQ(view.bytes.size(), host_view.bytes.size());
      for (size_t i = sizeof(header); i < view.bytes.size(); ++i)
        ASSERT_EQ(view.bytes[i], host_view.bytes[i]) << "byte " << i << " of step " << step << " of " << view.bytes.size();
    }
    producer->Close();
    host->Close();
  }
  EXPECT_GT(small_parts, 10);
  EXPECT_GT(large_parts, 10);
  EXPECT_GT(flat_parts, 20);
}

TEST_F(CudaProducerTest, AReplayedGraphIsAStepAndAfterCloseNone) {
  const auto producer = Open({.ring_bytes = 1 << 20, .device_bytes = 8192});
  const auto reader = Reader(producer.get());
  Layout layout;
  layout.tags = {{"id", Operator::kCopy, Dtype::kU64, 0, false, {}}};
  layout.taps = {{"x", Operator::kCopy, Dtype::kU64, 0, false, {100}}, {"h", Operator::kHash, Dtype::kU64, 1, false, {100}}};
  uint32_t id = 0;
  ASSERT_TRUE(producer->AddLayout(layout, &id, &error_)) << error_;
  std::vector<uint64_t> x(100), zero(100);
  uint64_t tag = 0, next = 0;
  const uint64_t shape[] = {100}, stream = 7;
  producer->SetStream(stream);
  Of<void(uint64_t)>("stub_begin_capture")(stream);
  ASSERT_EQ(producer->Begin(id, Phase::kDecode, {}, &error_), Producer::Began::kTaken) << error_;
  ASSERT_TRUE(producer->Copy(true, 0, {&tag, {}, {}}, &error_)) << error_;
  Of<void(uint64_t, uint64_t, uint64_t, uint64_t)>("stub_capture_copy")(reinterpret_cast<uint64_t>(&tag), reinterpret_cast<uint64_t>(&next),
                                                                        8, stream);
  for (size_t tap : {0, 1}) ASSERT_TRUE(producer->CopyLate(tap, {x.data(), shape, {}}, &error_)) << error_;
  ASSERT_TRUE(producer->Finish(&error_)) << error_;
  uint64_t hash = 0;
  EXPECT_FALSE(producer->Hash({}, &hash, &error_));
  EXPECT_EQ(error_, "this step was not checked: run the same step once without a capture first");
  Of<void(int)>("stub_end_capture")(1);
  EXPECT_EQ(producer->counts().Steps(), 0U);
  const auto replay = Of<void(int)>("stub_replay");
  for (uint64_t step = 0; step < 50; ++step) {
    next = step + 1;
    for (uint64_t& word : x) word = step * 1000 + static_cast<uint64_t>(&word - x.data());
    replay(1);
    ASSERT_TRUE(producer->Flush(kNanosPerSecond, &error_)) << error_;
    RecordView view;
    ASSERT_EQ(reader->Next(&view), Found::kRecord) << reader->error();
    EXPECT_EQ(view.header.step, step);
    EXPECT_EQ(std::memcmp(view.bytes.data() + view.slots->taps[0].offset, x.data(), 800), 0);
    EXPECT_EQ(std::memcmp(view.bytes.data() + view.slots->tags[0].offset, &step, 8), 0) << "the tag of before it was overwritten";
    uint64_t expected = 0;
    for (uint64_t i = 0; i < 100; ++i) expected += HashTerm(x[i], i);
    EXPECT_EQ(std::memcmp(view.bytes.data() + view.slots->taps[1].offset, &expected, 8), 0);
  }
  producer->Close();
  for (int i = 0; i < 3; ++i) replay(1);
  EXPECT_EQ(producer->counts(), (Counts{50, 0, 0, 0, 0}));
  RecordView view;
  EXPECT_EQ(reader->Next(&view), Found::kEnd);
  EXPECT_EQ(view.gap.Steps(), 0U);
}

TEST_F(CudaProducerTest, RowsBeyondTheTensorAreAStepThatIsNotThere) {
  const auto producer = Open({.ring_bytes = 1 << 16, .device_bytes = 1 << 16});
  Layout layout;
  layout.rows_most = 4;
  layout.taps = {{"x", Operator::kCopy, Dtype::kU64, 0, true, {4}}};
  uint32_t id = 0;
  ASSERT_TRUE(producer->AddLayout(layout, &id, &error_)) << error_;
  const std::vector<uint64_t> x(16);
  const uint64_t shape[] = {4, 4};
  std::vector<uint64_t> indices = {0, 1, 2, 3};
  uint64_t count = 4;
  const auto step = [&] {
    RowChoice rows{0, indices.data(), 8, &count, 8};
    EXPECT_EQ(producer->Begin(id, Phase::kDecode, rows, &error_), Producer::Began::kTaken) << error_;
    EXPECT_TRUE(producer->CopyLate(0, {x.data(), shape, {}}, &error_)) << error_;
    EXPECT_TRUE(producer->Finish(&error_)) << error_;
    EXPECT_TRUE(producer->Flush(kNanosPerSecond, &error_)) << error_;
  };
  step();
  indices[2] = 4;
  step();
  indices[2] = ~uint64_t{0};
  step();
  indices[2] = 1;
  count = 5;
  step();
  count = 3;
  step();
  EXPECT_EQ(producer->counts(), (Counts{2, 0, 0, 3, 0}));
}

// A record has the place that its bytes need, and these depend on its rows: each launch of a step must see the same count, or at the ring's
// end they mean two places.
TEST_F(CudaProducerTest, RowsAreThoseOfTheStepsBegin) {
  const auto producer = Open({.ring_bytes = 1 << 16, .device_bytes = 1 << 13});
  const auto reader = Reader(producer.get());
  Layout layout;
  layout.rows_most = 8;
  layout.tags = {{"id", Operator::kCopy, Dtype::kU64, 0, false, {}}};
  layout.taps = {{"early", Operator::kCopy, Dtype::kU64, 0, true, {16}}, {"late", Operator::kCopy, Dtype::kU64, 0, true, {16}}};
  uint32_t id = 0;
  ASSERT_TRUE(producer->AddLayout(layout, &id, &error_)) << error_;
  std::mt19937_64 random(1);
  std::vector<uint64_t> x(10 * 16);
  const uint64_t shape[] = {10, 16};
  std::vector<uint32_t> indices(8);
  uint64_t count = 0;
  const auto change = [&] {
    count = random() % 9;
    for (uint32_t& index : indices) index = static_cast<uint32_t>(random() % 10);
  };
  for (uint64_t step = 0; step < 200; ++step) {
    SCOPED_TRACE(step);
    for (uint64_t& word : x) word = step * 1000 + static_cast<uint64_t>(&word - x.data());
    change();
    const std::vector<uint32_t> chosen(indices.begin(), indices.begin() + static_cast<ptrdiff_t>(count));
    ASSERT_EQ(producer->Begin(id, Phase::kDecode, {0, indices.data(), 4, &count, 8}, &error_), Producer::Began::kTaken) << error_;
    if (step % 2 == 0) change();
    ASSERT_TRUE(producer->Copy(true, 0, {&step, {}, {}}, &error_)) << error_;
    change();
    ASSERT_TRUE(producer->Copy(false, 0, {x.data(), shape, {}}, &error_)) << error_;
    change();
    ASSERT_TRUE(producer->CopyLate(1, {x.data(), shape, {}}, &error_)) << error_;
    ASSERT_TRUE(producer->Finish(&error_)) << error_;
    ASSERT_TRUE(producer->Flush(kNanosPerSecond, &error_)) << error_;
    RecordView view;
    ASSERT_EQ(reader->Next(&view), Found::kRecord) << reader->error();
    ASSERT_EQ(view.header.step, step);
    ASSERT_EQ(view.header.rows, chosen.size());
    ASSERT_EQ(std::memcmp(view.bytes.data() + view.slots->tags[0].offset, &step, 8), 0) << "another tag";
    for (const Slot& slot : view.slots->taps)
      for (size_t i = 0; i < chosen.size(); ++i)
        ASSERT_EQ(std::memcmp(view.bytes.data() + slot.offset + i * 128, &x[chosen[i] * 16], 128), 0) << "row " << i;
  }
  EXPECT_EQ(producer->counts(), (Counts{200, 0, 0, 0, 0}));
}

}  // namespace
}  // namespace r2cc::observe
