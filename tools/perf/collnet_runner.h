// Runs an all_reduce through the plugin's CollNet table, as NCCL's proxy does: the vector goes through eight slots of one operation each,
// copied in before it and out after it, as GPUs do, and only the oldest operation is tested. Memory that the plugin must not touch any more
// is filled with a guard pattern, as in Flow.
#ifndef R2CC_TOOLS_PERF_COLLNET_RUNNER_H_
#define R2CC_TOOLS_PERF_COLLNET_RUNNER_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/abi/nccl_types.h"
#include "tools/perf/collnet.h"
#include "tools/perf/idle.h"
#include "tools/perf/options.h"
#include "tools/perf/runner.h"
#include "tools/perf/trace.h"

namespace r2cc::perf {

class CollNetRunner final : public Runner {
 public:
  // NCCL's chain of heads: eight channels of at most 256 KiB in one operation, eight steps.
  static constexpr int kSlots = 8;
  static constexpr size_t kSlotBytes = 2 << 20;

  // Its arguments outlive it. The table is initialised.
  CollNetRunner(CollNet* net, Trace* trace, const Options& options, const Idle& idle, int rank);
  ~CollNetRunner() override;

  Status Listen(std::string* handles) override;
  // The plugin has its own limit for the wait.
  Status Connect(const std::vector<std::string>& all_handles, int64_t timeout_ns) override;
  Status Close() override;
  Status Run(const Work& work) override;
  int64_t duration_ns() const override { return duration_ns_; }
  void CheckAllSlots() override;
  int64_t late_writes() const override { return late_writes_; }
  void TraceOpen(int64_t now_ns) override;
  void Cancel() override { cancelled_ = true; }
  bool running() const override { return running_; }

 private:
  using Handle = std::array<char, abi::kNetHandleBytesMax>;

  uint8_t* From(int64_t operation) { return memory_ + operation % kSlots * kSlotBytes; }
  uint8_t* To(int64_t operation) { return memory_ + (kSlots + operation % kSlots) * kSlotBytes; }
  Status Drive(const Work& work);
  Status Post(const uint8_t* input, size_t bytes, bool* posted);
  Status TakeDone(uint8_t* output, size_t bytes, bool* done);
  Status Wait(int rounds, int64_t progressed_ns) const;
  void CheckSlot(int64_t operation);
  Status Failed(const char* call, abi::Result result) const;

  CollNet* const net_;
  Trace* const trace_;
  const Idle idle_;
  const bool slot_checks_;
  const abi::DataType type_;
  const int rank_;
  const std::string name_;
  uint8_t* memory_ = nullptr;  // slots to send from, then slots to receive in
  Handle handle_{};
  void* listen_comm_ = nullptr;
  void* comm_ = nullptr;
  void* mhandle_ = nullptr;
  std::array<void*, kSlots> requests_{};
  std::array<size_t, kSlots> guarded_{};  // how many bytes of each slot hold the pattern
  int64_t posted_ = 0;                    // operations given to the plugin
  int64_t completed_ = 0;                 // operations that it has reported done
  int64_t waits_since_ns_ = 0;
  int64_t late_writes_ = 0;
  int64_t duration_ns_ = 0;
  std::atomic<bool> cancelled_{false};
  std::atomic<bool> running_{false};
};

}  // namespace r2cc::perf

#endif  // R2CC_TOOLS_PERF_COLLNET_RUNNER_H_
