// Reads the configuration from its files and fits it to this machine. `r2ccd --check_config` and `r2ccctl config check` print its messages.
#ifndef R2CC_DAEMON_RELOAD_FILE_CONFIG_LOADER_H_
#define R2CC_DAEMON_RELOAD_FILE_CONFIG_LOADER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "base/core/clock.h"
#include "base/log.h"
#include "daemon/reload/config_loader.h"

namespace r2cc::daemon {

// The flags of the command line.
struct ConfigFlags {
  std::string file;  // empty: the built-in configuration
  std::string run_dir = "/run/r2cc";
  std::string state_dir = "/var/lib/r2cc";
  std::string node;                   // wins over the files; empty: it does not
  std::optional<Severity> log_level;  // the same
  Nanos wall_clock_offset = 0;        // Config::wall_clock_offset
};

enum class Absent {
  kRefuse,  // what the machine lacks is a mistake of the files, unless it is in force: a check, and a reload
  kAccept,  // it is a NIC that failed: a daemon that starts
};

// The files parsed, and the machine's NICs in place of patterns. Certificates and users are not looked at. One line on failure. May block.
absl::StatusOr<Config> ReadConfig(const ConfigFlags& flags, const Config* in_force, Absent absent);

// Certificates and keys of the configuration at `now_s`, CLOCK_REALTIME. May block.
CertificateState CheckAllTlsFiles(const Config& config, int64_t now_s);

// For people: "FILE: ok: node n0, 2 NICs, 3 peers".
std::string SoundConfigLine(const Config& config);

class FileConfigLoader final : public ConfigLoader {
 public:
  FileConfigLoader(ConfigFlags flags, std::function<int64_t()> now_s) : flags_(std::move(flags)), now_s_(std::move(now_s)) {}
  absl::StatusOr<LoadedConfig> Load(const Config* in_force) override;
  CertificateState CheckCertificates(const Config& config) override { return CheckAllTlsFiles(config, now_s_()); }

 private:
  const ConfigFlags flags_;
  const std::function<int64_t()> now_s_;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_RELOAD_FILE_CONFIG_LOADER_H_
