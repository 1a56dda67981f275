// `r2ccctl support-bundle`: the facts for a person who looks at this node from afar, as one file.
#ifndef R2CC_CLIENT_BUNDLE_BUNDLE_H_
#define R2CC_CLIENT_BUNDLE_BUNDLE_H_

#include <cstddef>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "client/bundle/bundle_command.h"
#include "client/bundle/tar_gz.h"
#include "client/core/style.h"
#include "client/doctor/machine.h"

namespace r2cc::client {

// Bytes of one file in it: its end is kept. A daemon's report about a large cluster is some MiB.
constexpr size_t kBundleFileBytesMax = 4 << 20;
// Bytes of all files, before compression: a mail takes it.
constexpr size_t kBundleBytesMax = 20 << 20;

// Runs a program of the system: its standard output and error, at most `bytes_max` of it, within some seconds.
using RunProgram = std::function<absl::StatusOr<std::string>(const std::vector<std::string>& command, size_t bytes_max)>;

// Gathers the available files, and lists the others with the reason. Keys are never read. FAILED_PRECONDITION if the file cannot be
// written; one that is there already is not replaced. Only its owner can read it, and each file in it.
absl::Status Run(const BundleCommand& command, Machine& machine, const RunProgram& run_program, const Style& style, std::ostream& out);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_BUNDLE_BUNDLE_H_
