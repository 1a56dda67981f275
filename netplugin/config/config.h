// Lists every variable of the plugin's environment in one table (config.cc): name, accepted values, default and the reason for it.
#ifndef R2CC_NETPLUGIN_CONFIG_CONFIG_H_
#define R2CC_NETPLUGIN_CONFIG_CONFIG_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "netplugin/config/log.h"

namespace r2cc::net {

enum class TransportOption {
  kAuto,   // verbs where both ends of a rail have it, otherwise TCP
  kTcp,    // only TCP
  kVerbs,  // only verbs
};

// R2CC_MODE.
enum class Mode { kOneRail = 0, kMigrate = 1, kBalance = 2, kDegradedAllReduce = 3 };

// A rail to lose on purpose, `after_ms` after the start.
struct FailRail {
  std::string rail;
  int64_t after_ms = 0;
};

struct PluginConfig {
  std::string rails;                                  // R2CC_RAILS, for ResolveRails()
  TransportOption transport = TransportOption::kTcp;  // R2CC_TRANSPORT
  std::string oob_ifname;                             // R2CC_OOB_IFNAME; empty: chosen
  std::string attach_socket;                          // R2CC_ATTACH; empty: no daemon wanted
  std::string node;                                   // R2CC_NODE; empty: the host's name (FillFromSystem)
  std::string job;                                    // R2CC_JOB; empty: the program's name (FillFromSystem)
  std::optional<Mode> mode;                           // R2CC_MODE; unset: the planner decides
  std::vector<FailRail> fail_rails;                   // R2CC_FAIL_RAILS
  int64_t deadline_ms = 0;                            // R2CC_DEADLINE_MS
  int64_t silence_ms = 0;                             // R2CC_SILENCE_MS
  std::string tcp_congestion;                         // R2CC_TCP_CONGESTION; empty: the system's unless it suits no rail
  std::optional<int> sockets_per_rail;                // R2CC_SOCKETS_PER_RAIL; unset: by the number of workers
  bool link_monitor = false;                          // R2CC_LINK_MONITOR
  std::optional<int> bulk_threads;                    // R2CC_BULK_THREADS; unset: by the number of processors
  int64_t collnet_deadline_ms = 0;                    // R2CC_COLLNET_DEADLINE_MS
  std::optional<uint64_t> collnet_min_bytes;          // R2CC_COLLNET_MIN_BYTES; unset: NCCL's own choice
  bool checksum = false;                              // R2CC_CHECKSUM
  bool seat = false;                                  // R2CC_SEAT, for libr2cc-nccl.so
  int64_t seat_every = 0;                             // R2CC_SEAT_EVERY
  LogLevel log = LogLevel::kWarn;                     // R2CC_LOG
  std::optional<uint32_t> chunk_bytes;                // R2CC_CHUNK_BYTES; unset: by the rails' rates
};

using GetEnv = std::function<const char*(const char* name)>;
// The GetEnv of this process.
const char* FromEnvironment(const char* name);

// Sets the defaults, then the values that `get` returns; an empty value counts as unset. If any value is not acceptable: false, `out`
// unchanged, and one line in `error` that names the variable, its value and what is allowed. Pure.
bool LoadConfig(const GetEnv& get, PluginConfig* out, std::string* error);

// Sets the host's and the program's name if the environment gave none, in the characters that pages and tables can hold.
void FillFromSystem(PluginConfig* config);

// One warning line for each NAME=VALUE of `environment` (like `environ`: null-terminated) that begins with R2CC_ and is unknown, with the
// most similar known name. Pure.
std::vector<std::string> UnknownVariables(const char* const* environment);

// The table, for `--help`-like listings and the documentation.
struct Variable {
  const char* name;
  const char* allowed;
  const char* default_text;  // empty: none
  const char* reason;        // for the default
  // Sets a value that is not empty. On false `why` may have more detail than `allowed`.
  bool (*set)(const std::string& value, PluginConfig* config, std::string* why);
};
const std::vector<Variable>& Variables();

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_CONFIG_CONFIG_H_
