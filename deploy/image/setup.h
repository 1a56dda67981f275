// What must be done on a node or in a pod before r2ccd or a job starts, for an image that has neither shell nor cp.
#ifndef R2CC_DEPLOY_IMAGE_SETUP_H_
#define R2CC_DEPLOY_IMAGE_SETUP_H_

#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace r2cc::setup {

struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
};

struct Directory {
  std::string path;
  mode_t mode = 0;
};

// "64750:64750". INVALID_ARGUMENT with one line.
absl::StatusOr<Owner> ParseOwner(std::string_view text);
// "/run/r2cc:0755". INVALID_ARGUMENT with one line.
absl::StatusOr<Directory> ParseDirectory(std::string_view text);

// Hands a directory that root has, as the kubelet makes it, to `owner`. Made if it is not there. One that `owner` has already stays as it
// is; one of anybody else is refused, as he uses it. Needs CAP_CHOWN and nothing else.
absl::Status HandOver(const Directory& directory, const Owner& owner);

// Copies the file `from` into the directory `to`, readable for everybody. Whoever has the old one open keeps it whole.
absl::Status CopyInto(const std::string& from, const std::string& to);

}  // namespace r2cc::setup

#endif  // R2CC_DEPLOY_IMAGE_SETUP_H_
