// A producer over host memory: the same record and counts as on a GPU, copied on the calling thread, straight into the ring that readers
// read. A step is Begin(), Copy() of each tag and tap that is on, Finish(). One thread at a time.
#ifndef R2CC_OBSERVE_PRODUCER_HOST_PRODUCER_H_
#define R2CC_OBSERVE_PRODUCER_HOST_PRODUCER_H_

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "observe/admission/admission.h"
#include "observe/gather/tap_work.h"
#include "observe/record/account.h"
#include "observe/record/layout.h"
#include "observe/ring/ring_writer.h"
#include "observe/ring/run_memory.h"

namespace r2cc::observe {

struct ProducerOptions {
  std::string run;
  uint32_t rank = 0;
  uint64_t ring_bytes = uint64_t{512} << 20;
  uint64_t every = 1;
  uint64_t phases = 3;
  Nanos block_ns = 0;  // a step waits for readers at most so long; 0: it is dropped at once
  Nanos reader_timeout_ns = 5 * kNanosPerSecond;
};

struct TensorSource {
  const void* data = nullptr;
  std::span<const uint64_t> shape;
  std::span<const int64_t> strides;  // in bytes; empty: without holes
};

// Without indices the first `count` rows.
struct RowChoice {
  uint64_t count = 0;
  const void* indices = nullptr;
  uint64_t index_bytes = 8;
};

class HostProducer {
 public:
  // `clock` outlives it. Null and one line if the memory cannot be had.
  static std::unique_ptr<HostProducer> Open(const ProducerOptions& options, const Clock* clock, std::string* error);
  ~HostProducer();

  // Its id gets the next number. False and one line: it makes no sense, or does not fit twice into the ring.
  bool AddLayout(Layout layout, uint32_t* id, std::string* error);

  enum class Began { kTaken, kNotTaken, kRefused };
  // The step has its outcome with this call if it is not taken. kRefused, and `error`: nothing is counted.
  Began Begin(uint32_t layout, Phase phase, const RowChoice& rows, std::string* error);
  // False and one line: the step cannot be whole any more, and was counted as one that did not end.
  bool Copy(bool is_tag, size_t index, const TensorSource& source, std::string* error);
  // In force: is this tap in the record of the step that was begun, and not copied yet?
  bool Wants(bool is_tag, size_t index) const;
  bool Finish(std::string* error);
  // The step does not end. Nothing if none was begun.
  void Abandon();

  // In force from the step after the next one on.
  void SetGroups(uint64_t groups) { host_words_.groups = groups; }
  const Counts& counts() const { return counts_; }
  uint64_t cut_off() const { return writer_.cut_off(); }
  void Close();

  RunMemory* memory() { return memory_.get(); }

 private:
  struct Step {
    const Layout* layout;
    Slots slots;
    RecordHeader header;
    RowList rows;
    std::vector<uint64_t> indices;
    uint64_t index_greatest;
    uint8_t* to;  // null: no step was begun
    std::vector<bool> tags_copied, taps_copied;
  };

  HostProducer(const ProducerOptions& options, const Clock* clock, std::unique_ptr<RunMemory> memory);
  uint8_t* ReserveWithin(uint64_t bytes);
  // A step has its outcome: what the host says is read for the next one.
  void Counted(uint64_t Counts::*what);

  ProducerOptions options_;
  const Clock* clock_;
  std::unique_ptr<RunMemory> memory_;
  RingWriter writer_;
  HostWords host_words_, words_;
  std::vector<std::unique_ptr<Layout>> layouts_;
  Counts counts_;
  Step step_{};
  bool closed_ = false;
};

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_PRODUCER_HOST_PRODUCER_H_
