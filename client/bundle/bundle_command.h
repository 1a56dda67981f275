// Holds the arguments of `r2ccctl support-bundle`.
#ifndef R2CC_CLIENT_BUNDLE_BUNDLE_COMMAND_H_
#define R2CC_CLIENT_BUNDLE_BUNDLE_COMMAND_H_

#include <string>

namespace r2cc::client {

struct BundleCommand {
  std::string out;  // the file to write; empty: r2cc-support-NODE-TIME.tar.gz here
  std::string run_dir;
  std::string state_dir;
  std::string socket_path;
  bool json = false;
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_BUNDLE_BUNDLE_COMMAND_H_
