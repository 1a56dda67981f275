// One producer of the world: its model, its stream of kernels, its copy thread and its ring.
#ifndef R2CC_TESTS_OBSERVE_LANE_H_
#define R2CC_TESTS_OBSERVE_LANE_H_

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "observe/gather/fake_gpu.h"
#include "observe/gather/step_layout.h"
#include "observe/gather/tap_work.h"
#include "observe/producer/pump.h"
#include "observe/producer/self_check.h"
#include "observe/ring/ring_writer.h"

namespace r2cc::observe {

// Copies end late, in any order, and may fail.
class FakeCopyEngine final : public CopyEngine {
 public:
  FakeCopyEngine(FakeGpu* device, std::mt19937_64* random) : device_(device), random_(random) {}

  bool Start(uint64_t from, void* to, uint64_t bytes, uint64_t* ticket) override {
    *ticket = copies_.size();
    copies_.push_back({from, static_cast<uint8_t*>(to), bytes, State::kUnderWay});
    under_way_.push_back(*ticket);
    return true;
  }
  State StateOf(uint64_t ticket) override { return copies_[ticket].state; }
  std::string failure() const override { return "injected"; }

  // One of those under way moves a word, or ends.
  void Step();
  // The next copy that would end fails.
  void FailOne() { fail_one_ = true; }
  uint64_t failed() const { return failed_; }

 private:
  struct One {
    uint64_t from;
    uint8_t* to;
    uint64_t bytes;
    State state;
    uint64_t moved = 0;
  };
  FakeGpu* device_;
  std::mt19937_64* random_;
  std::vector<One> copies_;
  std::vector<uint64_t> under_way_;
  bool fail_one_ = false;
  uint64_t failed_ = 0;
};

// What the world gives to each lane.
struct Shared {
  FakeGpu* device;
  FakeCopyEngine* engine;
  std::mt19937_64* random;
  const std::function<void()>* background;
  uint64_t host_words;  // of all lanes
};

class Lane {
 public:
  static constexpr size_t kWords = 2048;  // of the device's memory
  static constexpr int kSteps = 24;

  Lane(const Shared& shared, uint16_t number, uint64_t base);
  ~Lane();

  // The next operation of its stream, or of a block of the kernel that runs. False: all is done.
  bool Step();
  void TurnPump(Nanos now) { pump_->Turn(now); }
  bool Drained() const { return pump_->Drained(); }
  void Finish() { pump_->Finish(); }

  // What a record of it must hold. Empty: it does.
  std::string Check(const RecordHeader& header, const Layout& layout, const Slots& slots, const uint8_t* bytes) const;
  // The kernels wrote nothing outside of the ring.
  bool GuardsStand() const;

  ControlMemory* control() { return control_; }
  std::span<uint8_t> ring() { return {host_ring_.data(), host_ring_bytes_}; }
  CursorsMemory* cursors() { return cursors_.get(); }
  const Pump& pump() const { return *pump_; }
  const Published& published() const { return *published_; }
  uint64_t steps() const { return launched_; }
  uint64_t ring_bytes() const { return ring_bytes_; }
  uint64_t stubs() const { return stubs_; }
  uint64_t waited() const { return waited_; }
  uint64_t at_points() const { return at_points_; }
  uint64_t flat_taps() const { return flat_taps_; }

 private:
  struct Model {
    Layout layout;
    std::vector<StepTap> taps;  // tags first
    std::vector<StepTap> late;  // those that are copied at the end
    std::vector<bool> at_point;
    StepParameters parameters{};
    std::vector<bool> overwritten;  // before the step's end
  };
  enum class KernelKind { kWait, kKeepRows, kAtPoint, kGather };  // only the last one publishes
  struct Kernel {
    StepParameters parameters;
    KernelKind kind = KernelKind::kGather;
    const std::vector<FlatTap>* flat = nullptr;
    std::vector<int> phases;
    std::vector<StepPlan> plans;  // of each block
    size_t left = 0;
    bool ends = false;
    uint64_t looks = 0;
  };

  uint64_t Random(uint64_t below) { return (*shared_.random)() % below; }
  void MakeModel(int number);
  void SelfCheck(Model* model);
  uint64_t Value(uint64_t step, size_t tap, uint64_t word) const;
  void WriteTensor(const Model& model, size_t tap, uint64_t at, uint64_t step);
  std::vector<uint64_t> IndicesOf(uint64_t step) const;
  void BeginStep();
  void BeginHeld(int model, uint64_t step);
  void Place(Model* model, uint64_t at);
  StepParameters Parameters(const Model& model, std::vector<StepTap>* taps) const;
  void WriteRows(const std::vector<uint64_t>& indices);
  void Launch(const StepParameters& parameters, KernelKind kind, const std::vector<FlatTap>* flat = nullptr);
  bool StepKernel();

  Shared shared_;
  uint16_t number_;
  uint64_t state_, published_at_, ring_, guard_, tensors_, indices_, kept_rows_, held_, entries_, hashes_;
  uint64_t ring_bytes_, host_ring_bytes_, rows_, blocks_;
  std::vector<Model> models_;
  std::vector<uint8_t> host_ring_;
  ControlMemory* control_;
  std::unique_ptr<CursorsMemory> cursors_;
  std::unique_ptr<RingWriter> writer_;
  Published* published_;
  std::unique_ptr<Pump> pump_;
  std::deque<std::function<void()>> stream_;
  Kernel kernel_;
  std::vector<int> model_of_step_;
  bool count_is_known_ = false;
  uint64_t block_looks_ = 0;                // a step looks so often for room
  bool changes_rows_ = false;               // within a step
  std::deque<std::vector<StepTap>> alone_;  // of the launches at points
  std::deque<std::vector<FlatTap>> flat_;   // of the launches at steps' ends
  uint64_t chunk_bytes_ = 16;
  uint64_t launched_ = 0, stubs_ = 0, at_points_ = 0, flat_taps_ = 0, waited_ = 0, next_hold_ = 1;
};

}  // namespace r2cc::observe

#endif  // R2CC_TESTS_OBSERVE_LANE_H_
