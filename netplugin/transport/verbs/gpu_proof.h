// Whether a device really reaches the memory of a GPU: shown with data, both ways, before anything of the job travels there. That a
// registration succeeds proves nothing: with some platforms' IOMMU or access control between the two, bytes go elsewhere.
#ifndef R2CC_NETPLUGIN_TRANSPORT_VERBS_GPU_PROOF_H_
#define R2CC_NETPLUGIN_TRANSPORT_VERBS_GPU_PROOF_H_

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <tuple>

#include "base/core/clock.h"
#include "base/core/mutex.h"
#include "netplugin/config/log.h"
#include "netplugin/flow/memory.h"
#include "netplugin/gpu/gpu.h"
#include "netplugin/transport/verbs/device.h"
#include "netplugin/transport/verbs/loopback_pair.h"

namespace r2cc::net::verbs {

class GpuProof {
 public:
  struct Options {
    gpu::Gpu* gpu = nullptr;
    const Clock* clock = nullptr;
    std::function<uint32_t()> random;
    // While it waits for the device: gives others the processor.
    std::function<void()> pause;
  };
  explicit GpuProof(const Options& options) : options_(options) {}

  // With memory registered as the job's of that kind would be. It takes milliseconds and two megabytes of the GPU. False, and one line in
  // `*error` that names both. MAY BLOCK.
  bool Show(const std::shared_ptr<Device>& device, const LoopbackPair::Options& pair, int gpu, MemoryKind kind, std::string* error) const;

 private:
  struct Means;
  // Empty: it is as it should be.
  std::string Try(Means* means) const;
  // All requests of the pair have ended well, soon.
  bool Await(LoopbackPair* pair, uint32_t requests) const;

  const Options options_;
};

// What was found, once for each device, GPU and kind of memory of the process. Any thread.
class GpuPaths {
 public:
  explicit GpuPaths(const GpuProof::Options& options) : proof_(options) {}

  // `*error`: the line, also when it was found before. MAY BLOCK.
  bool Proved(const std::shared_ptr<Device>& device, const LoopbackPair::Options& pair, int gpu, MemoryKind kind, std::string* error);

 private:
  // By device as it was opened: one that was lost and came back is another.
  struct Order {
    template <typename Key>
    bool operator()(const Key& a, const Key& b) const {
      const auto& [device_a, gpu_a, kind_a] = a;
      const auto& [device_b, gpu_b, kind_b] = b;
      if (device_a.owner_before(device_b)) return true;
      if (device_b.owner_before(device_a)) return false;
      return std::tie(gpu_a, kind_a) < std::tie(gpu_b, kind_b);
    }
  };
  using Key = std::tuple<std::weak_ptr<Device>, int, MemoryKind>;

  const GpuProof proof_;
  Mutex mutex_;  // held while something is proved: others want to know the same
  std::map<Key, std::string, Order> errors_ R2CC_GUARDED_BY(mutex_);
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_GPU_PROOF_H_
