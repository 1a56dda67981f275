#include "daemon/state/line_file.h"

#include <google/protobuf/util/json_util.h>

namespace r2cc::daemon {

std::string ToLine(const v1::Event& event) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  // Its strings are ours, or were cleaned: they are UTF-8.
  if (!google::protobuf::util::MessageToJsonString(event, &text, options).ok()) return "";
  return text + "\n";
}

absl::StatusOr<std::string> LineFile::Read() {
  absl::StatusOr<std::string> text = files_->Read(path_);
  if (text.ok()) {
    bytes_ = text->size();
    torn_ = !text->empty() && text->back() != '\n';
  }
  return text;
}

absl::Status LineFile::Turn() {
  if (absl::Status status = files_->Rename(path_, older()); !status.ok() && !absl::IsNotFound(status)) return status;
  bytes_ = 0;
  torn_ = false;
  return absl::OkStatus();
}

absl::Status LineFile::Append(const std::string& lines) {
  // A line that a crash has cut short is a line of its own.
  const std::string text = torn_ ? "\n" + lines : lines;
  const absl::Status status = files_->Append(path_, text);
  torn_ = !status.ok();
  if (status.ok()) bytes_ += text.size();
  return status;
}

}  // namespace r2cc::daemon
