// A segment in memory: several records as one file of safetensors, and its entry in a manifest. Pure.
//
// A tensor's name is STEP/TAP; a tag's STEP/#TAG; STEP/@ is the record's header, 64 bytes. Statistics are bytes, 24 a row.
#ifndef R2CC_OBSERVE_SINK_SEGMENT_H_
#define R2CC_OBSERVE_SINK_SEGMENT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "observe/ring/ring_reader.h"

namespace r2cc::observe {

class SegmentBuilder {
 public:
  explicit SegmentBuilder(std::string run) : run_(std::move(run)) {}

  void Add(const RecordView& view);
  // The record that was added last was no record any more: it counts as missed.
  void Undo();
  bool empty() const { return records_ == 0; }
  uint64_t bytes() const { return data_.size(); }
  uint64_t records() const { return records_; }

  // The file's bytes but for the data, which follow: length, names, padding.
  std::string Head() const;
  const std::vector<uint8_t>& data() const { return data_; }
  // `{"segment": ...}` with a newline.
  std::string ManifestLine(const std::string& name, uint64_t file_bytes, uint32_t crc32c) const;
  // `{"lost": ...}`: the same records, which no file has.
  std::string LostLine(const std::string& why) const;
  void Clear();

 private:
  void AddTensor(const std::string& name, const char* dtype, const std::vector<uint64_t>& shape, const uint8_t* bytes, uint64_t count);
  std::string Fields() const;

  const std::string run_;
  std::vector<uint8_t> data_;
  std::string tensors_;
  std::string gaps_;
  uint64_t records_ = 0, first_step_ = 0, last_step_ = 0;
  size_t data_before_ = 0, tensors_before_ = 0;
};

// `{"gap": ...}` without braces: [first step that is missing, dropped_device, dropped_host, unwanted, missed].
std::string GapText(uint64_t from, const Counts& gap);
// Text within quotes of JSON.
std::string JsonText(const std::string& text);

}  // namespace r2cc::observe

#endif  // R2CC_OBSERVE_SINK_SEGMENT_H_
