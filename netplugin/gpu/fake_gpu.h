// Fakes GPUs. Their memory is host memory that only this class's calls see: what a NIC writes there becomes visible after a flush through
// that NIC, and not before. One thread.
#ifndef R2CC_NETPLUGIN_GPU_FAKE_GPU_H_
#define R2CC_NETPLUGIN_GPU_FAKE_GPU_H_

#include <fcntl.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "netplugin/gpu/gpu.h"

namespace r2cc::gpu {

class FakeGpu final : public Gpu {
 public:
  explicit FakeGpu(int count = 1) : count_(count) {}

  // ---- what NICs do, each identified by a name ----

  // The NIC is about to write `bytes` bytes. They go to the memory as NICs see it, which is what Allocate() returned.
  void Placing(const std::string& nic, const std::byte* to, size_t bytes) {
    if (Find(to) != nullptr) pending_[nic].emplace_back(to, bytes);
  }
  // The NIC has read from the GPU: all that it wrote before is visible.
  void Flushed(const std::string& nic, const std::byte* from) {
    if (Find(from) == nullptr) return;
    for (const auto& [to, bytes] : std::exchange(pending_[nic], {}))
      if (Memory* const memory = Find(to); memory != nullptr) std::memcpy(memory->seen.get() + (to - memory->base.get()), to, bytes);
  }
  size_t unseen() const {
    size_t all = 0;
    for (const auto& [nic, writes] : pending_) all += writes.size();
    return all;
  }

  // ---- Gpu ----

  std::vector<int> InUse() override {
    std::vector<int> all;
    for (int gpu = 0; gpu < count_; ++gpu) all.push_back(gpu);
    return all;
  }
  std::optional<int> Of(const void* address) override {
    const Memory* const memory = Find(static_cast<const std::byte*>(address));
    return memory == nullptr ? std::nullopt : std::optional(memory->gpu);
  }
  std::string PciAddress(int gpu) override { return "0000:0" + std::to_string(gpu) + ":00.0"; }
  std::byte* Allocate(int gpu, uint64_t bytes, std::string* error) override {
    *error = "R2CC: cannot find memory on GPU " + std::to_string(gpu) + ": out of memory";
    if (full) return nullptr;
    memory_.push_back({gpu, bytes, std::make_unique<std::byte[]>(bytes), std::make_unique<std::byte[]>(bytes)});
    return memory_.back().base.get();
  }
  void Free(int, std::byte* memory) override {
    std::erase_if(memory_, [memory](const Memory& one) { return one.base.get() == memory; });
  }
  int DmaBuf(int, std::byte*, uint64_t) override { return dma_buf ? open("/dev/null", O_RDONLY | O_CLOEXEC) : -1; }
  bool Copy(int, void* to, const void* from, uint64_t bytes, std::string* error) override {
    *error = "R2CC: cannot copy memory of GPU 0: it is broken";
    if (broken) return false;
    ++copies;
    const auto* const source = static_cast<const std::byte*>(from);
    auto* const target = static_cast<std::byte*>(to);
    const Memory *const read = Find(source), *const written = Find(target);
    const std::byte* const bytes_from = read == nullptr ? source : read->seen.get() + (source - read->base.get());
    if (written == nullptr) {
      std::memcpy(target, bytes_from, bytes);
    } else {
      // NICs see at once what the GPU writes.
      std::memcpy(written->seen.get() + (target - written->base.get()), bytes_from, bytes);
      std::memcpy(target, written->seen.get() + (target - written->base.get()), bytes);
    }
    return true;
  }

  bool full = false, broken = false, dma_buf = true;
  int copies = 0;

 private:
  struct Memory {
    int gpu = 0;
    uint64_t bytes = 0;
    std::unique_ptr<std::byte[]> base, seen;  // as NICs see it, and as the GPU does
  };
  Memory* Find(const std::byte* address) {
    for (Memory& one : memory_)
      if (address >= one.base.get() && address < one.base.get() + one.bytes) return &one;
    return nullptr;
  }

  const int count_;
  std::vector<Memory> memory_;
  std::map<std::string, std::vector<std::pair<const std::byte*, size_t>>> pending_;
};

}  // namespace r2cc::gpu

#endif  // R2CC_NETPLUGIN_GPU_FAKE_GPU_H_
