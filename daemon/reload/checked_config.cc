#include "daemon/reload/checked_config.h"

#include <google/protobuf/util/json_util.h>

#include "absl/strings/str_split.h"
#include "proto/reload.pb.h"

namespace r2cc::daemon {

std::string CheckedConfigAsJson(const std::string& file, const absl::StatusOr<LoadedConfig>& loaded,
                                const std::vector<std::string>& warnings) {
  v1::CheckedConfig checked;
  checked.set_ok(loaded.ok());
  checked.set_file(file);
  for (const std::string& warning : warnings) checked.add_warnings(warning);
  if (loaded.ok()) {
    checked.set_node(loaded->config.node);
    checked.set_nics(static_cast<uint32_t>(loaded->config.nics.size()));
    checked.set_peers(static_cast<uint32_t>(loaded->config.peers.size()));
  } else {
    for (const absl::string_view line : absl::StrSplit(loaded.status().message(), '\n')) checked.add_errors(std::string(line));
  }
  google::protobuf::util::JsonPrintOptions options;
  options.add_whitespace = true;
  options.always_print_primitive_fields = true;
  options.preserve_proto_field_names = true;
  std::string text;
  // Fails for text that is not UTF-8, which a configuration cannot hold.
  if (!google::protobuf::util::MessageToJsonString(checked, &text, options).ok()) return "{}\n";
  return text;
}

}  // namespace r2cc::daemon
