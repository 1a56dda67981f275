// A producer of tensors in a GPU's memory. A step's kernels copy into a ring on the device, at the points or all together at the step's
// end, and decide and publish there; a thread of this producer takes records from there to the ring that readers read. The calls of a step
// launch kernels in the order of the stream that was set, which may be captured: each replay of the graph is a step then, and no call is
// made for it.
#ifndef R2CC_OBSERVE_CUDA_CUDA_PRODUCER_H_
#define R2CC_OBSERVE_CUDA_CUDA_PRODUCER_H_

#include <deque>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/core/clock.h"
#include "base/core/mutex.h"
#include "observe/cuda/arguments.h"
#include "observe/cuda/cuda_device.h"
#include "observe/gather/step_layout.h"
#include "observe/producer/producer.h"
#include "observe/producer/pump.h"
#include "observe/ring/ring_writer.h"

namespace r2cc::observe {

class CudaProducer final : public Producer {
 public:
  // `clock` outlives it. Null and one line.
  static std::unique_ptr<CudaProducer> Open(const ProducerOptions& options, int gpu, const Clock* clock, std::string* error);
  // Parses a GPU's name, "cuda" or "cuda:N"; -1: it is none.
  static int NumberOf(const std::string& device);
  ~CudaProducer() override;

  bool AddLayout(Layout layout, uint32_t* id, std::string* error) override;
  Began Begin(uint32_t layout, Phase phase, const RowChoice& rows, std::string* error) override;
  bool Copy(bool is_tag, size_t index, const TensorSource& source, std::string* error) override;
  bool CopyLate(size_t index, const TensorSource& source, std::string* error) override;
  bool Wants(bool is_tag, size_t index) const override;
  bool Finish(std::string* error) override;
  void Abandon() override;
  bool MustHold(uint32_t layout) const override { return layout < layouts_.size() && layouts_[layout]->must_hold; }
  bool Hold(uint32_t layout, Phase phase, std::span<const TensorSource> tags, std::span<const TensorSource> taps, uint64_t* id,
            std::string* error) override;
  uint64_t released() override;
  // Refused while the stream is captured.
  bool Hash(const TapWork& work, uint64_t* hash, std::string* error) override;

  void SetStream(uint64_t stream) override { stream_ = reinterpret_cast<gpu::Stream>(stream); }
  void SetGroups(uint64_t groups) override;
  Counts counts() override;
  uint64_t cut_off() override;
  bool Flush(Nanos timeout_ns, std::string* error) override;
  // Waits for the GPU. Memory that a graph may still touch stays until the process ends.
  void Close() override;

  RunMemory* memory() override { return memory_.get(); }

 private:
  // The memory that the host and the kernels share, on the host.
  struct Mapped {
    Published published;
    alignas(64) HostWords words;
    alignas(64) uint64_t zero, hash;
  };
  // The device's memory behind its ring: the state, a sum for each entry of a layout, and one for Hash().
  static constexpr uint64_t kHashesAt = RoundUp(sizeof(DeviceState), 256);
  static constexpr uint64_t kHashAt = kHashesAt + (kTapsMax + kTagsMax) * sizeof(HashSum);
  static constexpr uint64_t kStateBytes = kHashAt + sizeof(HashSum);
  struct Known {
    Layout layout;
    uint64_t entries;  // an address
    bool must_hold;    // does not fit twice into the device's ring
  };
  struct Step {
    const Known* known = nullptr;  // null: no step was begun
    StepParameters parameters;
    std::vector<EntryPlace> places;
    std::vector<bool> copied;  // by entry
    std::vector<StepTap> late;
  };

  CudaProducer(const ProducerOptions& options, const Clock* clock, std::unique_ptr<CudaDevice> device, std::unique_ptr<RunMemory> memory);
  bool Prepare(std::string* error);
  void RunCopies();
  // Memory for a step of at most `rows_most` rows.
  bool MakeRoomForRows(uint64_t rows_most, std::string* error);
  bool MakeTap(bool is_tag, size_t index, const TensorSource& source, StepTap* tap, std::string* error);
  // Everything of a step's launches but its taps.
  void SetParameters(const Known& known, uint32_t layout, Phase phase, const RowChoice& rows);
  bool AddressOf(const Tap& tap, const TensorSource& source, uint64_t* address, std::string* error);
  bool LaunchStep(CudaDevice::Kernel kernel, uint32_t blocks, const StepTap* taps, std::string* error);
  bool LaunchFlat(CudaDevice::Kernel kernel, uint32_t blocks, const FlatTap* taps, std::string* error);
  // Why it failed; empty: it did not.
  std::string Failure();
  // Until all that was published has its outcome. False: not within the time.
  bool DrainWithin(Nanos time_ns);

  ProducerOptions options_;
  const Clock* clock_;
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<RunMemory> memory_;
  CudaCopyEngine engine_;
  gpu::Stream stream_ = nullptr;
  uint64_t ring_ = 0, state_ = 0, entries_ = 0, entries_used_ = 0;  // in the device's memory
  uint64_t ring_bytes_;
  // The memory for a step's rows, for at most kept_rows_most_: the last of the list. Graphs may still use the others.
  std::vector<uint64_t> kept_rows_;
  uint64_t kept_rows_most_ = 0;
  Mapped* mapped_ = nullptr;
  bool registered_ = false;
  bool captured_ = false;  // a graph may hold its kernels
  bool closed_ = false;
  std::vector<std::unique_ptr<Known>> layouts_;
  Step step_;
  struct HeldBytes {
    uint64_t id, bytes;
  };
  std::deque<HeldBytes> held_;  // by id
  uint64_t next_hold_ = 1;
  SmallArguments small_{};
  LargeArguments large_{};
  SmallFlatArguments small_flat_{};
  LargeFlatArguments large_flat_{};

  Mutex mutex_;
  RingWriter writer_ R2CC_GUARDED_BY(mutex_);
  std::unique_ptr<Pump> pump_ R2CC_PT_GUARDED_BY(mutex_);  // made before its thread
  bool stop_ R2CC_GUARDED_BY(mutex_) = false;
  CondVar wake_, drained_;
  std::thread copies_;
};

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_CUDA_CUDA_PRODUCER_H_
