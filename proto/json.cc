#include "proto/json.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_cat.h"

namespace r2cc {
namespace {

absl::StatusOr<std::string> ToJson(const google::protobuf::Message& message, bool whitespace) {
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = whitespace;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  // The only way to fail is a string that is not UTF-8.
  if (const auto status = google::protobuf::util::MessageToJsonString(message, &text, options); !status.ok())
    return absl::InternalError(
        absl::StrCat("the daemon's ", message.GetTypeName(), " does not fit into JSON: ", std::string(status.message())));
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

}  // namespace

absl::StatusOr<std::string> ToJsonDocument(const google::protobuf::Message& message) { return ToJson(message, true); }
absl::StatusOr<std::string> ToJsonLine(const google::protobuf::Message& message) { return ToJson(message, false); }

}  // namespace r2cc
