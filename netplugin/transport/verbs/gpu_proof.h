// Proves with data, both ways, that a device reaches the memory of a GPU, before any data of the job uses that path. A successful
// registration proves nothing: with some platforms' IOMMU or access control between the two, bytes go elsewhere.
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
    // Yields the processor while it waits for the device.
    std::function<void()> pause;
  };
  explicit GpuProof(const Options& options) : options_(options) {}

  // Uses memory that is registered like the job's of that kind. Takes milliseconds and two megabytes of the GPU. On failure false, and one
  // line in `*error` that names both. MAY BLOCK.
  bool Show(const std::shared_ptr<Device>& device, const LoopbackPair::Options& pair, int gpu, MemoryKind kind, std::string* error) const;

 private:
  struct Means;
  // Empty: the proof succeeded.
  std::string Try(Means* means) const;
  // Waits until all requests of the pair have ended well, but not for long.
  bool Await(LoopbackPair* pair, uint32_t requests) const;

  const Options options_;
};

// Keeps the results, one for each device, GPU and kind of memory of the process. Any thread.
class GpuPaths {
 public:
  explicit GpuPaths(const GpuProof::Options& options) : proof_(options) {}

  // `*error`: the line, also if an earlier call found it. MAY BLOCK.
  bool Proved(const std::shared_ptr<Device>& device, const LoopbackPair::Options& pair, int gpu, MemoryKind kind, std::string* error);

 private:
  // By device as it was opened: a device that was lost and came back counts as another.
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
  Mutex mutex_;  // held during a proof: other threads need the same result
  std::map<Key, std::string, Order> errors_ R2CC_GUARDED_BY(mutex_);
};

}  // namespace r2cc::net::verbs

#endif  // R2CC_NETPLUGIN_TRANSPORT_VERBS_GPU_PROOF_H_
