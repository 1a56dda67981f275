// Messages as JSON for programs: the field names of its .proto, every field present, 64-bit integers as strings (protobuf's JSON).
#ifndef R2CC_PROTO_JSON_H_
#define R2CC_PROTO_JSON_H_

#include <google/protobuf/message.h>

#include <string>

#include "absl/status/statusor.h"

namespace r2cc {

// One document over several lines, ended by a newline.
absl::StatusOr<std::string> ToJsonDocument(const google::protobuf::Message& message);

// One line, ended by a newline.
absl::StatusOr<std::string> ToJsonLine(const google::protobuf::Message& message);

}  // namespace r2cc

#endif  // R2CC_PROTO_JSON_H_
