// A producer over host memory: the same record and counts as on a GPU, copied on the calling thread, straight into the ring that readers
// read. A step is Begin(), Copy() of each tag and tap that is on, Finish(). One thread at a time.
#ifndef R2CC_OBSERVE_PRODUCER_HOST_PRODUCER_H_
#define R2CC_OBSERVE_PRODUCER_HOST_PRODUCER_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/core/clock.h"
#include "observe/admission/admission.h"
#include "observe/producer/producer.h"
#include "observe/ring/ring_writer.h"
#include "observe/ring/run_memory.h"

namespace r2cc::observe {

class HostProducer final : public Producer {
 public:
  // `clock` outlives it. Null and one line if the memory cannot be had.
  static std::unique_ptr<HostProducer> Open(const ProducerOptions& options, const Clock* clock, std::string* error);
  ~HostProducer() override;

  bool AddLayout(Layout layout, uint32_t* id, std::string* error) override;
  Began Begin(uint32_t layout, Phase phase, const RowChoice& rows, std::string* error) override;
  bool Copy(bool is_tag, size_t index, const TensorSource& source, std::string* error) override;
  bool CopyLate(size_t index, const TensorSource& source, std::string* error) override { return Copy(false, index, source, error); }
  bool Wants(bool is_tag, size_t index) const override;
  bool Finish(std::string* error) override;
  void Abandon() override;
  bool Hash(const TapWork& work, uint64_t* hash, std::string* error) override;

  void SetGroups(uint64_t groups) override { host_words_.groups = groups; }
  Counts counts() override { return counts_; }
  uint64_t cut_off() override { return writer_.cut_off(); }
  bool Flush(Nanos, std::string*) override { return true; }
  void Close() override;

  RunMemory* memory() override { return memory_.get(); }

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
  // A step has its outcome: the host's values are read for the next one.
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
