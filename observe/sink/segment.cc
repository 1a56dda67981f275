#include "observe/sink/segment.h"

#include <cstdio>
#include <cstring>

namespace r2cc::observe {

std::string JsonText(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (result += '\\') += c;
    else
      result += c < ' ' || c > '~' ? '?' : c;
  }
  return result + "\"";
}

std::string GapText(uint64_t from, const Counts& gap) {
  std::string text = "[" + std::to_string(from);
  for (uint64_t count : {gap.dropped_device, gap.dropped_host, gap.unwanted, gap.missed}) text += ", " + std::to_string(count);
  return text + "]";
}

void SegmentBuilder::AddTensor(const std::string& name, const char* dtype, const std::vector<uint64_t>& shape, const uint8_t* bytes,
                               uint64_t count) {
  std::string entry = JsonText(name) + ":{\"dtype\":\"" + dtype + "\",\"shape\":[";
  for (size_t i = 0; i < shape.size(); ++i) entry += (i == 0 ? "" : ",") + std::to_string(shape[i]);
  entry += "],\"data_offsets\":[" + std::to_string(data_.size()) + "," + std::to_string(data_.size() + count) + "]}";
  data_.insert(data_.end(), bytes, bytes + count);
  tensors_ += "," + entry;
}

void SegmentBuilder::Add(const RecordView& view) {
  data_before_ = data_.size();
  tensors_before_ = tensors_.size();
  const std::string step = std::to_string(view.header.step) + "/";
  AddTensor(step + "@", "U8", {sizeof(view.header)}, reinterpret_cast<const uint8_t*>(&view.header), sizeof(view.header));
  for (const bool is_tag : {true, false}) {
    const std::vector<Tap>& taps = is_tag ? view.layout->tags : view.layout->taps;
    const std::vector<Slot>& slots = is_tag ? view.slots->tags : view.slots->taps;
    for (size_t i = 0; i < taps.size(); ++i) {
      if (slots[i].offset == 0) continue;
      std::vector<uint64_t> shape = taps[i].RecordShape(view.header.rows);
      const bool stats = taps[i].RecordDtype() == Dtype::kStats;
      if (stats) shape.push_back(sizeof(StatsRow));
      AddTensor(step + (is_tag ? "#" : "") + taps[i].name, stats ? "U8" : NameOf(taps[i].RecordDtype()), shape,
                view.bytes.data() + slots[i].offset, slots[i].bytes);
    }
  }
  if (view.gap.Steps() != 0) gaps_ += (gaps_.empty() ? "" : ", ") + GapText(view.header.step - view.gap.Steps(), view.gap);
  if (records_++ == 0) first_step_ = view.header.step;
  last_step_ = view.header.step;
}

void SegmentBuilder::Undo() {
  data_.resize(data_before_);
  tensors_.resize(tensors_before_);
  --records_;
  gaps_ += (gaps_.empty() ? "" : ", ") + GapText(last_step_, Counts{.missed = 1});
}

std::string SegmentBuilder::Head() const {
  std::string json = "{\"__metadata__\":{\"r2cc_taps\":\"1\",\"run\":" + JsonText(run_) + "}" + tensors_ + "}";
  json.resize(RoundUp(json.size(), 8), ' ');
  const uint64_t length = json.size();
  std::string head(sizeof(length), '\0');
  std::memcpy(head.data(), &length, sizeof(length));
  return head + json;
}

std::string SegmentBuilder::Fields() const {
  return "\"records\": " + std::to_string(records_) + ", \"first_step\": " + std::to_string(first_step_) +
         ", \"last_step\": " + std::to_string(last_step_) + ", \"gaps\": [" + gaps_ + "]}\n";
}

std::string SegmentBuilder::ManifestLine(const std::string& name, uint64_t file_bytes, uint32_t crc32c) const {
  char sum[16];
  std::snprintf(sum, sizeof(sum), "%08x", crc32c);
  return "{\"segment\": " + JsonText(name) + ", \"bytes\": " + std::to_string(file_bytes) + ", \"crc32c\": \"" + sum + "\", " + Fields();
}

std::string SegmentBuilder::LostLine(const std::string& why) const { return "{\"lost\": " + JsonText(why) + ", " + Fields(); }

void SegmentBuilder::Clear() {
  data_.clear();
  tensors_.clear();
  gaps_.clear();
  records_ = 0;
}

}  // namespace r2cc::observe
