// Files in memory as one compressed archive (POSIX ustar, gzip). Pure.
#ifndef R2CC_CLIENT_BUNDLE_TAR_GZ_H_
#define R2CC_CLIENT_BUNDLE_TAR_GZ_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace r2cc::client {

struct BundleFile {
  std::string name;  // with the folder at most 100 bytes, without a leading / and ..
  std::string text;
};

// All with mode 0600 and owner 0, below `folder`. `time_s`: when they were made. INVALID_ARGUMENT for a name that does not fit.
absl::StatusOr<std::string> MakeTarGz(const std::string& folder, const std::vector<BundleFile>& files, int64_t time_s);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_BUNDLE_TAR_GZ_H_
