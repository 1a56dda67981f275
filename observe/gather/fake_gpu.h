// A device's memory for tests: what a block stores is seen by other blocks and by the host only after a fence of its scope, after the
// kernel's end, or when chance has it, word by word in any order. So a fence that is missing or too narrow is caught on a CPU.
#ifndef R2CC_OBSERVE_GATHER_FAKE_GPU_H_
#define R2CC_OBSERVE_GATHER_FAKE_GPU_H_

#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

namespace r2cc::observe {

class FakeGpu {
  struct Buffer {
    void Resize(size_t words) {
      has.resize(words);
      value.resize(words);
    }
    void Put(size_t word, uint64_t to) {
      if (!has[word]) stored.push_back(word);
      has[word] = 1;
      value[word] = to;
    }
    std::vector<uint8_t> has;
    std::vector<uint64_t> value;
    std::vector<size_t> stored;
  };
  struct View {
    void Resize(size_t words) { device.Resize(words); }
    Buffer device;
    std::vector<Buffer> blocks;
  };

 public:
  FakeGpu(size_t words, size_t producers, uint64_t seed) : system_(words), views_(producers), random_(seed) {
    for (View& view : views_) view.Resize(words);
  }

  // The host's view, and the copy engine's. Addresses are bytes, multiples of 8.
  uint64_t* System(uint64_t at) { return &system_[at / 8]; }
  // By the device itself between kernels: seen by all.
  void Write(uint64_t at, uint64_t value) { system_[at / 8] = value; }

  // One word that is stored and not fenced becomes visible.
  void Drain() {
    View& view = views_[random_() % views_.size()];
    if (random_() % 2 == 0 && !view.blocks.empty()) {
      Buffer& block = view.blocks[random_() % view.blocks.size()];
      if (!block.stored.empty()) MoveOne(&block, AnyOf(block), &view.device);
    } else if (!view.device.stored.empty()) {
      MoveOne(&view.device, AnyOf(view.device), nullptr);
    }
  }

  // The operations of one block of a producer's kernel. `background`: called between operations.
  class Ops {
   public:
    Ops(FakeGpu* device, size_t producer, size_t block, const std::function<void()>* background)
        : device_(device), view_(&device->views_[producer]), block_(block), background_(background) {
      if (view_->blocks.size() <= block) {
        view_->blocks.resize(block + 1);
        for (Buffer& buffer : view_->blocks) buffer.Resize(device->system_.size());
      }
    }
    // One lane. This fake has no numbers smaller than a word.
    static constexpr uint64_t Lane() { return 0; }
    static constexpr uint64_t Lanes() { return 1; }
    template <typename T>
    T Load(uint64_t at) {
      (*background_)();
      return static_cast<T>(Word(at));
    }
    template <typename T>
    T Read(uint64_t at) {
      return Load<T>(at);
    }
    void StoreAlone(uint64_t at, uint64_t value) { Store(at, value); }
    void CopyUnits(uint64_t to, uint64_t from, uint64_t units) { Copy(to, from, units * 16); }
    void CopyAlone(uint64_t to, uint64_t from, uint64_t bytes) { Copy(to, from, bytes); }
    template <typename T>
    T Reduce(const T& value) {
      return value;
    }
    template <typename T>
    void Store(uint64_t at, T value) {
      (*background_)();
      view_->blocks[block_].Put(at / 8, static_cast<uint64_t>(value));
    }
    void Copy(uint64_t to, uint64_t from, uint64_t bytes) {
      for (uint64_t i = 0; i < bytes; i += 8) Store(to + i, Load<uint64_t>(from + i));
    }
    // Another processor's memory: as it is.
    uint64_t LoadSystem(uint64_t at) {
      (*background_)();
      return device_->system_[at / 8];
    }
    void FenceDevice() { device_->MoveAll(&view_->blocks[block_], &view_->device); }
    void FenceSystem() {
      FenceDevice();
      device_->MoveAll(&view_->device, nullptr);
    }
    uint64_t AtomicAdd(uint64_t at, uint64_t value) {
      (*background_)();
      const uint64_t before = view_->device.has[at / 8] ? view_->device.value[at / 8] : device_->system_[at / 8];
      view_->device.Put(at / 8, before + value);
      return before;
    }

   private:
    uint64_t Word(uint64_t at) const {
      const Buffer& own = view_->blocks[block_];
      if (own.has[at / 8]) return own.value[at / 8];
      return view_->device.has[at / 8] ? view_->device.value[at / 8] : device_->system_[at / 8];
    }
    FakeGpu* device_;
    View* view_;
    size_t block_;
    const std::function<void()>* background_;
    friend class FakeGpu;
  };

  // A kernel of the producer has ended.
  void EndKernel(size_t producer) {
    View& view = views_[producer];
    for (Buffer& block : view.blocks) MoveAll(&block, &view.device);
    MoveAll(&view.device, nullptr);
  }

 private:
  // As often as not the latest one: what is published without a fence goes before what it publishes.
  size_t AnyOf(const Buffer& buffer) { return random_() % 2 == 0 ? buffer.stored.size() - 1 : random_() % buffer.stored.size(); }

  void MoveOne(Buffer* from, size_t place, Buffer* to) {
    const size_t word = from->stored[place];
    from->stored[place] = from->stored.back();
    from->stored.pop_back();
    from->has[word] = 0;
    if (to == nullptr)
      system_[word] = from->value[word];
    else
      to->Put(word, from->value[word]);
  }
  void MoveAll(Buffer* from, Buffer* to) {
    while (!from->stored.empty()) MoveOne(from, from->stored.size() - 1, to);
  }

  std::vector<uint64_t> system_;
  std::vector<View> views_;
  std::mt19937_64 random_;
};

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_GATHER_FAKE_GPU_H_
