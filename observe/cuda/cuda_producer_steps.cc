// The calls of a step: each launches kernels in the order of the producer's stream.
#include <algorithm>
#include <optional>
#include <span>

#include "observe/cuda/cuda_producer.h"

namespace r2cc::observe {
namespace {

// A block copies so much at a time: 10-20 GB/s a block, so a small tap needs one and a large one many.
constexpr uint64_t kChunkBytes = 16384;
// The blocks of a launch: enough for all processors of an H100, 8 a processor; for flat taps as many as run there at once.
constexpr uint32_t kBlocksMost = 1056, kFlatBlocksMost = 132 * kFlatBlocksOfProcessor;

uint64_t Address(const void* of) { return reinterpret_cast<uint64_t>(of); }

// One launch of a step's end.
struct Part {
  size_t begin, count;  // of its taps
  bool is_large, is_flat = false;
  uint32_t blocks = 0;
};

std::vector<Part> PartsOf(size_t taps, bool takes_large, size_t of_small, size_t of_large) {
  const bool is_large = takes_large && taps > of_small;
  const size_t most = is_large ? of_large : of_small;
  std::vector<Part> parts;
  for (size_t at = 0; at < taps; at += most) parts.push_back({at, std::min(most, taps - at), is_large});
  return parts;
}

}  // namespace

CudaProducer::Began CudaProducer::Begin(uint32_t layout, Phase phase, const RowChoice& rows, std::string* error) {
  Abandon();
  *error = closed_ ? "the producer is closed" : Failure();
  if (error->empty() && layout >= layouts_.size()) *error = "there is no layout " + std::to_string(layout);
  if (!error->empty()) return Began::kRefused;
  const Known& known = *layouts_[layout];
  const auto is_word = [](uint64_t bytes) { return bytes == 4 || bytes == 8; };
  if (rows.count > known.layout.rows_most || (rows.indices != nullptr && !is_word(rows.index_bytes)) ||
      (rows.count_at != nullptr && !is_word(rows.count_bytes))) {
    *error = std::to_string(rows.count) + " rows, the layout has at most " + std::to_string(known.layout.rows_most) +
             "; indices and counts have 4 or 8 bytes";
    return Began::kRefused;
  }
  for (const void* const address : {rows.indices, rows.count_at})
    if (address != nullptr && !device_->Owns(address)) {
      *error = "the rows' indices and their count are in the memory of GPU " + std::to_string(device_->gpu()) + ", or nowhere";
      return Began::kRefused;
    }
  captured_ = captured_ || device_->IsCapturing(stream_);
  SetParameters(known, layout, phase, rows);
  StepParameters& p = step_.parameters;
  if (MustKeepRows(p)) {
    if (!MakeRoomForRows(1, error)) return Began::kRefused;
    p.kept_rows = kept_rows_.back();
    if (!LaunchStep(CudaDevice::Kernel::kRows, 1, nullptr, error)) return Began::kRefused;
    UseKeptRows(&p);
  }
  if (options_.block_ns != 0 && !LaunchStep(CudaDevice::Kernel::kWait, 1, nullptr, error)) return Began::kRefused;
  step_.known = &known;
  step_.copied.assign(step_.places.size(), false);
  step_.late.clear();
  return Began::kTaken;
}

void CudaProducer::SetParameters(const Known& known, uint32_t layout, Phase phase, const RowChoice& rows) {
  StepParameters& p = step_.parameters;
  p = {};
  const bool is_known = rows.count_at == nullptr;
  PlaceEntries(known.layout, is_known ? std::optional(rows.count) : std::nullopt, &p, &step_.places);
  p.layout = layout;
  p.phase = phase;
  p.rows = {rows.count, Address(rows.indices), rows.index_bytes, 0};
  p.rows_most = is_known ? rows.count : known.layout.rows_most;
  p.count_at = Address(rows.count_at);
  p.count_bytes = rows.count_bytes;
  p.chunk_bytes = kChunkBytes;
  p.entries = known.entries;
  p.state = state_;
  p.published = Address(&mapped_->published);
  p.ring = ring_;
  p.ring_bytes = ring_bytes_;
  p.hashes = state_ + kHashesAt;
  p.block_ns = static_cast<uint64_t>(options_.block_ns);
  p.host_words = Address(&mapped_->words);
}

bool CudaProducer::AddressOf(const Tap& tap, const TensorSource& source, uint64_t* address, std::string* error) {
  TapWork work;
  if (!MakeTapWork(tap, Address(source.data), source.shape, source.strides, &work, error)) return false;
  const uint64_t bytes = OutputBytes(work, 1);
  if (bytes != 0 && work.run_bytes != bytes) {
    *error = tap.name + ": it has holes, and a step this large is copied from where it is: make it contiguous";
    return false;
  }
  if (bytes != 0 && !device_->Owns(source.data)) {
    *error = tap.name + ": it is not in the memory of GPU " + std::to_string(device_->gpu());
    return false;
  }
  *address = work.data;
  return true;
}

bool CudaProducer::Hold(uint32_t layout, Phase phase, std::span<const TensorSource> tags, std::span<const TensorSource> taps, uint64_t* id,
                        std::string* error) {
  Abandon();
  *id = 0;
  *error = closed_ ? "the producer is closed" : Failure();
  if (error->empty() &&
      (!MustHold(layout) || tags.size() != layouts_[layout]->layout.tags.size() || taps.size() != layouts_[layout]->layout.taps.size()))
    *error = "layout " + std::to_string(layout) + " is not one whose steps are held, or has another number of taps";
  if (error->empty() && device_->IsCapturing(stream_))
    *error = "a step that does not fit twice into the device's ring cannot be captured: raise device_mib, or take fewer taps";
  if (!error->empty()) return false;
  const Known& known = *layouts_[layout];
  Held held;
  held.layout = layout;
  held.groups = LoadRelaxed(&mapped_->words.groups);
  held.slots = *SlotsOf(known.layout, held.groups, 0);
  uint64_t bytes = 0;
  for (const bool is_tag : {true, false}) {
    const std::vector<Slot>& slots = is_tag ? held.slots.tags : held.slots.taps;
    std::vector<uint64_t>& addresses = is_tag ? held.tags : held.taps;
    for (size_t i = 0; i < slots.size(); ++i) {
      uint64_t address = 0;
      if (slots[i].offset != 0 &&
          !AddressOf((is_tag ? known.layout.tags : known.layout.taps)[i], (is_tag ? tags : taps)[i], &address, error))
        return false;
      addresses.push_back(address);
      bytes += slots[i].bytes;
    }
  }
  const uint64_t released_id = released();
  while (!held_.empty() && held_.front().id <= released_id) held_.pop_front();
  for (const HeldBytes& one : held_) bytes += one.bytes;
  SetParameters(known, layout, phase, {});
  StepParameters& p = step_.parameters;
  p.blocks = 1;
  if (bytes > options_.held_bytes) {
    p.abandoned = 2;
  } else {
    held.id = p.hold = next_hold_++;
    held_.push_back({held.id, held.slots.record_bytes});
    const MutexLock lock(mutex_);
    pump_->Hold(std::move(held));
  }
  // Behind the kernels that made the tensors: its publication shows that they are there.
  if (!LaunchStep(CudaDevice::Kernel::kGatherSmall, 1, nullptr, error)) return false;
  *id = p.hold;
  return true;
}

bool CudaProducer::Wants(bool is_tag, size_t index) const {
  if (step_.known == nullptr) return false;
  const Layout& layout = step_.known->layout;
  return index < (is_tag ? layout.tags : layout.taps).size() && !step_.copied[is_tag ? index : layout.tags.size() + index];
}

bool CudaProducer::MakeTap(bool is_tag, size_t index, const TensorSource& source, StepTap* tap, std::string* error) {
  const Layout& layout = step_.known->layout;
  const Tap& its = (is_tag ? layout.tags : layout.taps)[index];
  const size_t entry = is_tag ? index : layout.tags.size() + index;
  const StepParameters& p = step_.parameters;
  *tap = {};
  if (!MakeTapWork(its, Address(source.data), source.shape, source.strides, &tap->work, error)) return false;
  const uint64_t rows_most = its.rows ? p.rows_most : 1;
  const uint64_t rows_least = !its.rows || rows_most == 0 ? 0 : p.rows.indices != 0 ? 1 : rows_most;
  if (tap->work.rows < rows_least) {
    *error = its.name + ": it has " + std::to_string(tap->work.rows) + " rows, and row " + std::to_string(rows_least - 1) + " is asked for";
    return false;
  }
  if (rows_most * tap->work.RowBytes() != 0 && !device_->Owns(source.data)) {
    *error = its.name + ": it is not in the memory of GPU " + std::to_string(device_->gpu());
    return false;
  }
  if (tap->work.op == Operator::kHash && rows_most * tap->work.RowBytes() >= uint64_t{1} << 44) {
    *error = its.name + ": more than 16 TiB";
    return false;
  }
  tap->entry = static_cast<uint32_t>(entry);
  tap->group = its.group;
  tap->is_tag = is_tag ? 1 : 0;
  tap->rows = its.rows ? 1 : 0;
  tap->fixed = step_.places[entry].fixed;
  tap->for_each_row = step_.places[entry].for_each_row;
  step_.copied[entry] = true;
  return true;
}

bool CudaProducer::LaunchStep(CudaDevice::Kernel kernel, uint32_t blocks, const StepTap* taps, std::string* error) {
  const uint32_t count = step_.parameters.count;
  if (kernel == CudaDevice::Kernel::kGatherLarge) {
    large_.step = step_.parameters;
    std::copy_n(taps, count, large_.taps);
    return device_->Launch(kernel, blocks, &large_, stream_, error);
  }
  small_.step = step_.parameters;
  std::copy_n(taps, count, small_.taps);
  return device_->Launch(kernel, blocks, &small_, stream_, error);
}

bool CudaProducer::LaunchFlat(CudaDevice::Kernel kernel, uint32_t blocks, const FlatTap* taps, std::string* error) {
  const uint32_t count = step_.parameters.count;
  if (kernel == CudaDevice::Kernel::kFlatLarge) {
    large_flat_.step = step_.parameters;
    std::copy_n(taps, count, large_flat_.taps);
    return device_->Launch(kernel, blocks, &large_flat_, stream_, error);
  }
  small_flat_.step = step_.parameters;
  std::copy_n(taps, count, small_flat_.taps);
  return device_->Launch(kernel, blocks, &small_flat_, stream_, error);
}

bool CudaProducer::Copy(bool is_tag, size_t index, const TensorSource& source, std::string* error) {
  if (!Wants(is_tag, index)) return true;
  StepTap one[1];
  StepParameters& p = step_.parameters;
  const bool sound = MakeTap(is_tag, index, source, &one[0], error);
  if (sound) SetTaps(one, kChunkBytes, p.rows_most, &p);
  if (!sound || !LaunchStep(CudaDevice::Kernel::kInline, std::min(p.chunks, kBlocksMost), one, error)) {
    Abandon();
    return false;
  }
  return true;
}

bool CudaProducer::CopyLate(size_t index, const TensorSource& source, std::string* error) {
  if (!Wants(false, index)) return true;
  StepTap tap;
  if (!MakeTap(false, index, source, &tap, error)) {
    Abandon();
    return false;
  }
  step_.late.push_back(tap);
  return true;
}

bool CudaProducer::Finish(std::string* error) {
  if (step_.known == nullptr) return true;
  const Layout& layout = step_.known->layout;
  for (size_t i = 0; i < step_.copied.size(); ++i)
    if (!step_.copied[i]) {
      *error = (i < layout.tags.size() ? layout.tags[i] : layout.taps[i - layout.tags.size()]).name + ": it was not copied in this step";
      Abandon();
      return false;
    }
  StepParameters& p = step_.parameters;
  std::vector<StepTap> others;
  std::vector<FlatTap> flat;
  for (const StepTap& tap : step_.late)
    if (const std::optional<FlatTap> one = FlatOf(tap, p))
      flat.push_back(*one);
    else
      others.push_back(tap);
  // The kernels of a step arrive at one counter, so each knows the blocks of all. A step has at least one.
  std::vector<Part> parts = PartsOf(flat.size(), device_->takes_large(), kTapsOfSmallFlatLaunch, kTapsOfLargeFlatLaunch);
  for (Part& part : parts) {
    SetFlatTaps(std::span(flat).subspan(part.begin, part.count), kChunkBytes, p.rows_most, &p);
    part.blocks = std::clamp<uint32_t>(p.chunks, 1, kFlatBlocksMost);
    part.is_flat = true;
  }
  if (parts.empty() || !others.empty())
    for (Part part : PartsOf(std::max<size_t>(others.size(), 1), device_->takes_large(), kTapsOfSmallLaunch, kTapsOfLargeLaunch)) {
      part.count = std::min(part.count, others.size());
      SetTaps(std::span(others).subspan(part.begin, part.count), kChunkBytes, p.rows_most, &p);
      part.blocks = std::clamp<uint32_t>(p.chunks, 1, kBlocksMost);
      parts.push_back(part);
    }
  p.blocks = 0;
  for (const Part& part : parts) p.blocks += part.blocks;
  step_.known = nullptr;
  using Kernel = CudaDevice::Kernel;
  for (const Part& part : parts) {
    if (part.is_flat) {
      const std::span<FlatTap> its = std::span(flat).subspan(part.begin, part.count);
      SetFlatTaps(its, kChunkBytes, p.rows_most, &p);
      if (!LaunchFlat(part.is_large ? Kernel::kFlatLarge : Kernel::kFlatSmall, part.blocks, its.data(), error)) return false;
    } else {
      const std::span<StepTap> its = std::span(others).subspan(part.begin, part.count);
      SetTaps(its, kChunkBytes, p.rows_most, &p);
      if (!LaunchStep(part.is_large ? Kernel::kGatherLarge : Kernel::kGatherSmall, part.blocks, its.data(), error)) return false;
    }
  }
  return true;
}

void CudaProducer::Abandon() {
  if (step_.known == nullptr) return;
  step_.known = nullptr;
  StepParameters& p = step_.parameters;
  p.count = p.chunks = 0;
  p.blocks = 1;
  p.abandoned = 1;
  std::string error;  // it would have failed with the step
  LaunchStep(CudaDevice::Kernel::kGatherSmall, 1, nullptr, &error);
}

bool CudaProducer::Hash(const TapWork& work, uint64_t* hash, std::string* error) {
  if (device_->IsCapturing(stream_)) {
    *error = "this step was not checked: run the same step once without a capture first";
    return false;
  }
  const uint64_t bytes = work.rows * work.RowBytes();
  if (bytes != 0 && !device_->Owns(reinterpret_cast<const void*>(work.data))) {
    *error = "it is not in the memory of GPU " + std::to_string(device_->gpu());
    return false;
  }
  const uint64_t sum = state_ + kHashAt;
  mapped_->zero = 0;
  small_.step = {};
  small_.step.hashes = sum;
  small_.taps[0] = {};
  small_.taps[0].work = work;
  const auto blocks = static_cast<uint32_t>(std::clamp<uint64_t>(bytes / kChunkBytes, 1, kBlocksMost));
  if (!device_->CopyInOrder(sum, Address(&mapped_->zero), sizeof(uint64_t), stream_, error) ||
      !device_->Launch(CudaDevice::Kernel::kHash, blocks, &small_, stream_, error) ||
      !device_->CopyInOrder(Address(&mapped_->hash), sum, sizeof(uint64_t), stream_, error) || !device_->Wait(stream_, error))
    return false;
  *hash = LoadAcquire(&mapped_->hash);
  return true;
}

}  // namespace r2cc::observe
