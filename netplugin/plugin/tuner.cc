#include "netplugin/plugin/tuner.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "base/core/fork_guard.h"
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
  bool says_release = false;  // R2CC_LOG=info
  std::string error;          // why there are none
};

bool IsSet(const char* name) {
  const char* const value = FromEnvironment(name);
  return value != nullptr && *value != '\0';
}

Settings Read() {
  Settings settings;
  Config config;
  if (!LoadConfig(FromEnvironment, &config, &settings.error)) return settings;
  settings.collnet_min_bytes = config.collnet_min_bytes;
  settings.says_release = config.log != LogLevel::kWarn;
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
  std::atomic<abi::SeatWay> way{abi::SeatWay::kUsual};

  Communicator Now() const {
    Communicator now = communicator;
    now.way = way.load(std::memory_order_acquire);
    return now;
  }
};

// Never destroyed, as above.
SeatWatch<Context>& TheWatch() {
  static auto* const watch = new SeatWatch<Context>;
  return *watch;
}

void Warn(abi::Logger log, const char* line) {
  if (log == nullptr)
    std::fprintf(stderr, "R2CC: the tuner leaves every choice to NCCL: %s\n", line);
  else
    log(abi::LogLevel::kWarn, abi::kLogEnv, __FILE__, __LINE__, "R2CC: the tuner leaves every choice to NCCL: %s", line);
}

}  // namespace

Result OpenTuner(size_t ranks, size_t nodes, abi::Logger log, void** context) noexcept {
  if (context == nullptr) return Result::kSuccess;
  *context = nullptr;
  if (fork_guard::InForkedChild()) return Result::kSuccess;
  try {
    const Settings& settings = ReadOnce();
    // A job has dozens of communicators: the line stands there once.
    static std::atomic<bool> told{false};
    if (!settings.error.empty() && !told.exchange(true)) Warn(log, settings.error.c_str());
    if (settings.says_release && log != nullptr && !told.exchange(true))
      log(abi::LogLevel::kInfo, abi::kLogEnv, __FILE__, __LINE__, "R2CC: tuner %s", ReleaseAndRevision().c_str());
    auto* const made = new Context{.communicator = {ranks, nodes, settings.collnet_min_bytes, settings.pinned, settings.agreed}};
    *context = made;
    TheWatch().Note(made, ranks);
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
  auto* const closed = static_cast<Context*>(context);
  TheWatch().Forget(closed);
  delete closed;
  return Result::kSuccess;
}

void WatchForSeat(size_t ranks) noexcept { TheWatch().Begin(ranks); }

int MarkSeat(abi::SeatWay way) noexcept {
  return TheWatch().End([way](Context* context) { context->way.store(way, std::memory_order_release); }) ? 1 : 0;
}

Result TuneCosts(void* context, abi::Function function, size_t bytes, float** cost, int algorithms, int protocols) noexcept {
  // NCCL passes a two-dimensional array under the type of an array of pointers.
  if (context != nullptr)
    tuner::Tune(static_cast<const Context*>(context)->Now(), function, bytes, {reinterpret_cast<float*>(cost), algorithms, protocols});
  return Result::kSuccess;
}

Result TuneChoice(void* context, abi::Function function, size_t bytes, int collnet_support, int* algorithm, int* protocol) noexcept {
  if (context == nullptr || algorithm == nullptr || protocol == nullptr) return Result::kSuccess;
  if (const auto choice = tuner::Choose(static_cast<const Context*>(context)->Now(), function, bytes, collnet_support == 1)) {
    *algorithm = static_cast<int>(choice->algorithm);
    *protocol = static_cast<int>(choice->protocol);
  }
  return Result::kSuccess;
}

}  // namespace r2cc::net
