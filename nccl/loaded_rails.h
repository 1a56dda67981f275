// Rails over R2CC's plugin and tuner, wherever NCCL has opened them in this process.
#ifndef R2CC_NCCL_LOADED_RAILS_H_
#define R2CC_NCCL_LOADED_RAILS_H_

#include <mutex>

#include "nccl/seams.h"
#include "netplugin/abi/seat_v1.h"

namespace r2cc::nccl {

class LoadedRails final : public Rails {
 public:
  State Look() override;
  void WatchForSeat(size_t ranks) override;
  bool MarkSeat() override;

 private:
  // Looked for until they are there; their libraries are never closed.
  bool Find();

  std::mutex mutex_;
  const abi::SeatTableV1* plugin_ = nullptr;
  const abi::SeatTunerTableV1* tuner_ = nullptr;
};

}  // namespace r2cc::nccl

#endif  // R2CC_NCCL_LOADED_RAILS_H_
