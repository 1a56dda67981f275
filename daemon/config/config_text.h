// The configuration's files as one message, in which each field knows its file and line.
#ifndef R2CC_DAEMON_CONFIG_CONFIG_TEXT_H_
#define R2CC_DAEMON_CONFIG_CONFIG_TEXT_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/config/config.h"
#include "google/protobuf/text_format.h"
#include "proto/config.pb.h"

namespace r2cc::daemon {

// INVALID_ARGUMENT with `what` as one line: a quoted string of the file may hold anything.
absl::Status RefuseConfig(std::string what);

// One file before it is merged.
struct ConfigFile {
  std::string name;
  int lines_before = 0;  // of the files before it
  v1::DaemonConfig message;
  std::unique_ptr<google::protobuf::TextFormat::ParseInfoTree> tree;
};

// Finds the line of a field, so that an error about a value names its place. Lines are counted through all files, one after the other.
class ConfigPlaces {
 public:
  explicit ConfigPlaces(std::vector<ConfigFile> files);

  // The line of a field of the outermost message: of its element `index` if it is repeated, otherwise of the one that counts. 0: the files
  // do not have it.
  int Line(const google::protobuf::Message& message, const char* field, int index = -1) const;
  // "FILE:LINE: what".
  absl::Status Wrong(int line, const std::string& what) const;
  const ConfigParts& parts() const { return parts_; }

 private:
  std::vector<ConfigFile> files_;
  ConfigParts parts_;
};

struct ParsedConfig {
  v1::DaemonConfig message;
  ConfigPlaces places;
};

// Merges `texts` in order: what is repeated grows, what is not is replaced. On failure one line: "FILE:LINE: what is wrong". REQUIRES:
// there is one text at least.
absl::StatusOr<ParsedConfig> MergeConfigTexts(const std::vector<ConfigText>& texts);

// Reads the part `http` into `config`, whose tls and insecure are already set.
absl::Status ReadHttp(const v1::DaemonConfig& file, const ConfigPlaces& places, Config* config);
// Reads the part `rdma`.
absl::Status ReadRdma(const v1::DaemonConfig& file, const ConfigPlaces& places, Config* config);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CONFIG_CONFIG_TEXT_H_
