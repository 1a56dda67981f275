// Rails over R2CC's plugin and tuner, wherever NCCL has opened them in this process.
#ifndef R2CC_NCCL_LOADED_RAILS_H_
#define R2CC_NCCL_LOADED_RAILS_H_

#include <optional>

#include "base/core/mutex.h"
#include "nccl/seams.h"
#include "netplugin/abi/seat_v2.h"

namespace r2cc::nccl {

class LoadedRails final : public Rails {
 public:
  State Look() override;
  void WatchForChild(size_t ranks) override;
  bool MarkChild() override;
  void WatchAllReduce(size_t bytes) override;
  uint64_t WatchedCommunicator() override;
  bool SetWay(uint64_t number, plan::Way way) override;
  void Report(uint32_t communicator, uint64_t call, const plan::WayDecision& decision) override;

 private:
  struct Tables {
    const abi::SeatTableV2* plugin = nullptr;
    const abi::SeatTunerTableV3* tuner = nullptr;
  };
  // Looked for until they are there; their libraries are never closed. Nothing: one of them is not there yet.
  std::optional<Tables> Find();

  Mutex mutex_;
  Tables found_ R2CC_GUARDED_BY(mutex_);
};

}  // namespace r2cc::nccl

#endif  // R2CC_NCCL_LOADED_RAILS_H_
