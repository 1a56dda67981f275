// A library with the names of the CUDA driver's that emulates one GPU in host memory: a kernel of observe/cuda/step.cu runs on the thread
// that launches it, block by block, by the code that the kernel is made of. A stream that is captured runs nothing until stub_replay().
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "base/core/clock.h"
#include "base/core/cuda/libcuda_calls.h"
#include "observe/cuda/arguments.h"

namespace {

using namespace r2cc::observe;  // NOLINT
using namespace r2cc::gpu;      // NOLINT

constexpr Result kInvalid = 1, kIllegalAddress = 700, kCaptureUnsupported = 900;

// Words are atomic with more order than a GPU has: ThreadSanitizer does not understand fences.
struct StubOps : HostOps {
  template <typename T>
  void Store(uint64_t at, T value) {
    if constexpr (sizeof(T) == 8)
      __atomic_store_n(reinterpret_cast<T*>(at), value, __ATOMIC_RELEASE);
    else
      HostOps::Store(at, value);
  }
  uint64_t LoadSystem(uint64_t at) { return __atomic_load_n(reinterpret_cast<uint64_t*>(at), __ATOMIC_ACQUIRE); }
  void FenceDevice() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
  void FenceSystem() { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
  void StoreAlone(uint64_t at, uint64_t value) { Store(at, value); }
  void CopyUnits(uint64_t to, uint64_t from, uint64_t units) { Copy(to, from, units * kUnitBytes); }
};

std::mutex mutex;
// Never destroyed: memory that captured graphs may touch stays to the end.
std::map<Pointer, size_t>& host_memory = *new std::map<Pointer, size_t>();  // mapped or registered
std::set<Pointer>& device_memory = *new std::set<Pointer>();
Stream captured = nullptr;
bool is_capturing = false;
std::vector<std::function<void()>> graph;
std::map<int, std::vector<std::function<void()>>> graphs;
int kernels_run = 0, flat_kernels_run = 0, driver_version = 13000;
bool locks_memory = true, copies_fail = false;
const char* const kNames[] = {kGatherSmall, kGatherLarge, kFlatSmall, kFlatLarge, kInline, kRows, kHash, kWait};

void CopyShareOf(StubOps* ops, StepParameters* p, const StepTap* taps, const StepPlan& plan, uint32_t block, uint32_t blocks) {
  p->taps = taps;
  CopyShare(ops, *p, plan, block, blocks);
}
void CopyShareOf(StubOps* ops, StepParameters* p, const FlatTap* taps, const StepPlan& plan, uint32_t block, uint32_t blocks) {
  if (block == 0) ++flat_kernels_run;
  CopyFlatShare(ops, *p, taps, plan, block, blocks);
}

template <typename Arguments>
void Gather(Arguments* arguments, uint32_t blocks) {
  StepParameters p = arguments->step;
  StubOps ops;
  // As blocks run: in any order; the last of them first.
  for (uint32_t block = blocks; block-- > 0;) {
    const StepPlan plan = PlanOf(&ops, p);
    CopyShareOf(&ops, &p, arguments->taps, plan, block, blocks);
    if (!Arrive(&ops, p)) continue;
    FinishHashes(&ops, p, plan);
    Publish(&ops, p, plan, 1);
  }
}

void Inline(SmallArguments* arguments, uint32_t blocks) {
  StepParameters p = arguments->step;
  p.taps = arguments->taps;
  StubOps ops;
  for (uint32_t block = 0; block < blocks; ++block) CopyShare(&ops, p, PlanOf(&ops, p), block, blocks);
}

void Rows(SmallArguments* arguments) {
  StubOps ops;
  KeepRows(&ops, arguments->step);
}

// Without the lock, which the copy thread needs. REQUIRES: it is held.
void Wait(SmallArguments* arguments) {
  const r2cc::SteadyClock clock;
  StubOps ops;
  const r2cc::Nanos until = clock.Now() + static_cast<r2cc::Nanos>(arguments->step.block_ns);
  mutex.unlock();
  while (!LookForRoom(&ops, arguments->step) && clock.Now() < until) std::this_thread::yield();
  mutex.lock();
}

void Hash(SmallArguments* arguments) {
  const TapWork& work = arguments->taps[0].work;
  StubOps ops;
  RowList list;
  list.count = work.rows;
  ops.AtomicAdd(arguments->step.hashes, HashOfElements(&ops, work, list, 0, list.count * work.RowBytes() / BytesOf(work.dtype)));
}

// Now, or when the graph is replayed.
Result Do(Stream stream, std::function<void()> what) {
  const std::lock_guard lock(mutex);
  if (is_capturing && stream == captured)
    graph.push_back(std::move(what));
  else
    what();
  return 0;
}

}  // namespace

extern "C" {

// For tests.
void stub_begin_capture(uint64_t stream) {
  const std::lock_guard lock(mutex);
  captured = reinterpret_cast<Stream>(stream);
  is_capturing = true;
}
void stub_end_capture(int number) {
  const std::lock_guard lock(mutex);
  is_capturing = false;
  graphs[number] = std::move(graph);
  graph.clear();
}
void stub_replay(int number) {
  const std::lock_guard lock(mutex);
  for (const auto& node : graphs[number]) node();
}
// A node of the job's own.
void stub_capture_copy(uint64_t to, uint64_t from, uint64_t bytes, uint64_t stream) {
  Do(reinterpret_cast<Stream>(stream), [=] { std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
}
int stub_kernels_run() { return kernels_run; }
int stub_flat_kernels_run() { return flat_kernels_run; }
void stub_set_version(int version) { driver_version = version; }
void stub_lock_memory(bool locks) { locks_memory = locks; }
void stub_fail_copies(bool fail) {
  const std::lock_guard lock(mutex);
  copies_fail = fail;
}

Result cuInit(unsigned) { return 0; }
Result cuGetErrorString(Result, const char** text) {
  *text = "the stub's error";
  return 0;
}
Result cuDeviceGetCount(int* count) {
  *count = 1;
  return 0;
}
Result cuDriverGetVersion(int* version) {
  *version = driver_version;
  return 0;
}
Result cuDeviceGetPCIBusId(char*, int, Device) { return kInvalid; }
Result cuDevicePrimaryCtxGetState(Device, unsigned*, int* active) {
  *active = 1;
  return 0;
}
Result cuDevicePrimaryCtxRetain(Context* context, Device) {
  *context = reinterpret_cast<Context>(&mutex);
  return 0;
}
Result cuCtxPushCurrent_v2(Context) { return 0; }
Result cuCtxPopCurrent_v2(Context*) { return 0; }
Result cuCtxSynchronize() { return 0; }
Result cuCtxGetStreamPriorityRange(int* least, int* greatest) {
  *least = *greatest = 0;
  return 0;
}
// All that was not mapped or registered is the GPU's.
Result cuPointerGetAttribute(void* data, int attribute, Pointer address) {
  const std::lock_guard lock(mutex);
  for (const auto& [begin, bytes] : host_memory)
    if (address >= begin && address < begin + bytes) return kInvalid;
  if (address < 4096) return kInvalid;
  if (attribute == kMemoryType) *static_cast<unsigned*>(data) = kDeviceMemory;
  if (attribute == kOrdinal) *static_cast<int*>(data) = 0;
  return 0;
}
Result cuMemAlloc_v2(Pointer* address, size_t bytes) {
  const std::lock_guard lock(mutex);
  *address = reinterpret_cast<Pointer>(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  device_memory.insert(*address);
  return 0;
}
Result cuMemFree_v2(Pointer address) {
  const std::lock_guard lock(mutex);
  if (device_memory.erase(address) == 0) return kInvalid;
  std::free(reinterpret_cast<void*>(address));
  return 0;
}
Result cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  const std::lock_guard lock(mutex);
  *memory = std::aligned_alloc(256, (bytes + 255) / 256 * 256);
  host_memory[reinterpret_cast<Pointer>(*memory)] = bytes;
  return 0;
}
Result cuMemFreeHost(void* memory) {
  const std::lock_guard lock(mutex);
  host_memory.erase(reinterpret_cast<Pointer>(memory));
  std::free(memory);
  return 0;
}
Result cuMemHostRegister_v2(void* memory, size_t bytes, unsigned) {
  const std::lock_guard lock(mutex);
  if (!locks_memory) return kInvalid;
  host_memory[reinterpret_cast<Pointer>(memory)] = bytes;
  return 0;
}
Result cuMemHostUnregister(void* memory) {
  const std::lock_guard lock(mutex);
  host_memory.erase(reinterpret_cast<Pointer>(memory));
  return 0;
}
Result cuMemcpyAsync(Pointer to, Pointer from, size_t bytes, Stream stream) {
  return Do(stream, [=] { std::memcpy(reinterpret_cast<void*>(to), reinterpret_cast<const void*>(from), bytes); });
}
Result cuStreamCreateWithPriority(Stream* stream, unsigned, int) {
  static uint64_t streams = 0x1000;
  *stream = reinterpret_cast<Stream>(++streams);
  return 0;
}
Result cuStreamSynchronize(Stream stream) {
  const std::lock_guard lock(mutex);
  return is_capturing && stream == captured ? kCaptureUnsupported : 0;
}
Result cuStreamIsCapturing(Stream stream, int* status) {
  const std::lock_guard lock(mutex);
  *status = is_capturing && stream == captured ? 1 : 0;
  return 0;
}
Result cuThreadExchangeStreamCaptureMode(int*) { return 0; }
Result cuEventCreate(Event* event, unsigned) {
  *event = reinterpret_cast<Event>(&mutex);
  return 0;
}
Result cuEventRecord(Event, Stream) { return 0; }
Result cuEventQuery(Event) {
  const std::lock_guard lock(mutex);
  return copies_fail ? kIllegalAddress : 0;
}
Result cuModuleLoadData(Module* module, const void*) {
  *module = reinterpret_cast<Module>(&mutex);
  return 0;
}
Result cuModuleGetFunction(Function* function, Module, const char* name) {
  for (uint64_t i = 0; i < std::size(kNames); ++i)
    if (std::strcmp(kNames[i], name) == 0) *function = reinterpret_cast<Function>(i + 1);
  return *function == nullptr ? kInvalid : 0;
}
Result cuLaunchKernel(Function function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned, unsigned, Stream stream,
                      void** parameters, void**) {
  if (threads != kThreads || blocks == 0) return kInvalid;
  const auto kernel = reinterpret_cast<uint64_t>(function) - 1;
  if (kernel >= std::size(kNames)) return kInvalid;
  constexpr size_t kSizes[] = {sizeof(SmallArguments), sizeof(LargeArguments), sizeof(SmallFlatArguments), sizeof(LargeFlatArguments)};
  std::vector<uint8_t> copy(kernel < std::size(kSizes) ? kSizes[kernel] : sizeof(SmallArguments));
  std::memcpy(copy.data(), parameters[0], copy.size());
  return Do(stream, [=]() mutable {
    ++kernels_run;
    auto* const small = reinterpret_cast<SmallArguments*>(copy.data());
    switch (kernel) {
      case 0: Gather(small, blocks); break;
      case 1: Gather(reinterpret_cast<LargeArguments*>(copy.data()), blocks); break;
      case 2: Gather(reinterpret_cast<SmallFlatArguments*>(copy.data()), blocks); break;
      case 3: Gather(reinterpret_cast<LargeFlatArguments*>(copy.data()), blocks); break;
      case 4: Inline(small, blocks); break;
      case 5: Rows(small); break;
      case 7: Wait(small); break;
      default: Hash(small);
    }
  });
}

}  // extern "C"
