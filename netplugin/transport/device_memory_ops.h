// Copies between host memory and that of GPUs.
#ifndef R2CC_NETPLUGIN_TRANSPORT_DEVICE_MEMORY_OPS_H_
#define R2CC_NETPLUGIN_TRANSPORT_DEVICE_MEMORY_OPS_H_

#include <cstdlib>
#include <string>
#include <utility>

#include "netplugin/config/log.h"
#include "netplugin/flow/memory_ops.h"
#include "netplugin/gpu/gpu.h"

namespace r2cc::net {

class DeviceMemoryOps final : public MemoryOps {
 public:
  // Outlives this.
  DeviceMemoryOps(gpu::Gpu* gpu, LogFn log) : gpu_(gpu), log_(std::move(log)) {}

 protected:
  // Rare: messages that go through the host are copied before they are posted. A GPU that takes no copy any more cannot run the job either.
  void CopyDevice(const Buffer& to, const Buffer& from, size_t bytes) override {
    std::string error;
    if (gpu_->Copy((to.is_device() ? to : from).memory->gpu, to.data, from.data, bytes, &error)) return;
    log_(LogLevel::kWarn, error);
    std::abort();
  }

 private:
  gpu::Gpu* const gpu_;
  const LogFn log_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_DEVICE_MEMORY_OPS_H_
