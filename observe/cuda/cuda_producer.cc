#include "observe/cuda/cuda_producer.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <tuple>

namespace r2cc::observe {
namespace {

constexpr size_t kLayoutsMax = 1024;
// The entries of all layouts together: 1 MiB.
constexpr uint64_t kEntriesMax = 65536;
// The copy thread looks again after a sixteenth of the time for which nothing has happened, within these bounds. The kernel wakes it up to
// kSlackNs later, by default 50 us.
constexpr unsigned long kSlackNs = 1'000;
constexpr Nanos kLookAgainLeast = 20'000, kLookAgainMost = 500'000;
constexpr Nanos kCloseWithin = 10 * kNanosPerSecond;

uint64_t Address(const void* of) { return reinterpret_cast<uint64_t>(of); }

// Whether its tensors may be copied from where they are.
bool CanHold(const Layout& layout) {
  const auto is_copy = [](const Tap& tap) { return tap.op == Operator::kCopy && !tap.rows; };
  return std::all_of(layout.tags.begin(), layout.tags.end(), is_copy) && std::all_of(layout.taps.begin(), layout.taps.end(), is_copy);
}

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
      engine_(device_.get()),
      ring_bytes_(RoundUp(options.device_bytes, kRecordAlignment)),
      writer_(memory_->control(), memory_->ring(), memory_->cursors(), options.reader_timeout_ns) {}

CudaProducer::~CudaProducer() { Close(); }

bool CudaProducer::Prepare(std::string* error) {
  // The memory that RunMemory mapped, which begins with a RingStart.
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
  step_.parameters.hashes = step_.parameters.kept_rows = state_ + kHashAt;
  step_.parameters.blocks = 1;
  step_.parameters.abandoned = 1;
  using Kernel = CudaDevice::Kernel;
  for (const Kernel kernel : {Kernel::kGatherSmall, Kernel::kGatherLarge, Kernel::kInline, Kernel::kRows, Kernel::kHash, Kernel::kWait})
    if ((kernel != Kernel::kGatherLarge || device_->takes_large()) && !LaunchStep(kernel, 1, nullptr, error)) return false;
  for (const Kernel kernel : {Kernel::kFlatSmall, Kernel::kFlatLarge})
    if ((kernel != Kernel::kFlatLarge || device_->takes_large()) && !LaunchFlat(kernel, 1, nullptr, error)) return false;
  if (!device_->Wait(stream_, error) || !device_->CopyIn(state_, zeroes.data(), zeroes.size(), error)) return false;
  std::memset(static_cast<void*>(mapped_), 0, sizeof(*mapped_));
  mapped_->words.groups = ~uint64_t{0};
  mapped_->words.every = options_.every;
  mapped_->words.phases = options_.phases;
  StepState state;
  state.words = mapped_->words;
  if (!device_->CopyIn(state_ + offsetof(DeviceState, state), &state, sizeof(state), error)) return false;
  pump_ = std::make_unique<Pump>(&engine_, &writer_, &mapped_->published, &mapped_->words, ring_, ring_bytes_, options_.block_ns);
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
  prctl(PR_SET_TIMERSLACK, kSlackNs);
  std::string error;
  // For good: what this thread calls would end a capture of another one.
  const gpu::Driver::InContext in(device_->driver(), device_->gpu(), &error);
  Nanos since = clock_->Now();
  MutexLock lock(mutex_);
  while (!stop_) {
    const Nanos now = clock_->Now();
    if (pump_->Turn(now)) {
      since = now;
      // A caller that asks for counts gets the lock in between.
      lock.Unlock();
      lock.Lock();
      continue;
    }
    const bool drained = pump_->Drained();
    if (drained) drained_.NotifyAll();
    const Nanos pause = drained ? std::clamp((now - since) / 16, kLookAgainLeast, kLookAgainMost) : kLookAgainLeast;
    wake_.WaitFor(mutex_, pause);
  }
}

std::string CudaProducer::Failure() {
  const MutexLock lock(mutex_);
  return pump_ == nullptr ? "" : pump_->failure();
}

bool CudaProducer::AddLayout(Layout layout, uint32_t* id, std::string* error) {
  layout.id = static_cast<uint32_t>(layouts_.size());
  layout.rank = options_.rank;
  *error = Check(layout);
  if (!error->empty()) return false;
  const uint64_t bytes = SlotsOf(layout, ~uint64_t{0}, layout.rows_most)->record_bytes;
  bool must_hold = false;
  const uint64_t host_bytes = memory_->ring().size();
  for (const auto& [ring, name, option] : {std::tuple(ring_bytes_, "device's", "device_mib"), std::tuple(host_bytes, "host's", "host_mib")})
    if (bytes + sizeof(RingFrame) > ring / 2) {
      must_hold = CanHold(layout) && bytes + sizeof(RingFrame) <= host_bytes / 2;
      if (must_hold) break;
      *error = "a step has up to " + std::to_string(bytes) + " bytes and must fit twice into the " + name + " ring of " +
               std::to_string(ring) + ": raise " + option + ", or take fewer taps, rows, or statistics instead of copies";
      return false;
    }
  if (!MakeRoomForRows(layout.rows_most, error)) return false;
  const std::vector<LayoutEntry> entries = EntriesOf(layout);
  bool added = layouts_.size() < kLayoutsMax && entries.size() <= kEntriesMax - entries_used_;
  if (added) {
    const MutexLock lock(mutex_);
    added = writer_.AddLayout(layout);
  }
  if (!added) {
    *error = "there are " + std::to_string(layouts_.size()) + " layouts already, and no room for another";
    return false;
  }
  const uint64_t at = entries_ + entries_used_ * sizeof(LayoutEntry);
  if (!device_->CopyIn(at, entries.data(), entries.size() * sizeof(LayoutEntry), error)) return false;
  entries_used_ += entries.size();
  *id = layout.id;
  layouts_.push_back(std::make_unique<Known>(Known{std::move(layout), at, must_hold}));
  return true;
}

bool CudaProducer::MakeRoomForRows(uint64_t rows_most, std::string* error) {
  if (rows_most <= kept_rows_most_) return true;
  const uint64_t most = std::bit_ceil(rows_most);
  const uint64_t memory = device_->Allocate((1 + most) * sizeof(uint64_t), error);
  if (memory == 0) return false;
  kept_rows_.push_back(memory);
  kept_rows_most_ = most;
  return true;
}

void CudaProducer::SetGroups(uint64_t groups) {
  if (!closed_) StoreRelease(&mapped_->words.groups, groups);
}

Counts CudaProducer::counts() {
  const MutexLock lock(mutex_);
  Counts counts = pump_->counts();
  if (!closed_) {
    counts.dropped_device = LoadRelaxed(&mapped_->published.dropped);
    counts.unwanted = LoadRelaxed(&mapped_->published.unwanted);
  }
  return counts;
}

uint64_t CudaProducer::released() {
  const MutexLock lock(mutex_);
  return pump_->released();
}

uint64_t CudaProducer::cut_off() {
  const MutexLock lock(mutex_);
  return writer_.cut_off();
}

bool CudaProducer::DrainWithin(Nanos time_ns) {
  const MutexLock lock(mutex_);
  return drained_.WaitFor(mutex_, time_ns, [this]() R2CC_REQUIRES(mutex_) { return pump_->Drained(); });
}

bool CudaProducer::Flush(Nanos timeout_ns, std::string* error) {
  if (closed_) return true;
  if (!device_->Synchronize(error)) return false;
  if (DrainWithin(timeout_ns)) {
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
    if (ended) DrainWithin(kCloseWithin);
    {
      const MutexLock lock(mutex_);
      stop_ = true;
    }
    wake_.NotifyAll();
    if (copies_.joinable()) copies_.join();
    {
      const MutexLock lock(mutex_);
      if (!pump_->Drained()) error = "the records did not come within 10 s";
      if (error.empty()) {
        pump_->Finish();
      } else {
        writer_.Close(error);
      }
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
  for (const uint64_t memory : kept_rows_) device_->Free(memory);
  device_->FreeMapped(mapped_);
}

}  // namespace r2cc::observe
