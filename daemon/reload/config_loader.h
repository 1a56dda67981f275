// The interface to the configuration as it is in the files now, checked whole.
#ifndef R2CC_DAEMON_RELOAD_CONFIG_LOADER_H_
#define R2CC_DAEMON_RELOAD_CONFIG_LOADER_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "daemon/config/config.h"
#include "daemon/core/roles.h"

namespace r2cc::daemon {

struct LoadedConfig {
  Config config;
  std::vector<Grant> grants;  // of `config`, as this machine numbers users and groups

  RolePolicy roles() const { return {grants, config.drills}; }
};

// The state of the certificate files that a configuration names.
struct CertificateState {
  std::vector<std::string> wrong;  // a line each
  int64_t until_s = 0;             // the first end of validity; 0: there is none, or it is not known
};

class ConfigLoader {
 public:
  virtual ~ConfigLoader() = default;
  // May block. `in_force` null: nothing is yet. A NIC that is in force may be away from the machine: that is a fault of the machine's, not
  // of the files. On failure a line for each thing that is wrong.
  virtual absl::StatusOr<LoadedConfig> Load(const Config* in_force) = 0;
  // As they are now. May block.
  virtual CertificateState CheckCertificates(const Config& config) = 0;
};

class FakeConfigLoader final : public ConfigLoader {
 public:
  explicit FakeConfigLoader(absl::StatusOr<LoadedConfig> next) : next_(std::move(next)) {}
  absl::StatusOr<LoadedConfig> Load(const Config* /*in_force*/) override { return next_; }
  CertificateState CheckCertificates(const Config& /*config*/) override { return certificates_; }
  void Set(absl::StatusOr<LoadedConfig> next) { next_ = std::move(next); }
  void SetCertificates(CertificateState state) { certificates_ = std::move(state); }

 private:
  absl::StatusOr<LoadedConfig> next_;
  CertificateState certificates_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RELOAD_CONFIG_LOADER_H_
