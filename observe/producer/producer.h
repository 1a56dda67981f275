// Hands tensors to readers, step by step: a step is Begin(), Copy() of what is copied at once, CopyLate() of the others, Finish(). One
// thread at a time.
#ifndef R2CC_OBSERVE_PRODUCER_PRODUCER_H_
#define R2CC_OBSERVE_PRODUCER_PRODUCER_H_

#include <cstdint>
#include <span>
#include <string>

#include "base/core/clock.h"
#include "observe/admission/admission.h"
#include "observe/gather/tap_work.h"
#include "observe/record/account.h"
#include "observe/record/layout.h"
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
  uint64_t device_bytes = uint64_t{64} << 20;  // of a GPU's ring
  uint64_t held_bytes = uint64_t{64} << 20;    // of tensors on a GPU that wait for their copies
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
  // On a GPU: the address of the count. Null: `count` is the value.
  const void* count_at = nullptr;
  uint64_t count_bytes = 8;
};

class Producer {
 public:
  virtual ~Producer() = default;

  // Its id gets the next number. False and one line: it makes no sense, or does not fit twice into the rings.
  virtual bool AddLayout(Layout layout, uint32_t* id, std::string* error) = 0;

  enum class Began { kTaken, kNotTaken, kRefused };
  // The step has its outcome with this call if it is not taken. kRefused, and `error`: nothing is counted.
  virtual Began Begin(uint32_t layout, Phase phase, const RowChoice& rows, std::string* error) = 0;
  // Copies a tag or tap as it is now. False and one line: the step cannot be whole any more, and was counted as one that did not end.
  virtual bool Copy(bool is_tag, size_t index, const TensorSource& source, std::string* error) = 0;
  // Copies a tap as it is when the step ends, or before.
  virtual bool CopyLate(size_t index, const TensorSource& source, std::string* error) = 0;
  // In force: is this tap in the record of the step that was begun, and not copied yet?
  virtual bool Wants(bool is_tag, size_t index) const = 0;
  virtual bool Finish(std::string* error) = 0;
  // Whether a step of the layout is too large for Begin(), and goes by Hold(): its record is made of the tensors where they are.
  virtual bool MustHold(uint32_t) const { return false; }
  // A whole step, by the layout's order, without holes. `*id`: the tensors stay as they are until released() is as much. 0: they need not,
  // as the step was dropped. False and one line: nothing is counted.
  virtual bool Hold(uint32_t layout, Phase phase, std::span<const TensorSource> tags, std::span<const TensorSource> taps, uint64_t* id,
                    std::string* error);
  virtual uint64_t released() { return 0; }
  // The step does not end. Nothing if none was begun.
  virtual void Abandon() = 0;
  // The hash of a tensor as it is now, for a self-check. Waits for the device.
  virtual bool Hash(const TapWork& work, uint64_t* hash, std::string* error) = 0;

  // The calls that follow work in this order of the device's: a CUDA stream.
  virtual void SetStream(uint64_t) {}
  // In force from the step after the next one on.
  virtual void SetGroups(uint64_t groups) = 0;
  virtual Counts counts() = 0;
  virtual uint64_t cut_off() = 0;
  // All steps until now have their outcome in the ring. False and one line: not within the time.
  virtual bool Flush(Nanos timeout_ns, std::string* error) = 0;
  virtual void Close() = 0;

  virtual RunMemory* memory() = 0;
};

inline bool Producer::Hold(uint32_t, Phase, std::span<const TensorSource>, std::span<const TensorSource>, uint64_t*, std::string* error) {
  *error = "steps of this device are not held";
  return false;
}

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_PRODUCER_PRODUCER_H_
