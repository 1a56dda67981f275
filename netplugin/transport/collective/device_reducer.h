// Contributions in the memory of a GPU are added up there, and those in host memory by somebody else.
//
// What the GPU's stream does not take, because it is not all in that GPU's memory or because there are too many sources, is copied to the
// host and added up by the caller's thread, with the same bits: slow, and seldom.
#ifndef R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_DEVICE_REDUCER_H_
#define R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_DEVICE_REDUCER_H_

#include <atomic>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "netplugin/collnet/reducer.h"
#include "netplugin/gpu/gpu.h"
#include "netplugin/gpu/reduction_stream.h"

namespace r2cc::net {

// One thread; that of SetStream() may be another.
class DeviceReducer final : public collnet::Reducer {
 public:
  // `host` is for host memory. `gpu`: null where there is none. Both outlive this and what it returns.
  DeviceReducer(collnet::Reducer* host, gpu::Gpu* gpu) : host_(host), gpu_(gpu) {}

  // Of that GPU; outlives this and what it returns. Once.
  void SetStream(int gpu, gpu::ReductionStream* stream) {
    number_ = gpu;
    stream_.store(stream, std::memory_order_release);
  }

  std::unique_ptr<Reduction> Begin(abi::DataType type, abi::RedOp op, const std::vector<Buffer>& sources, Buffer out,
                                   size_t count) override;

 private:
  std::string AddUpThroughHost(abi::DataType type, abi::RedOp op, const std::vector<Buffer>& sources, Buffer out, size_t count);

  collnet::Reducer* const host_;
  gpu::Gpu* const gpu_;
  int number_ = -1;
  std::atomic<gpu::ReductionStream*> stream_{nullptr};
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_COLLECTIVE_DEVICE_REDUCER_H_
