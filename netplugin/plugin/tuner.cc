#include "netplugin/plugin/tuner.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/core/fork_guard.h"
#include "base/core/mutex.h"
#include "base/core/release.h"
#include "netplugin/config/config.h"
#include "netplugin/plugin/seat_watch.h"
#include "netplugin/tuner/policy.h"

namespace r2cc::net {
namespace {

using abi::Result;
using tuner::Communicator;

struct Settings {
  std::optional<uint64_t> collnet_min_bytes;
  bool pinned = false;
  bool agreed = false;        // R2CC_SEAT=1
  bool logs_release = false;  // R2CC_LOG=info
  std::string error;          // why there are none
};

bool IsSet(const char* name) {
  const char* const value = FromEnvironment(name);
  return value != nullptr && *value != '\0';
}

Settings Read() {
  Settings settings;
  PluginConfig config;
  if (!LoadConfig(FromEnvironment, &config, &settings.error)) return settings;
  settings.collnet_min_bytes = config.collnet_min_bytes;
  settings.logs_release = config.log != LogLevel::kWarn;
  settings.agreed = config.seat;
  settings.pinned = IsSet("NCCL_ALGO") || IsSet("NCCL_PROTO");
  return settings;
}

// Never destroyed: NCCL may call while the process exits.
const Settings& ReadOnce() {
  static const Settings* const settings = new Settings(Read());
  return *settings;
}

struct Context {
  Communicator communicator;
  uint64_t number = 0;  // in this process, from 1
  std::atomic<abi::SeatWay> way{abi::SeatWay::kUsual};
  std::atomic<bool> offers_collnet{false};  // in the last AllReduce that NCCL asked about

  Communicator Now() const {
    Communicator now = communicator;
    now.way = way.load(std::memory_order_acquire);
    return now;
  }
};

// All communicators, by number, and what libr2cc-nccl.so watches.
class Contexts {
 public:
  void Add(std::unique_ptr<Context> made) {
    const MutexLock lock(mutex_);
    made->number = ++made_;
    const auto added = all_.emplace(made->number, nullptr).first;
    added->second = std::move(made);
  }
  void Remove(const Context* context) {
    seats.Forget(context);
    questions.Forget(context);
    std::unique_ptr<Context> removed;
    const MutexLock lock(mutex_);
    const auto found = all_.find(context->number);
    removed = std::move(found->second);
    all_.erase(found);
  }
  bool SetWay(uint64_t number, abi::SeatWay way) {
    const MutexLock lock(mutex_);
    const auto found = all_.find(number);
    if (found == all_.end()) return false;
    found->second->way.store(way, std::memory_order_release);
    return true;
  }

  SeatWatch<Context> seats;      // communicators that begin, by ranks
  SeatWatch<Context> questions;  // communicators with an AllReduce, by bytes

 private:
  Mutex mutex_;
  uint64_t made_ R2CC_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, std::unique_ptr<Context>> all_ R2CC_GUARDED_BY(mutex_);
};

// Never destroyed, as above.
Contexts& All() {
  static auto* const all = new Contexts;
  return *all;
}

// Also without CollNet: if only offers were noted, another communicator of the same size would be the only one in a watch by one without.
void NoteQuestion(Context* of, abi::Function function, size_t bytes, bool offers_collnet) {
  if (function != abi::Function::kAllReduce || !of->communicator.agreed) return;
  of->offers_collnet.store(offers_collnet, std::memory_order_release);
  All().questions.Note(of, bytes);
}

void Warn(abi::Logger log, const char* line) {
  if (log == nullptr)
    std::fprintf(stderr, "R2CC: the tuner leaves every choice to NCCL: %s\n", line);
  else
    log(abi::DebugLogLevel::kWarn, abi::kLogEnv, __FILE__, __LINE__, "R2CC: the tuner leaves every choice to NCCL: %s", line);
}

}  // namespace

Result OpenTuner(size_t ranks, size_t nodes, abi::Logger log, void** context) noexcept {
  if (context == nullptr) return Result::kSuccess;
  *context = nullptr;
  if (fork_guard::InForkedChild()) return Result::kSuccess;
  try {
    const Settings& settings = ReadOnce();
    // A job has dozens of communicators: the line stands there once.
    static std::atomic<bool> logged{false};
    if (!settings.error.empty() && !logged.exchange(true)) Warn(log, settings.error.c_str());
    if (settings.logs_release && log != nullptr && !logged.exchange(true))
      log(abi::DebugLogLevel::kInfo, abi::kLogEnv, __FILE__, __LINE__, "R2CC: tuner %s", ReleaseAndRevision().c_str());
    auto made = std::make_unique<Context>();
    made->communicator = {ranks, nodes, settings.collnet_min_bytes, settings.pinned, settings.agreed};
    Context* const added = made.get();
    All().Add(std::move(made));
    *context = added;
    All().seats.Note(added, ranks);
    return Result::kSuccess;
  } catch (const std::exception& exception) {
    Warn(log, exception.what());
  } catch (...) {
    Warn(log, "an unknown exception");
  }
  return Result::kSystemError;
}

Result CloseTuner(void* context) noexcept {
  if (context == nullptr) return Result::kSuccess;
  All().Remove(static_cast<const Context*>(context));
  return Result::kSuccess;
}

void WatchForSeat(size_t ranks) noexcept { All().seats.Begin(ranks); }

int MarkSeat() noexcept {
  return All().seats.End([](Context* context) { context->way.store(abi::SeatWay::kTree, std::memory_order_release); }) ? 1 : 0;
}

void WatchAllReduce(size_t bytes) noexcept { All().questions.Begin(bytes); }

uint64_t WatchedCommunicator() noexcept {
  uint64_t number = 0;
  All().questions.End([&number](const Context* context) {
    if (context->offers_collnet.load(std::memory_order_acquire)) number = context->number;
  });
  return number;
}

int SetWay(uint64_t number, abi::SeatWay way) noexcept { return All().SetWay(number, way) ? 1 : 0; }

Result TuneCosts(void* context, abi::Function function, size_t bytes, float** cost, int algorithms, int protocols) noexcept {
  if (context == nullptr) return Result::kSuccess;
  auto* const of = static_cast<Context*>(context);
  // NCCL passes a two-dimensional array under the type of an array of pointers.
  const tuner::CostTable table{reinterpret_cast<float*>(cost), algorithms, protocols};
  NoteQuestion(of, function, bytes, tuner::OffersCollNet(table));
  tuner::Tune(of->Now(), function, bytes, table);
  return Result::kSuccess;
}

Result TuneChoice(void* context, abi::Function function, size_t bytes, int collnet_support, int* algorithm, int* protocol) noexcept {
  if (context == nullptr || algorithm == nullptr || protocol == nullptr) return Result::kSuccess;
  auto* const of = static_cast<Context*>(context);
  NoteQuestion(of, function, bytes, collnet_support == 1 && !of->communicator.pinned);
  if (const auto choice = tuner::Choose(of->Now(), function, bytes, collnet_support == 1)) {
    *algorithm = static_cast<int>(choice->algorithm);
    *protocol = static_cast<int>(choice->protocol);
  }
  return Result::kSuccess;
}

}  // namespace r2cc::net
