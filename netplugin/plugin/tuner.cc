#include "netplugin/plugin/tuner.h"

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <optional>
#include <string>

#include "base/core/fork_guard.h"
#include "netplugin/config/config.h"
#include "netplugin/tuner/policy.h"

namespace r2cc::net {
namespace {

using abi::Result;
using tuner::Communicator;

struct Settings {
  std::optional<uint64_t> collnet_min_bytes;
  bool pinned = false;
  std::string error;  // why there are none
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
  settings.pinned = IsSet("NCCL_ALGO") || IsSet("NCCL_PROTO");
  return settings;
}

// Never destroyed: NCCL may call while the process exits.
const Settings& ReadOnce() {
  static const Settings* const settings = new Settings(Read());
  return *settings;
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
    *context = new Communicator{ranks, nodes, settings.collnet_min_bytes, settings.pinned};
    return Result::kSuccess;
  } catch (const std::exception& exception) {
    Warn(log, exception.what());
  } catch (...) {
    Warn(log, "an unknown exception");
  }
  return Result::kSystemError;
}

Result CloseTuner(void* context) noexcept {
  delete static_cast<Communicator*>(context);
  return Result::kSuccess;
}

Result TuneCosts(void* context, abi::Function function, size_t bytes, float** cost, int algorithms, int protocols) noexcept {
  // NCCL passes a two-dimensional array under the type of an array of pointers.
  if (context != nullptr)
    tuner::Tune(*static_cast<const Communicator*>(context), function, bytes, {reinterpret_cast<float*>(cost), algorithms, protocols});
  return Result::kSuccess;
}

Result TuneChoice(void* context, abi::Function function, size_t bytes, int collnet_support, int* algorithm, int* protocol) noexcept {
  if (context == nullptr || algorithm == nullptr || protocol == nullptr) return Result::kSuccess;
  if (const auto choice = tuner::Choose(*static_cast<const Communicator*>(context), function, bytes, collnet_support == 1)) {
    *algorithm = static_cast<int>(choice->algorithm);
    *protocol = static_cast<int>(choice->protocol);
  }
  return Result::kSuccess;
}

}  // namespace r2cc::net
