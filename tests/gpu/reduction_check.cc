// Reductions on a real GPU: the bits of the processor's, while the job waits for them, and how fast.
//
//     ./bazelw build //tests/gpu:reduction_check && bazel-bin/tests/gpu/reduction_check
//
// It needs a GPU and its driver alone, so the program may be copied to where those are. 0: all is as it should be.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "netplugin/collnet/reduce.h"
#include "netplugin/gpu/libcuda_reduction_stream.h"
#include "tests/gpu/busy_gpu.h"

namespace r2cc::gpu_test {
namespace {

using abi::DataType;
using abi::RedOp;
using Clock = std::chrono::steady_clock;
using State = gpu::ReductionStream::State;

constexpr int kGpu = 0, kTypes = 10, kOps = 4;
constexpr uint64_t kMemoryBytes = 1ull << 30;
constexpr double kLimitS = 5;

double SecondsSince(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

struct Rig {
  gpu::Libcuda cuda;
  std::unique_ptr<gpu::LibcudaReductionStream> stream;
  std::byte* memory = nullptr;
  std::string error;
  int wrong = 0;

  void Fail(const std::string& line) {
    std::printf("WRONG: %s\n", line.c_str());
    ++wrong;
  }
  // False: it failed, or took too long.
  bool Await(gpu::ReductionStream::Number number) {
    if (number == 0) return false;
    for (const Clock::time_point begin = Clock::now(); SecondsSince(begin) < kLimitS;) {
      const State state = stream->Look(number, &error);
      if (state != State::kRunning) return state == State::kDone;
    }
    error = "not done after " + std::to_string(kLimitS) + " s";
    return false;
  }
};

// ---- bits ----

// Bits of all kinds: half of them any, the others near what is special in some format.
void FillWith(std::mt19937_64* random, std::vector<std::byte>* bytes, size_t element) {
  static constexpr uint16_t kUpper[] = {0x0000, 0x8000, 0x0001, 0x8001, 0x3f80, 0xbf80, 0x3c00, 0x7bff, 0x7c00, 0xfc00,
                                        0x7c01, 0x7e00, 0xfe00, 0x7f7f, 0x7f80, 0xff80, 0x7f81, 0x7fc0, 0xffc0, 0x03ff,
                                        0x0400, 0x007f, 0x0080, 0x7fef, 0x7ff0, 0xfff0, 0x7ff8, 0x000f, 0x0010, 0xffff};
  for (size_t at = 0; at + element <= bytes->size(); at += element) {
    uint64_t bits = (*random)();
    const uint64_t kind = (*random)() % 4;
    if (kind < 2) {
      const uint64_t upper = kUpper[bits % std::size(kUpper)];
      const uint64_t lower = kind == 0 ? 0 : (*random)();
      const size_t shift = 8 * element - std::min<size_t>(16, 8 * element);
      bits = (upper << shift) | (shift == 0 ? 0 : lower & ((1ull << shift) - 1));
    }
    std::memcpy(bytes->data() + at, &bits, element);
  }
}

// `first`: by so many elements out of a vector's alignment. In place: the result is the second source.
void Compare(Rig* rig, std::mt19937_64* random, DataType type, RedOp op, size_t sources, size_t count, size_t first, bool in_place) {
  const size_t element = collnet::ElementBytes(type), bytes = count * element, stride = (bytes + 256 + 255) / 256 * 256;
  std::vector<std::vector<std::byte>> host;
  std::vector<const std::byte*> from, on_gpu;
  for (size_t s = 0; s < sources; ++s) {
    FillWith(random, &host.emplace_back(bytes), element);
    from.push_back(host.back().data());
    std::byte* const at = rig->memory + s * stride + first * element;
    on_gpu.push_back(at);
    if (!rig->cuda.Copy(kGpu, at, host.back().data(), bytes, &rig->error)) return rig->Fail(rig->error);
  }
  std::vector<std::byte> want(bytes), got(bytes);
  collnet::ReduceWith(collnet::InstructionSet::kPortable, type, op, from, want.data(), count);
  std::byte* const out = in_place ? const_cast<std::byte*>(on_gpu[sources > 1 ? 1 : 0]) : rig->memory + sources * stride + first * element;
  const std::string what = "type " + std::to_string(static_cast<int>(type)) + ", operation " + std::to_string(static_cast<int>(op)) + ", " +
                           std::to_string(sources) + " sources of " + std::to_string(count) + " elements, from element " +
                           std::to_string(first) + (in_place ? ", in place" : "");
  if (!rig->Await(rig->stream->Begin({type, op, on_gpu, out, count}, &rig->error))) return rig->Fail(what + ": " + rig->error);
  if (!rig->cuda.Copy(kGpu, got.data(), out, bytes, &rig->error)) return rig->Fail(rig->error);
  for (size_t i = 0; i < count; ++i)
    if (std::memcmp(want.data() + i * element, got.data() + i * element, element) != 0)
      return rig->Fail(what + ": element " + std::to_string(i) + " differs");
}

void CompareAll(Rig* rig) {
  std::mt19937_64 random(20);
  uint64_t cases = 0, elements = 0;
  for (int type = 0; type < kTypes; ++type)
    for (int op = 0; op < kOps; ++op)
      for (const size_t sources : {1, 2, 3, 5, 8, 64, 500})
        for (const size_t count : {1, 7, 1000, 65'537}) {
          if (sources > 8 && count > 1000) continue;
          const size_t first = random() % 3 == 0 ? 1 + random() % 5 : 0;
          Compare(rig, &random, static_cast<DataType>(type), static_cast<RedOp>(op), sources, count, first, random() % 2 == 0);
          ++cases;
          elements += count;
        }
  std::printf("bits: %llu cases, %llu elements set against the processor's, %d wrong\n", static_cast<unsigned long long>(cases),
              static_cast<unsigned long long>(elements), rig->wrong);
}

// ---- while the job waits ----

// What hangs in CUDA is let go after a while, and told.
class Watchdog {
 public:
  explicit Watchdog(BusyGpu* busy)
      : thread_([this, busy] {
          std::unique_lock lock(mutex_);
          barked_ = !over_.wait_for(lock, std::chrono::duration<double>(kLimitS), [this] { return ended_; });
          if (barked_) busy->Release();
        }) {}
  // True if it had to.
  bool End() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    over_.notify_one();
    thread_.join();
    return barked_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable over_;
  bool ended_ = false, barked_ = false;
  std::thread thread_;
};

// `known`: that CUDA lets a reduction wait there is no fault of its (docs/rdma.md).
void AddUpBeside(Rig* rig, const char* what, const std::function<void(BusyGpu*)>& begin, bool waits = false, bool known = false) {
  BusyGpu busy(&rig->cuda, kGpu);
  Watchdog watchdog(&busy);
  begin(&busy);
  // It has gone to sleep in CUDA by then.
  if (waits) std::this_thread::sleep_for(std::chrono::milliseconds(200));
  std::vector<const std::byte*> sources = {rig->memory, rig->memory + (1 << 20)};
  bool fine = true;
  const Clock::time_point before = Clock::now();
  for (int i = 0; i < 100 && fine; ++i)
    fine = rig->Await(rig->stream->Begin({DataType::kFloat32, RedOp::kSum, sources, rig->memory + (2 << 20), 1 << 18}, &rig->error));
  const double seconds = SecondsSince(before);
  const bool hung = watchdog.End();
  busy.Release();
  if (fine && !hung)
    std::printf("%s: 100 reductions in %.1f ms\n", what, seconds * 1000);
  else if (known)
    std::printf("%s: they wait for the job, as is known\n", what);
  else
    rig->Fail(std::string(what) + ": " + (hung ? "they wait for the job" : rig->error));
}

void AddUpWhileTheJobWaits(Rig* rig) {
  AddUpBeside(rig, "beside a kernel that waits", [](BusyGpu* busy) { busy->Spin(32, false); });
  for (const int streams : {2, 4, 6, 8})
    AddUpBeside(
        rig, ("with " + std::to_string(streams) + " streams that wait behind it").c_str(),
        [streams](BusyGpu* busy) {
          busy->Spin(32, false);
          busy->QueueBehind(2 * streams);
        },
        false, true);
  AddUpBeside(
      rig, "with a thread that synchronizes",
      [](BusyGpu* busy) {
        busy->Spin(32, false);
        busy->SynchronizeMeanwhile();
      },
      true);
  AddUpBeside(
      rig, "with a thread that frees memory",
      [](BusyGpu* busy) {
        busy->Spin(32, false);
        busy->FreeMemoryMeanwhile();
      },
      true, true);
}

// ---- how fast ----

void Measure(Rig* rig) {
  std::printf("%8s %8s %10s %14s %12s\n", "type", "sources", "bytes", "read, GB/s", "alone, us");
  for (const auto& [type, name] : {std::pair(DataType::kFloat32, "f32"), {DataType::kBfloat16, "bf16"}, {DataType::kFloat16, "f16"}})
    for (const size_t sources : {2, 4})
      for (const size_t bytes : {size_t{64} << 10, size_t{1} << 20, size_t{16} << 20}) {
        std::vector<const std::byte*> from;
        for (size_t s = 0; s < sources; ++s) from.push_back(rig->memory + s * bytes);
        const gpu::ReductionStream::Work work{type, RedOp::kSum, from, rig->memory + sources * bytes, bytes / collnet::ElementBytes(type)};
        constexpr int kTimes = 200;
        std::vector<double> alone;
        for (int i = 0; i < kTimes; ++i) {
          const Clock::time_point begin = Clock::now();
          if (!rig->Await(rig->stream->Begin(work, &rig->error))) return rig->Fail(rig->error);
          alone.push_back(SecondsSince(begin));
        }
        std::nth_element(alone.begin(), alone.begin() + kTimes / 2, alone.end());
        const Clock::time_point begin = Clock::now();
        gpu::ReductionStream::Number last = 0;
        for (int i = 0; i < kTimes; ++i) last = rig->stream->Begin(work, &rig->error);
        if (!rig->Await(last)) return rig->Fail(rig->error);
        const double read = static_cast<double>(sources * bytes) * kTimes / SecondsSince(begin);
        std::printf("%8s %8zu %10zu %14.1f %12.1f\n", name, sources, bytes, read / 1e9, alone[kTimes / 2] * 1e6);
      }
}

int Run() {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Rig rig;
  if (!rig.cuda.missing().empty()) {
    std::printf("%s\n", rig.cuda.missing().c_str());
    return 2;
  }
  const Clock::time_point begin = Clock::now();
  rig.stream = gpu::LibcudaReductionStream::Open(&rig.cuda, kGpu, gpu::ReduceImage(), &rig.error);
  if (rig.stream != nullptr) std::printf("loaded in %.1f ms, with what CUDA does first\n", SecondsSince(begin) * 1000);
  rig.memory = rig.stream == nullptr ? nullptr : rig.cuda.Allocate(kGpu, kMemoryBytes, &rig.error);
  if (rig.memory == nullptr) {
    std::printf("%s\n", rig.error.c_str());
    return 2;
  }
  CompareAll(&rig);
  Measure(&rig);
  AddUpWhileTheJobWaits(&rig);
  std::printf("%s\n", rig.wrong == 0 ? "all is as it should be" : "NOT as it should be");
  std::fflush(stdout);
  // A thread of a check that failed may wait in CUDA for ever.
  _exit(rig.wrong == 0 ? 0 : 1);
}

}  // namespace
}  // namespace r2cc::gpu_test

int main() { return r2cc::gpu_test::Run(); }
