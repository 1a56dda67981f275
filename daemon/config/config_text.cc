#include "daemon/config/config_text.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "google/protobuf/io/tokenizer.h"

namespace r2cc::daemon {
namespace {

using google::protobuf::TextFormat;

// Keeps the first error: the ones after it mostly follow from it.
class FirstError : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int /*column*/, const std::string& message) override {
    if (found_) return;
    found_ = true;
    line_ = line + 1;
    message_ = message;
  }
  bool found() const { return found_; }
  int line() const { return line_; }
  const std::string& message() const { return message_; }

 private:
  bool found_ = false;
  int line_ = 0;
  std::string message_;
};

// 'Message type "r2cc.v1.NicConfig" has no field named "nam".' with the fields that there are; other errors as they are.
std::string WithFields(const std::string& error) {
  const std::vector<std::string> parts = absl::StrSplit(error, '"');
  if (parts.size() != 5 || parts[0] != "Message type " || parts[2] != " has no field named ") return error;
  const auto* type = google::protobuf::DescriptorPool::generated_pool()->FindMessageTypeByName(parts[1]);
  if (type == nullptr) return error;
  std::vector<std::string> names;
  for (int i = 0; i < type->field_count(); ++i) names.push_back(type->field(i)->name());
  return absl::StrCat("there is no field '", parts[3], "' here; there are ", absl::StrJoin(names, ", "));
}

// An error of a file is found in it, and not in the one behind it.
absl::StatusOr<ConfigFile> ParseAlone(const ConfigText& text, int lines_before) {
  ConfigFile file{text.file, lines_before, {}, std::make_unique<TextFormat::ParseInfoTree>()};
  TextFormat::Parser parser;
  FirstError error;
  parser.RecordErrorsTo(&error);
  parser.WriteLocationsTo(file.tree.get());
  if (parser.ParseFromString(text.text, &file.message)) return file;
  return RefuseConfig(absl::StrCat(text.file, ":", error.found() ? error.line() : 1, ": ",
                                   error.found() ? WithFields(error.message()) : "not text-format r2cc.v1.DaemonConfig"));
}

}  // namespace

absl::Status RefuseConfig(std::string what) {
  std::replace_if(
      what.begin(), what.end(), [](char c) { return static_cast<unsigned char>(c) < ' ' || c == 0x7f; }, '?');
  return absl::InvalidArgumentError(what);
}

ConfigPlaces::ConfigPlaces(std::vector<ConfigFile> files) : files_(std::move(files)) {
  for (const ConfigFile& file : files_) parts_.Add(file.name, file.lines_before);
}

int ConfigPlaces::Line(const google::protobuf::Message& message, const char* field, int index) const {
  const auto* descriptor = message.GetDescriptor()->FindFieldByName(field);
  if (descriptor == nullptr) return 0;
  int line = 0;
  for (const ConfigFile& file : files_) {
    if (descriptor->is_repeated()) {
      const int here = file.message.GetReflection()->FieldSize(file.message, descriptor);
      if (index < here) return file.lines_before + file.tree->GetLocation(descriptor, index).line + 1;
      index -= here;
    } else if (const int at = file.tree->GetLocation(descriptor, -1).line; at >= 0) {
      line = file.lines_before + at + 1;  // the last file that has it counts
    }
  }
  return line;
}

absl::Status ConfigPlaces::Wrong(int line, const std::string& what) const {
  return RefuseConfig(absl::StrCat(parts_.Place(line), ": ", what));
}

absl::StatusOr<ParsedConfig> MergeConfigTexts(const std::vector<ConfigText>& texts) {
  std::vector<ConfigFile> files;
  v1::DaemonConfig merged;
  int lines = 0;
  for (const ConfigText& text : texts) {
    auto file = ParseAlone(text, lines);
    if (!file.ok()) return file.status();
    // Not by MergeFrom of what was parsed: that takes a value that is its type's default for one that is not there.
    TextFormat::Parser parser;
    FirstError error;
    parser.RecordErrorsTo(&error);
    if (!parser.MergeFromString(text.text, &merged)) return RefuseConfig(absl::StrCat(text.file, ":", error.line(), ": ", error.message()));
    files.push_back(*std::move(file));
    lines += static_cast<int>(std::count(text.text.begin(), text.text.end(), '\n')) + 1;
  }
  return ParsedConfig{std::move(merged), ConfigPlaces(std::move(files))};
}

}  // namespace r2cc::daemon
