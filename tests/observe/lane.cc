#include "tests/observe/lane.h"

#include <cstring>

namespace r2cc::observe {
namespace {

constexpr uint64_t kGuard = 0x6775617264756172;
constexpr uint64_t kGuardWords = 16;
constexpr size_t kTapWords = 12;  // that a tensor has at most
constexpr size_t kTapsOfModel = 6;
constexpr size_t kHeldSlots = 8;
// The memory of a run of 1 MiB of layouts, taken again by the next seed.
constexpr size_t kControls = 4;

ControlMemory* ControlOf(size_t number) {
  static std::vector<std::unique_ptr<ControlMemory>> controls;
  while (controls.size() <= number) controls.push_back(std::make_unique<ControlMemory>());
  ControlMemory* const control = controls[number % kControls].get();
  std::memset(static_cast<void*>(control), 0, offsetof(ControlMemory, layouts));
  return control;
}

}  // namespace

void FakeCopyEngine::Step() {
  if (under_way_.empty()) return;
  const size_t place = (*random_)() % under_way_.size();
  One& copy = copies_[under_way_[place]];
  // Late, and in pieces: each word is what the device shows at that moment.
  const uint64_t words = 1 + (*random_)() % 16;
  for (uint64_t i = 0; i < words && copy.moved < copy.bytes; ++i, copy.moved += 8)
    std::memcpy(copy.to + copy.moved, device_->System(copy.from + copy.moved), 8);
  if (copy.moved < copy.bytes) return;
  copy.state = fail_one_ ? State::kFailed : State::kDone;
  failed_ += fail_one_ ? 1 : 0;
  fail_one_ = false;
  under_way_[place] = under_way_.back();
  under_way_.pop_back();
}

Lane::Lane(const Shared& shared, uint16_t number, uint64_t base) : shared_(shared), number_(number) {
  uint64_t at = base;
  const auto take = [&](uint64_t words) {
    const uint64_t begin = at;
    at += words * 8;
    return begin;
  };
  rows_ = 1 + Random(3);
  blocks_ = 1 + Random(3);
  state_ = take(sizeof(DeviceState) / 8);
  published_at_ = take(sizeof(Published) / 8);
  count_is_known_ = Random(2) != 0;
  changes_rows_ = Random(4) == 0;
  block_looks_ = Random(4) == 0 ? 1 + Random(200) : 0;
  chunk_bytes_ = Random(2) != 0 ? 16 : 64;
  entries_ = take(2 * kTapsOfModel * sizeof(LayoutEntry) / 8);
  hashes_ = take(kTapsOfModel * sizeof(HashSum) / 8);
  indices_ = take(5);  // and their count
  kept_rows_ = take(5);
  at = RoundUp(at, kUnitBytes);
  tensors_ = take(kTapsOfModel * kTapWords);
  held_ = take(kHeldSlots * kTapsOfModel * kTapWords);
  at = RoundUp(at, kRecordAlignment);
  for (int i = 0; i < 2; ++i) MakeModel(i);
  uint64_t largest = 0;
  for (const Model& model : models_)
    largest = std::max(largest, SlotsOf(model.layout, ~uint64_t{0}, static_cast<uint32_t>(rows_))->record_bytes);
  ring_bytes_ = RoundUp(2 * largest + Random(3) * 128, kRecordAlignment);
  host_ring_bytes_ = 2 * (largest + sizeof(RingFrame)) + RoundUp(Random(1024), kRecordAlignment);
  ring_ = take(ring_bytes_ / 8);
  guard_ = take(kGuardWords);
  for (uint64_t i = 0; i < kGuardWords; ++i) shared_.device->Write(guard_ + i * 8, kGuard);
  host_ring_.resize(host_ring_bytes_ + 1024);
  control_ = ControlOf(number);
  for (uint64_t& generation : control_->generation) generation = 1;
  cursors_ = std::make_unique<CursorsMemory>();
  writer_ = std::make_unique<RingWriter>(control_, ring(), cursors_.get(), 40 + static_cast<Nanos>(Random(200)));
  for (const Model& model : models_) writer_->AddLayout(model.layout);
  published_ = reinterpret_cast<Published*>(shared_.device->System(published_at_));
  auto* const words = reinterpret_cast<HostWords*>(shared_.device->System(shared_.host_words + number * sizeof(HostWords)));
  *words = {};
  words->groups = ~uint64_t{0};
  StepState state;
  state.words = *words;
  std::memcpy(shared_.device->System(state_), &state, sizeof(state));
  pump_ = std::make_unique<Pump>(shared_.engine, writer_.get(), published_, words, ring_, ring_bytes_,
                                 block_looks_ != 0 ? static_cast<Nanos>(block_looks_) : 0);
}

Lane::~Lane() = default;

void Lane::MakeModel(int number) {
  Model model;
  model.layout.id = static_cast<uint32_t>(number);
  model.layout.rows_most = static_cast<uint32_t>(rows_);
  const size_t taps = 1 + Random(kTapsOfModel - 1);
  for (size_t i = 0; i <= taps; ++i) {
    Tap tap;
    tap.name = "t" + std::to_string(i);
    tap.dtype = Dtype::kU64;
    tap.group = static_cast<uint8_t>(Random(3));
    tap.rows = Random(2) != 0;
    tap.shape = {1 + Random(tap.rows ? 3 : kTapWords)};
    tap.op = i != 0 && Random(4) == 0 ? Operator::kHash : Operator::kCopy;
    StepTap its{};
    std::string error;
    std::vector<uint64_t> shape = tap.shape;
    if (tap.rows) shape.insert(shape.begin(), 4);
    MakeTapWork(tap, tensors_ + i * kTapWords * 8, shape, {}, &its.work, &error);
    its.entry = static_cast<uint32_t>(i);
    its.group = tap.group;
    its.is_tag = i == 0;
    its.rows = tap.rows;
    model.taps.push_back(its);
    (i == 0 ? model.layout.tags : model.layout.taps).push_back(tap);
    model.overwritten.push_back(i != 0 && Random(3) == 0);
  }
  SelfCheck(&model);
  Place(&model, entries_ + static_cast<uint64_t>(number) * kTapsOfModel * sizeof(LayoutEntry));
  models_.push_back(std::move(model));
}

// The step that is checked, of the warm-up: hashes at each point and at the end.
void Lane::SelfCheck(Model* model) {
  const uint64_t step = 1000;
  model->at_point.resize(model->taps.size());
  model->at_point[0] = PlacementOfTags() == Placement::kInline;
  for (size_t i = 1; i < model->taps.size(); ++i) {
    const auto hash = [&](uint64_t of_step) {
      uint64_t sum = 0;
      for (uint64_t word = 0; word < kTapWords; ++word) sum += HashTerm(Value(of_step, i, word), word);
      return sum;
    };
    const Checked checked{hash(step), hash(model->overwritten[i] ? step + 1 : step)};
    model->at_point[i] = PlacementOf(checked) == Placement::kInline;
  }
}

// What the device keeps of a layout, and where its taps lie if all are on.
void Lane::Place(Model* model, uint64_t at) {
  model->parameters.entries = at;
  for (const LayoutEntry& entry : EntriesOf(model->layout)) {
    shared_.device->Write(at, entry.bytes);
    shared_.device->Write(at + 8, entry.flags);
    at += sizeof(entry);
  }
  std::vector<EntryPlace> places;
  PlaceEntries(model->layout, count_is_known_ ? std::optional(rows_) : std::nullopt, &model->parameters, &places);
  for (size_t i = 0; i < model->taps.size(); ++i) {
    StepTap& tap = model->taps[i];
    tap.fixed = places[i].fixed;
    tap.for_each_row = places[i].for_each_row;
    if (!model->at_point[i]) model->late.push_back(tap);
  }
}

uint64_t Lane::Value(uint64_t step, size_t tap, uint64_t word) const {
  return Mix(step << 32 | static_cast<uint64_t>(number_) << 24 | tap << 16 | word);
}

void Lane::WriteTensor(const Model& model, size_t tap, uint64_t at, uint64_t step) {
  const StepTap& its = model.taps[tap];
  for (uint64_t word = 0; word < its.work.rows * its.work.RowBytes() / 8; ++word)
    shared_.device->Write(at + word * 8, Value(step, tap, word));
}

// Rows change places at every step.
std::vector<uint64_t> Lane::IndicesOf(uint64_t step) const {
  std::vector<uint64_t> indices;
  for (uint64_t i = 0; i < rows_; ++i) indices.push_back(Mix(step * 8 + i) % 4);
  return indices;
}

StepParameters Lane::Parameters(const Model& model, std::vector<StepTap>* taps) const {
  StepParameters p = model.parameters;
  SetTaps(*taps, chunk_bytes_, rows_, &p);
  p.hashes = hashes_;
  p.rows_most = rows_;
  p.count_at = count_is_known_ ? 0 : indices_ + 4 * 8;
  p.count_bytes = 8;
  p.kept_rows = kept_rows_;
  p.layout = model.layout.id;
  p.blocks = static_cast<uint32_t>(blocks_);
  p.producer = number_;
  p.phase = Phase::kDecode;
  p.rows = {rows_, indices_, 8};
  p.state = state_;
  p.published = published_at_;
  p.host_words = shared_.host_words;
  p.ring = ring_;
  p.ring_bytes = ring_bytes_;
  p.groups_at_launch = reinterpret_cast<const HostWords*>(shared_.device->System(shared_.host_words + number_ * sizeof(HostWords)))->groups;
  return p;
}

void Lane::WriteRows(const std::vector<uint64_t>& indices) {
  shared_.device->Write(indices_ + 4 * 8, indices.size());
  for (size_t i = 0; i < indices.size(); ++i) shared_.device->Write(indices_ + i * 8, indices[i]);
}

void Lane::Launch(const StepParameters& parameters, KernelKind kind, const std::vector<FlatTap>* flat) {
  kernel_.parameters = parameters;
  kernel_.kind = kind;
  kernel_.left = kind == KernelKind::kKeepRows || kind == KernelKind::kWait ? 1 : parameters.blocks;
  kernel_.looks = 0;
  kernel_.flat = flat;
  kernel_.phases.assign(kernel_.left, 0);
  kernel_.plans.assign(kernel_.left, {});
}

void Lane::BeginStep() {
  const uint64_t step = launched_++;
  const int number = static_cast<int>(Random(2));
  Model& model = models_[number];
  model_of_step_.push_back(number);
  // What operators change between replays.
  auto* const words = reinterpret_cast<HostWords*>(shared_.device->System(shared_.host_words + number_ * sizeof(HostWords)));
  if (Random(4) == 0) words->groups = Random(8);
  if (Random(8) == 0) words->every = 1 + Random(2);
  if (Random(6) == 0) {
    BeginHeld(number, step);
    return;
  }
  StepParameters p = Parameters(model, &model.late);
  stream_.push_back([this, step] { WriteRows(IndicesOf(step)); });
  if (changes_rows_) {
    stream_.push_back([this, p] { Launch(p, KernelKind::kKeepRows); });
    UseKeptRows(&p);
  }
  if (block_looks_ != 0) stream_.push_back([this, p] { Launch(p, KernelKind::kWait); });
  for (size_t i = 0; i < model.taps.size(); ++i) {
    const uint64_t at = tensors_ + i * kTapWords * 8;
    stream_.push_back([this, &model, i, at, step] { WriteTensor(model, i, at, step); });
    if (model.at_point[i]) {
      ++at_points_;
      alone_.push_back({model.taps[i]});
      StepParameters at_point = Parameters(model, &alone_.back());
      at_point.groups_at_launch = p.groups_at_launch;
      if (changes_rows_) UseKeptRows(&at_point);
      stream_.push_back([this, at_point] { Launch(at_point, KernelKind::kAtPoint); });
    }
    // Ids and positions are those of the next step from here on.
    if (i == 0 || model.overwritten[i]) stream_.push_back([this, &model, i, at, step] { WriteTensor(model, i, at, step + 1); });
    // So are rows, of which the next step may have fewer.
    if (i == 0 && changes_rows_) stream_.push_back([this, step] { WriteRows({IndicesOf(step + 1).front()}); });
  }
  // As two launches at the step's end, whose blocks go side by side.
  alone_.emplace_back();
  flat_.emplace_back();
  for (const StepTap& tap : model.late)
    if (const std::optional<FlatTap> flat = FlatOf(tap, p))
      flat_.back().push_back(*flat);
    else
      alone_.back().push_back(tap);
  flat_taps_ += flat_.back().size();
  SetTaps(alone_.back(), chunk_bytes_, rows_, &p);
  stream_.push_back([this, p, flat = &flat_.back()] { Launch(p, KernelKind::kGather, flat); });
}

// A step whose tensors are kept until they are copied; its stub goes through the device's ring.
void Lane::BeginHeld(int number, uint64_t step) {
  // The caller waits for room among what it may hold, or the step would be dropped by it.
  if (next_hold_ > pump_->released() + kHeldSlots) {
    launched_ = step;
    model_of_step_.pop_back();
    return;
  }
  const Model& model = models_[number];
  const uint64_t groups = 7;
  Held held;
  held.id = next_hold_++;
  held.layout = model.layout.id;
  held.rows = static_cast<uint32_t>(rows_);
  held.groups = groups;
  held.slots = *SlotsOf(model.layout, groups, held.rows);
  const uint64_t place = held_ + held.id % kHeldSlots * kTapsOfModel * kTapWords * 8;
  for (size_t i = 0; i < model.taps.size(); ++i) {
    // As the record has it: rows that were chosen, hashes that were made by a kernel of their own.
    const uint64_t at = place + i * kTapWords * 8;
    (i == 0 ? held.tags : held.taps).push_back(at);
    const StepTap& tap = model.taps[i];
    const std::vector<uint64_t> indices = IndicesOf(step);
    uint64_t hash = 0, out = 0;
    for (uint64_t row = 0; row < (tap.rows != 0 ? rows_ : 1); ++row)
      for (uint64_t word = 0; word < tap.work.RowBytes() / 8; ++word, ++out) {
        const uint64_t value = Value(step, i, (tap.rows != 0 ? indices[row] * tap.work.RowBytes() / 8 : 0) + word);
        hash += HashTerm(value, out);
        if (tap.work.op == Operator::kCopy) shared_.device->Write(at + out * 8, value);
      }
    if (tap.work.op == Operator::kHash) shared_.device->Write(at, hash);
  }
  alone_.emplace_back();
  StepParameters p = Parameters(model, &alone_.back());
  p.hold = held.id;
  pump_->Hold(std::move(held));
  ++stubs_;
  stream_.push_back([this, p] { Launch(p, KernelKind::kGather); });
}

bool Lane::Step() {
  if (kernel_.left > 0) return StepKernel();
  if (kernel_.ends) {
    // Between the last block's last store and the kernel's end others see what chance has them see.
    if (Random(6) != 0) return true;
    kernel_.ends = false;
    shared_.device->EndKernel(number_);
    return true;
  }
  if (stream_.empty()) {
    if (launched_ >= kSteps) return false;
    BeginStep();
    return true;
  }
  const std::function<void()> next = std::move(stream_.front());
  stream_.pop_front();
  next();
  return true;
}

bool Lane::StepKernel() {
  size_t block = Random(kernel_.phases.size());
  while (kernel_.phases[block] == 2) block = (block + 1) % kernel_.phases.size();
  FakeGpu::Ops ops(shared_.device, number_, block, shared_.background);
  const StepParameters& p = kernel_.parameters;
  int& phase = kernel_.phases[block];
  const auto number = static_cast<uint32_t>(block);
  if (kernel_.kind == KernelKind::kWait) {
    if (LookForRoom(&ops, p)) {
      waited_ += kernel_.looks > 0 ? 1 : 0;
      phase = 2;
    } else if (++kernel_.looks > block_looks_) {
      phase = 2;
    }
  } else if (kernel_.kind == KernelKind::kKeepRows) {
    KeepRows(&ops, p);
    phase = 2;
  } else if (phase == 0) {
    StepPlan& plan = kernel_.plans[block] = PlanOf(&ops, p);
    CopyShare(&ops, p, plan, number, p.blocks);
    if (kernel_.flat != nullptr) {
      std::vector<FlatTap> flat = *kernel_.flat;
      StepParameters of_flat = p;
      SetFlatTaps(flat, chunk_bytes_, rows_, &of_flat);
      CopyFlatShare(&ops, of_flat, flat.data(), plan, number, p.blocks);
    }
    phase = kernel_.kind == KernelKind::kAtPoint ? 2 : 1;
  } else {
    if (Arrive(&ops, p)) {
      FinishHashes(&ops, p, kernel_.plans[block]);
      Publish(&ops, p, kernel_.plans[block], 0);
    }
    phase = 2;
  }
  if (phase == 2 && --kernel_.left == 0) kernel_.ends = true;
  return true;
}

std::string Lane::Check(const RecordHeader& header, const Layout& layout, const Slots& slots, const uint8_t* bytes) const {
  const std::string label = "lane " + std::to_string(number_) + " step " + std::to_string(header.step) + ": ";
  if (header.step >= model_of_step_.size()) return label + "was not launched";
  const Model& model = models_[model_of_step_[header.step]];
  if (layout.id != model.layout.id) return label + "has the layout of another step";
  const std::vector<uint64_t> indices = IndicesOf(header.step);
  for (size_t i = 0; i < model.taps.size(); ++i) {
    const Slot& slot = i == 0 ? slots.tags[0] : slots.taps[i - 1];
    const StepTap& tap = model.taps[i];
    if (slot.offset == 0) continue;
    uint64_t hash = 0, out = 0;
    for (uint64_t row = 0; row < (tap.rows != 0 ? rows_ : 1); ++row)
      for (uint64_t word = 0; word < tap.work.RowBytes() / 8; ++word, ++out) {
        const uint64_t value = Value(header.step, i, (tap.rows != 0 ? indices[row] * tap.work.RowBytes() / 8 : 0) + word);
        hash += HashTerm(value, out);
        if (tap.work.op == Operator::kCopy && std::memcmp(bytes + slot.offset + out * 8, &value, 8) != 0)
          return label + "tap " + std::to_string(i) + " is not the step's";
      }
    if (tap.work.op == Operator::kHash && std::memcmp(bytes + slot.offset, &hash, 8) != 0)
      return label + "hash " + std::to_string(i) + " is not the step's";
  }
  return "";
}

bool Lane::GuardsStand() const {
  for (uint64_t i = 0; i < kGuardWords; ++i)
    if (*shared_.device->System(guard_ + i * 8) != kGuard) return false;
  return true;
}

}  // namespace r2cc::observe
