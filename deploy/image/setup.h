// Prepares a node or a pod before r2ccd or a job starts, for an image that has neither shell nor cp. A failure is false, or nothing, with
// one line in `error`. Without abseil and std::filesystem, which would be a MiB of the image.
#ifndef R2CC_DEPLOY_IMAGE_SETUP_H_
#define R2CC_DEPLOY_IMAGE_SETUP_H_

#include <sys/types.h>

#include <optional>
#include <string>

namespace r2cc::setup {

struct Owner {
  uid_t uid = 0;
  gid_t gid = 0;
};

struct Directory {
  std::string path;
  mode_t mode = 0;
};

// "64750:64750".
std::optional<Owner> ParseOwner(const std::string& text, std::string* error);
// "/run/r2cc:0755".
std::optional<Directory> ParseDirectory(const std::string& text, std::string* error);

// Hands a directory that root has, as the kubelet makes it, to `owner`. Made if it is not there. One that `owner` has already stays as it
// is; one of another user is refused, because that user uses it. Needs CAP_CHOWN and nothing else.
bool HandOver(const Directory& directory, const Owner& owner, std::string* error);

// Copies the file `from` into the directory `to`, readable for everybody. Whoever has the old one open keeps it whole, and
// several may copy at once.
bool CopyInto(const std::string& from, const std::string& to, std::string* error);

}  // namespace r2cc::setup

#endif  // R2CC_DEPLOY_IMAGE_SETUP_H_
