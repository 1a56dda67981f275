#include "observe/cuda/cuda_producer.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <tuple>

namespace r2cc::observe {
namespace {

constexpr size_t kLayoutsMax = 1024;
// Of all layouts together: 1 MiB.
constexpr uint64_t kEntriesMax = 65536;
// A block copies so much at a time: 10-20 GB/s a block, so a small tap needs one and a large one many.
constexpr uint64_t kChunkBytes = 16384;
// Of a launch: enough for all processors of an H100, 8 a processor.
constexpr uint32_t kBlocksMost = 1056;
// The copy thread looks again after a quarter of the time for which nothing has happened, within these bounds.
constexpr Nanos kLookAgainLeast = 20'000, kLookAgainMost = 250'000;
constexpr Nanos kCloseWithin = 10 * kNanosPerSecond;
// What the device has behind its ring: the state, a sum for each entry of a layout, and one for Hash().
constexpr uint64_t kHashesAt = RoundUp(sizeof(DeviceState), 256), kHashAt = kHashesAt + (kTapsMax + kTagsMax) * sizeof(HashSum);
constexpr uint64_t kStateBytes = kHashAt + sizeof(HashSum);

uint64_t Address(const void* of) { return reinterpret_cast<uint64_t>(of); }

std::string Mib(uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; }

}  // namespace

int CudaProducer::NumberOf(const std::string& device) {
  if (device == "cuda") return 0;
  if (device.rfind("cuda:", 0) != 0 || device.size() == 5 || device.size() > 8) return -1;
  char* end = nullptr;
  const long number = std::strtol(device.c_str() + 5, &end, 10);
  return *end == '\0' && number >= 0 ? static_cast<int>(number) : -1;
}

std::unique_ptr<CudaProducer> CudaProducer::Open(const ProducerOptions& options, int gpu, const Clock* clock, std::string* error) {
  if (options.every == 0 || options.phases == 0 || options.phases > 3) {
    *error = "no step would ever be wanted: every is " + std::to_string(options.every) + ", phases are " + std::to_string(options.phases);
    return nullptr;
  }
  if (options.block_ns != 0) {
    *error = "a step in a GPU's memory is dropped if there is no room: full=\"block\" is for device=\"host\" alone";
    return nullptr;
  }
  if (options.device_bytes < 4096 || options.device_bytes > uint64_t{1} << 38) {
    *error = "the device's ring would have " + std::to_string(options.device_bytes) + " bytes; it has 4096 to 274877906944";
    return nullptr;
  }
  std::unique_ptr<CudaDevice> device = CudaDevice::Open(gpu, error);
  if (device == nullptr) return nullptr;
  std::unique_ptr<RunMemory> memory = RunMemory::Make(options.run, options.rank, options.ring_bytes, error);
  if (memory == nullptr) return nullptr;
  std::unique_ptr<CudaProducer> producer(new CudaProducer(options, clock, std::move(device), std::move(memory)));
  return producer->Prepare(error) ? std::move(producer) : nullptr;
}

CudaProducer::CudaProducer(const ProducerOptions& options, const Clock* clock, std::unique_ptr<CudaDevice> device,
                           std::unique_ptr<RunMemory> memory)
    : options_(options),
      clock_(clock),
      device_(std::move(device)),
      memory_(std::move(memory)),
      writer_(memory_->control(), memory_->ring(), memory_->cursors(), options.reader_timeout_ns),
      engine_(device_.get()),
      ring_bytes_(RoundUp(options.device_bytes, kRecordAlignment)) {}

CudaProducer::~CudaProducer() { Close(); }

bool CudaProducer::Prepare(std::string* error) {
  // What RunMemory mapped, which begins with a RingStart.
  uint8_t* const locked = memory_->ring().data() - sizeof(RingStart);
  registered_ = device_->Register(locked, memory_->ring().size() + sizeof(RingStart), error);
  if (!registered_) {
    *error += ": the host's ring has " + Mib(options_.ring_bytes) + "; a smaller host_mib may do";
    return false;
  }
  ring_ = device_->Allocate(ring_bytes_, error);
  state_ = ring_ == 0 ? 0 : device_->Allocate(kStateBytes, error);
  entries_ = state_ == 0 ? 0 : device_->Allocate(kEntriesMax * sizeof(LayoutEntry), error);
  mapped_ = entries_ == 0 ? nullptr : static_cast<Mapped*>(device_->AllocateMapped(sizeof(Mapped), error));
  if (mapped_ == nullptr) {
    *error += ": the device's ring has " + Mib(ring_bytes_) + "; a smaller device_mib may do";
    return false;
  }
  const std::vector<uint8_t> zeroes(kStateBytes);
  if (!device_->CopyIn(state_, zeroes.data(), zeroes.size(), error)) return false;
  // Each kernel once: a driver may load its code with the first launch, which a capture does not allow. These find nothing to do.
  step_.parameters = {};
  step_.parameters.state = state_;
  step_.parameters.published = Address(&mapped_->published);
  step_.parameters.host_words = Address(&mapped_->words);
  step_.parameters.ring = ring_;
  step_.parameters.ring_bytes = ring_bytes_;
  step_.parameters.hashes = state_ + kHashAt;
  step_.parameters.blocks = 1;
  step_.parameters.abandoned = 1;
  using Kernel = CudaDevice::Kernel;
  for (const Kernel kernel : {Kernel::kGatherSmall, Kernel::kGatherLarge, Kernel::kInline, Kernel::kHash})
    if ((kernel != Kernel::kGatherLarge || device_->takes_large()) && !LaunchStep(kernel, 1, nullptr, error)) return false;
  if (!device_->Wait(stream_, error) || !device_->CopyIn(state_, zeroes.data(), zeroes.size(), error)) return false;
  std::memset(static_cast<void*>(mapped_), 0, sizeof(*mapped_));
  mapped_->words.groups = ~uint64_t{0};
  mapped_->words.every = options_.every;
  mapped_->words.phases = options_.phases;
  StepState state;
  state.words = mapped_->words;
  if (!device_->CopyIn(state_ + offsetof(DeviceState, state), &state, sizeof(state), error)) return false;
  pump_ = std::make_unique<Pump>(&engine_, &writer_, &mapped_->published, &mapped_->words, ring_, ring_bytes_);
  {
    const gpu::Driver::InContext in(device_->driver(), device_->gpu(), error);
    if (!in.ok() || !engine_.Open(error)) return false;
  }
  copies_ = std::thread([this] { RunCopies(); });
  return true;
}

void CudaProducer::RunCopies() {
  pthread_setname_np(pthread_self(), "r2cc-taps-copy");
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  std::string error;
  // For good: what this thread calls would end a capture of another one.
  const gpu::Driver::InContext in(device_->driver(), device_->gpu(), &error);
  Nanos since = clock_->Now();
  std::unique_lock lock(mutex_);
  while (!stop_) {
    const Nanos now = clock_->Now();
    if (pump_->Turn(now)) {
      since = now;
      // Whoever asks for counts comes in.
      lock.unlock();
      lock.lock();
      continue;
    }
    const Nanos pause = pump_->Drained() ? std::clamp((now - since) / 4, kLookAgainLeast, kLookAgainMost) : kLookAgainLeast;
    wake_.wait_for(lock, std::chrono::nanoseconds(pause));
  }
}

std::string CudaProducer::Failure() {
  const std::lock_guard lock(mutex_);
  return pump_ == nullptr ? "" : pump_->failure();
}

bool CudaProducer::AddLayout(Layout layout, uint32_t* id, std::string* error) {
  layout.id = static_cast<uint32_t>(layouts_.size());
  layout.rank = options_.rank;
  *error = Check(layout);
  if (!error->empty()) return false;
  const uint64_t bytes = SlotsOf(layout, ~uint64_t{0}, layout.rows_most)->record_bytes;
  for (const auto& [ring, name, option] : {std::tuple(ring_bytes_, "device's", "device_mib"), std::tuple(writer_.bytes(), "host's", "host_mib")})
    if (bytes + sizeof(RingFrame) > ring / 2) {
      *error = "a step has up to " + std::to_string(bytes) + " bytes and must fit twice into the " + name + " ring of " +
               std::to_string(ring) + ": raise " + option + ", or take fewer taps, rows, or statistics instead of copies";
      return false;
    }
  const std::vector<LayoutEntry> entries = EntriesOf(layout);
  if (layouts_.size() >= kLayoutsMax || entries.size() > kEntriesMax - entries_used_ || !writer_.AddLayout(layout)) {
    *error = "there are " + std::to_string(layouts_.size()) + " layouts already, and no room for another";
    return false;
  }
  const uint64_t at = entries_ + entries_used_ * sizeof(LayoutEntry);
  if (!device_->CopyIn(at, entries.data(), entries.size() * sizeof(LayoutEntry), error)) return false;
  entries_used_ += entries.size();
  *id = layout.id;
  layouts_.push_back(std::make_unique<Known>(Known{std::move(layout), at}));
  return true;
}

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
  p.host_words = Address(&mapped_->words);
  step_.known = &known;
  step_.copied.assign(step_.places.size(), false);
  step_.late.clear();
  return Began::kTaken;
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

bool CudaProducer::Copy(bool is_tag, size_t index, const TensorSource& source, std::string* error) {
  if (!Wants(is_tag, index)) return true;
  std::vector<StepTap> one(1);
  StepParameters& p = step_.parameters;
  const bool sound = MakeTap(is_tag, index, source, &one[0], error);
  if (sound) SetTaps(&one, kChunkBytes, p.rows_most, &p);
  if (!sound || !LaunchStep(CudaDevice::Kernel::kInline, std::min(p.chunks, kBlocksMost), one.data(), error)) {
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
  const bool is_large = device_->takes_large() && step_.late.size() > kTapsOfSmallLaunch;
  const uint32_t most = is_large ? kTapsOfLargeLaunch : kTapsOfSmallLaunch;
  StepParameters& p = step_.parameters;
  struct Part {
    std::vector<StepTap> taps;
    uint32_t blocks;
  };
  std::vector<Part> parts;
  p.blocks = 0;
  for (size_t at = 0; at == 0 || at < step_.late.size(); at += most) {
    const auto begin = step_.late.begin() + static_cast<ptrdiff_t>(at);
    Part part{{begin, begin + static_cast<ptrdiff_t>(std::min<size_t>(most, step_.late.size() - at))}, 0};
    SetTaps(&part.taps, kChunkBytes, p.rows_most, &p);
    part.blocks = std::clamp<uint32_t>(p.chunks, 1, kBlocksMost);
    p.blocks += part.blocks;
    parts.push_back(std::move(part));
  }
  step_.known = nullptr;
  for (Part& part : parts) {
    SetTaps(&part.taps, kChunkBytes, p.rows_most, &p);
    if (!LaunchStep(is_large ? CudaDevice::Kernel::kGatherLarge : CudaDevice::Kernel::kGatherSmall, part.blocks, part.taps.data(), error))
      return false;
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

void CudaProducer::SetGroups(uint64_t groups) {
  if (!closed_) StoreRelease(&mapped_->words.groups, groups);
}

Counts CudaProducer::counts() {
  const std::lock_guard lock(mutex_);
  Counts counts = pump_->counts();
  if (!closed_) {
    counts.dropped_device = LoadRelaxed(&mapped_->published.dropped);
    counts.unwanted = LoadRelaxed(&mapped_->published.unwanted);
  }
  return counts;
}

uint64_t CudaProducer::cut_off() {
  const std::lock_guard lock(mutex_);
  return writer_.cut_off();
}

bool CudaProducer::DrainUntil(Nanos deadline) {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (pump_->Drained()) return true;
    }
    if (clock_->Now() >= deadline) return false;
    std::this_thread::sleep_for(std::chrono::microseconds(50));
  }
}

bool CudaProducer::Flush(Nanos timeout_ns, std::string* error) {
  const Nanos begin = clock_->Now();
  if (closed_) return true;
  if (!device_->Synchronize(error)) return false;
  if (DrainUntil(begin + timeout_ns)) {
    *error = Failure();
    return error->empty();
  }
  *error = "the records are not in the host's ring yet";
  return false;
}

void CudaProducer::Close() {
  if (closed_) return;
  std::string error;
  if (pump_ != nullptr) {
    Abandon();
    StoreRelease(&mapped_->words.closed, 1);
    const bool ended = device_->Synchronize(&error);
    if (ended) DrainUntil(clock_->Now() + kCloseWithin);
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    if (copies_.joinable()) copies_.join();
    if (!pump_->Drained()) error = "the records did not come within 10 s";
    if (error.empty()) {
      pump_->Finish();
    } else {
      writer_.Close(error);
    }
    // The first replay after this one would still go by the words of before.
    const uint64_t one = 1;
    device_->CopyIn(state_ + offsetof(DeviceState, state) + offsetof(StepState, words) + offsetof(HostWords, closed), &one, sizeof(one),
                    &error);
  }
  closed_ = true;
  if (registered_) device_->Unregister(memory_->ring().data() - sizeof(RingStart));
  if (captured_) return;
  for (const uint64_t memory : {ring_, state_, entries_}) device_->Free(memory);
  device_->FreeMapped(mapped_);
}

}  // namespace r2cc::observe
