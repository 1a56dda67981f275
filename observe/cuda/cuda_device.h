// One GPU as tensor taps use it: kernels, memory and copies, in its primary context. Each call but those of a CopyEngine may be made by any
// thread and while a stream is captured. Costs: CopyIn() and Synchronize() wait for the GPU, the others do not.
#ifndef R2CC_OBSERVE_CUDA_CUDA_DEVICE_H_
#define R2CC_OBSERVE_CUDA_CUDA_DEVICE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <string>

#include "base/core/cuda/driver.h"
#include "observe/producer/pump.h"

namespace r2cc::observe {

class CudaDevice {
 public:
  // Null and one line: no driver, no such GPU, or a library that was built without kernels.
  static std::unique_ptr<CudaDevice> Open(int gpu, std::string* error);

  enum class Kernel { kGatherSmall, kGatherLarge, kFlatSmall, kFlatLarge, kInline, kRows, kHash, kWait };
  static constexpr size_t kKernels = 8;
  // `arguments` is copied. False and one line.
  bool Launch(Kernel kernel, uint32_t blocks, void* arguments, gpu::Stream stream, std::string* error);
  // Whether this driver takes LargeArguments and LargeFlatArguments.
  bool takes_large() const { return takes_large_; }

  // 0 and one line: there is none.
  uint64_t Allocate(uint64_t bytes, std::string* error);
  void Free(uint64_t memory);
  // Host memory that the GPU reads and writes at the same address; zero. Null and one line.
  void* AllocateMapped(uint64_t bytes, std::string* error);
  void FreeMapped(void* memory);
  // The copy engine reads and writes it at the link's speed from now on.
  bool Register(void* memory, uint64_t bytes, std::string* error);
  void Unregister(void* memory);
  // To the device's memory, done when it returns; not in the order of any stream.
  bool CopyIn(uint64_t to, const void* from, uint64_t bytes, std::string* error);
  // In the order of the stream, to memory of AllocateMapped() or back.
  bool CopyInOrder(uint64_t to, uint64_t from, uint64_t bytes, gpu::Stream stream, std::string* error);
  bool Wait(gpu::Stream stream, std::string* error);
  // All that the process has launched has ended.
  bool Synchronize(std::string* error);

  bool IsCapturing(gpu::Stream stream);
  // In this GPU's memory.
  bool Owns(const void* address);

  int gpu() const { return gpu_; }
  gpu::Driver* driver() { return driver_; }

 private:
  CudaDevice(gpu::Driver* driver, int gpu) : driver_(driver), gpu_(gpu) {}
  bool Load(std::string* error);
  const gpu::LibcudaCalls& calls() const { return driver_->calls(); }

  gpu::Driver* driver_;
  int gpu_;
  bool takes_large_ = false;
  std::array<gpu::Function, kKernels> kernels_{};
  gpu::Stream own_ = nullptr;
};

// Copies behind all others of the GPU's streams. For one thread, within the context.
class CudaCopyEngine final : public CopyEngine {
 public:
  explicit CudaCopyEngine(CudaDevice* device) : device_(device) {}
  // False and one line. Within the context.
  bool Open(std::string* error);

  bool Start(uint64_t from, void* to, uint64_t bytes, uint64_t* ticket) override;
  State StateOf(uint64_t ticket) override;
  std::string failure() const override { return failure_; }

 private:
  static constexpr uint64_t kEvents = 2 * Pump::kPiecesMax;

  CudaDevice* device_;
  gpu::Stream stream_ = nullptr;
  std::array<gpu::Event, kEvents> events_{};
  uint64_t started_ = 0;
  std::string failure_;
};

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_CUDA_CUDA_DEVICE_H_
