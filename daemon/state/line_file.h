// A file of events, one JSON object a line, in two generations: PATH and, older, PATH.1.
#ifndef R2CC_DAEMON_STATE_LINE_FILE_H_
#define R2CC_DAEMON_STATE_LINE_FILE_H_

#include <cstddef>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "daemon/io/files.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// `event` as a line; empty: it has text that is not UTF-8.
std::string ToLine(const v1::Event& event);

// One thread at a time.
class LineFile {
 public:
  // `files` outlives it.
  LineFile(Files* files, std::string path) : files_(files), path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  std::string older() const { return path_ + ".1"; }
  // Bytes of the newer generation: what an earlier run left in it, and what was written since.
  size_t bytes() const { return bytes_; }

  // The newer generation, as an earlier run left it. Once, before the first Append.
  absl::StatusOr<std::string> Read();
  // The newer generation becomes the older one, which is lost. A newer one that somebody removed is no error.
  absl::Status Turn();
  // Adds whole lines. After failure none of them counts.
  absl::Status Append(const std::string& lines);

 private:
  Files* const files_;
  const std::string path_;
  size_t bytes_ = 0;
  bool torn_ = false;  // it may end within a line
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_STATE_LINE_FILE_H_
