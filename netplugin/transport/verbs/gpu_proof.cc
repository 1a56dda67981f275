#include "netplugin/transport/verbs/gpu_proof.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <vector>

#include "base/core/unique_fd.h"
#include "netplugin/flow/tuning.h"

namespace r2cc::net::verbs {
namespace {

// Several packets, and several lines of each cache on the way.
constexpr uint32_t kPatternBytes = 16 * 1024;
constexpr uint64_t kGpuBytes = 2 << 20;
constexpr uint32_t kAccess = kLocalWrite | kRemoteWrite | kRemoteRead | kRelaxedOrdering;

std::string Failed(const char* what, int error) { return std::string(what) + ": " + std::strerror(error); }

}  // namespace

struct GpuProof::Means {
  std::shared_ptr<Device> device;
  LoopbackPair::Options pair_options;
  int gpu = 0;
  MemoryKind kind = MemoryKind::kCuda;
  std::byte* memory = nullptr;  // of the GPU
};

bool GpuProof::Await(LoopbackPair* pair, uint32_t requests) const {
  const Nanos until = options_.clock->Now() + tuning::kGpuProofMost;
  while (requests > 0) {
    uint32_t ended = 0;
    if (!pair->Poll(&ended) || options_.clock->Now() >= until) return false;
    requests -= ended;
    if (ended == 0) options_.pause();
  }
  return true;
}

std::string GpuProof::Try(Means* means) const {
  Verbs* const verbs = means->device->verbs();
  int failed = 0;
  const auto of = Domain::Allocate(means->device, &failed);
  if (of == nullptr) return Failed("there is no protection domain for it", failed);
  const DomainId domain = of->id();
  // Ended in the reverse order: the pair before what it reaches.
  struct Registered {
    Verbs* verbs;
    MemoryRegion region = {};
    ~Registered() {
      if (region.id != MemoryRegionId{}) verbs->Deregister(region.id);
    }
  };
  // What is sent, and room for what comes.
  std::vector<std::byte> host(size_t{2} * kPatternBytes);
  Registered host_region{verbs}, gpu_region{verbs};
  failed = verbs->Register(domain, host.data(), host.size(), kAccess, &host_region.region);
  if (failed != 0) return Failed("host memory cannot be registered", failed);
  if (means->kind == MemoryKind::kDmaBuf) {
    const UniqueFd descriptor(options_.gpu->DmaBuf(means->gpu, means->memory, kGpuBytes));
    if (!descriptor) return "the driver gives no dma-buf";
    failed = verbs->RegisterDmaBuf(domain, descriptor.get(), 0, kGpuBytes, reinterpret_cast<uintptr_t>(means->memory), kAccess,
                                   &gpu_region.region);
  } else {
    failed = verbs->Register(domain, means->memory, kGpuBytes, kAccess, &gpu_region.region);
  }
  if (failed != 0) return Failed("its memory cannot be registered", failed);
  LoopbackPair pair(of, means->pair_options);
  std::string error;
  if (!pair.Make(&error)) return error;

  const auto pattern = [&](std::byte* at) {
    for (uint32_t i = 0; i < kPatternBytes; ++i) at[i] = static_cast<std::byte>(options_.random());
  };
  std::byte *const one = host.data(), *const other = host.data() + kPatternBytes;
  const auto gpu_address = reinterpret_cast<uintptr_t>(means->memory);
  // To the GPU, which copies what it sees.
  pattern(one);
  if (pair.Write(gpu_address, gpu_region.region.remote_key, one, host_region.region.local_key, kPatternBytes) != 0 ||
      pair.Flush(means->memory, gpu_region.region.remote_key) != 0 || !Await(&pair, 2))
    return "a write there fails";
  if (!options_.gpu->Copy(means->gpu, other, means->memory, kPatternBytes, &error)) return error;
  if (std::memcmp(one, other, kPatternBytes) != 0) return "what is written there does not arrive";
  // And from there.
  pattern(one);
  std::memset(other, 0, kPatternBytes);
  if (!options_.gpu->Copy(means->gpu, means->memory, one, kPatternBytes, &error)) return error;
  if (pair.Write(reinterpret_cast<uintptr_t>(other), host_region.region.remote_key, means->memory, gpu_region.region.local_key,
                 kPatternBytes) != 0 ||
      pair.Flush(other, host_region.region.remote_key) != 0 || !Await(&pair, 2))
    return "a read there fails";
  return std::memcmp(one, other, kPatternBytes) == 0 ? "" : "what is read there is not what the GPU wrote";
}

bool GpuProof::Show(const std::shared_ptr<Device>& device, const LoopbackPair::Options& pair, int gpu, MemoryKind kind,
                    std::string* error) const {
  Means means{.device = device, .pair_options = pair, .gpu = gpu, .kind = kind};
  means.memory = options_.gpu->Allocate(gpu, kGpuBytes, error);
  if (means.memory == nullptr) return false;
  const std::string why = Try(&means);
  options_.gpu->Free(gpu, means.memory);
  if (!why.empty())
    *error = "R2CC: the RDMA device " + device->info().name + " does not reach the memory of GPU " + std::to_string(gpu) +
             (kind == MemoryKind::kDmaBuf ? " by dma-buf: " : " by peer memory: ") + why;
  return why.empty();
}

bool GpuPaths::Proved(const std::shared_ptr<Device>& device, const LoopbackPair::Options& pair, int gpu, MemoryKind kind,
                      std::string* error) {
  const MutexLock lock(mutex_);
  std::erase_if(errors_, [](const auto& entry) { return std::get<0>(entry.first).expired(); });
  const Key key{device, gpu, kind};
  auto found = errors_.find(key);
  if (found == errors_.end()) {
    std::string line;
    if (proof_.Show(device, pair, gpu, kind, &line)) line.clear();
    found = errors_.emplace(key, std::move(line)).first;
  }
  if (!found->second.empty()) *error = found->second;
  return found->second.empty();
}

}  // namespace r2cc::net::verbs
