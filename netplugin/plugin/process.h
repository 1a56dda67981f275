// Holds the one state of a process: its rails and its engine, shared by all communicators and table versions.
#ifndef R2CC_NETPLUGIN_PLUGIN_PROCESS_H_
#define R2CC_NETPLUGIN_PLUGIN_PROCESS_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/core/mutex.h"
#include "netplugin/abi/nccl_types.h"
#include "netplugin/abi/profile_v1.h"
#include "netplugin/config/config.h"
#include "netplugin/gpu/libcuda.h"
#include "netplugin/plugin/pending_connects.h"
#include "netplugin/rails/rails.h"
#include "netplugin/transport/collective/reduce_workers.h"
#include "netplugin/transport/engine.h"

namespace r2cc::net {

class Process {
 public:
  // Never destroyed: NCCL may call at any time, even while the process exits.
  static Process& Get();

  // Reads the environment and starts the engine, once. NCCL 2.22 reloads plugins without calling init, so every entry point comes here.
  // Not ok: one line has been logged.
  abi::Result Start();

  void SetLogger(abi::Logger logger) { logger_.store(logger); }
  void Log(LogLevel level, const std::string& line) const { Log(level, "", line.c_str()); }
  // Logs both as one line. Allocates no memory.
  void Log(LogLevel level, const char* begin, const char* end) const;

  // v11 and later: one context per communicator.
  void AddContext() { ++contexts_; }
  void RemoveContext();

  const std::vector<Rail>& rails() const { return rails_; }
  // The name of each for NCCL: with its RDMA device, as the process found it at its start.
  const std::string& device_name(size_t rail) const { return device_names_[rail]; }
  Engine& engine() { return *engine_; }
  gpu::Libcuda& gpu() { return gpu_; }
  Nanos Now() const { return clock_.Now(); }
  // R2CC_DEADLINE_MS.
  Nanos deadline() const { return deadline_; }
  Nanos collnet_deadline() const { return collnet_deadline_; }
  // The job has turned CollNet on: R2CC_MODE=3, or NCCL_COLLNET_ENABLE in the environment.
  bool collnet() const { return collnet_; }
  // The engine runs. Does not start it.
  bool is_running() const { return ready_.load(std::memory_order_acquire); }
  // A hash of the node's name. 0 until the engine runs.
  uint64_t node_key() const { return is_running() ? node_key_ : 0; }
  // Sets the function that names the operations that a stall held up. False: another one is set already.
  bool AskForHeld(abi::HeldOperationsV1 held) {
    abi::HeldOperationsV1 none = nullptr;
    return held_.compare_exchange_strong(none, held) || none == held;
  }
  // The first call starts them. On failure, without descriptors for them, null and one line in `error`.
  ReduceWorkers* reduce_workers(std::string* error);

  PendingConnects& pending_connects() { return pending_connects_; }

 private:
  Process() = default;
  abi::Result StartLocked() R2CC_REQUIRES(mutex_);
  static void AtExit();

  Mutex mutex_;
  bool started_ R2CC_GUARDED_BY(mutex_) = false;
  abi::Result result_ R2CC_GUARDED_BY(mutex_) = abi::Result::kInternalError;  // of the start, unless it throws
  std::atomic<bool> ready_{false};                                            // started well, and has not ended
  std::atomic<abi::Logger> logger_{nullptr};
  std::atomic<LogLevel> level_{LogLevel::kWarn};
  std::atomic<int> contexts_{0};
  std::atomic<abi::HeldOperationsV1> held_{nullptr};
  // The start writes these, before `ready_`.
  std::vector<Rail> rails_;
  std::vector<std::string> device_names_;
  gpu::Libcuda gpu_;
  std::unique_ptr<Engine> engine_;
  SteadyClock clock_;
  Nanos deadline_ = 0;
  Nanos collnet_deadline_ = 0;
  bool collnet_ = false;
  uint64_t node_key_ = 0;
  bool prints_last_line_ R2CC_GUARDED_BY(mutex_) = false;  // rank 0; every process if no launcher sets the rank
  std::unique_ptr<ReduceWorkers> reduce_workers_ R2CC_GUARDED_BY(mutex_);
  PendingConnects pending_connects_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_PLUGIN_PROCESS_H_
