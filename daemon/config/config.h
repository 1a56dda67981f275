// Holds the daemon's configuration: parsed once, checked whole, then a constant.
//
// Its files are text-format r2cc.v1.DaemonConfig. Each mistake in them is one line that names file, line and field.
#ifndef R2CC_DAEMON_CONFIG_CONFIG_H_
#define R2CC_DAEMON_CONFIG_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/core/clock.h"
#include "base/log.h"
#include "base/names.h"
#include "base/run_dirs.h"
#include "daemon/core/attach_access.h"
#include "health/io/rdma_class.h"

namespace r2cc::daemon {

// The default address for other daemons, and the one without TLS: nobody could prove an identity then, so it is reachable from this machine
// only.
constexpr char kDefaultListen[] = "0.0.0.0:7460";
constexpr char kDefaultListenV6[] = "[::]:7460";  // and IPv4
constexpr char kLoopbackListen[] = "127.0.0.1:7460";
constexpr char kDefaultHttpListen[] = "127.0.0.1:9460";
constexpr char kDefaultStorePrefix[] = "/r2cc/";
// The highest priority that is no real-time one: jobs keep every processor busy, and a verdict is worth microseconds of one.
constexpr int kDefaultNice = -20;
constexpr int kDefaultRealtimePriority = 1;
constexpr int kRealtimePriorityMost = 99;
// Nodes of a cluster unless the configuration sets another number, and the greatest number.
constexpr size_t kNodesDefault = 8192;
constexpr size_t kNodesMost = 65'536;
// A node that is off for a weekend keeps its row and its NICs' verdicts; one that an autoscaler took away does not stay for ever.
constexpr Nanos kForgetAfterDefault = 72 * 3600 * kNanosPerSecond;
constexpr uint32_t kForgetAfterHoursMost = 8760;

// One file of the configuration.
struct ConfigText {
  std::string file;  // its name, for messages
  std::string text;
};

// Which line belongs to which file, where the lines of several count on.
class ConfigParts {
 public:
  // Files in order. `lines_before`: of those before it.
  void Add(std::string file, int lines_before) { parts_.push_back({std::move(file), lines_before}); }
  // "FILE:LINE"; without a line (0) the first file's name.
  std::string Place(int line) const;

 private:
  struct Part {
    std::string file;
    int lines_before;
  };
  std::vector<Part> parts_;
};

// Addresses with a common prefix: "10.1.0.0/16".
class Network {
 public:
  // INVALID_ARGUMENT with one line that states why `text` is no network.
  static absl::StatusOr<Network> Parse(std::string_view text);
  // `address`: canonical.
  bool Contains(const std::string& address) const;
  const std::string& text() const { return text_; }
  friend bool operator==(const Network&, const Network&) = default;

 private:
  std::string text_;
  std::string bytes_;  // of the address: 4 or 16
  int bits_ = 0;       // of these
};

struct NicSpec {
  std::string name;       // as in NODE/NIC
  std::string interface;  // empty: the NIC is an address without an interface of its own
  std::string address;    // numeric, normalised; empty: the address of the interface
  uint64_t rate_bits_per_s = 0;
  int line = 0;            // in the file, for messages; 0: no file
  uint64_t port_guid = 0;  // of an InfiniBand port; 0: not given
  // The other end of a cable without a switch; empty: there is a switch.
  std::string cable_node = {};
  std::string cable_nic = {};
  // The file names it by this network: `address` is what its interface has in it now.
  std::optional<Network> network = {};

  friend bool operator==(const NicSpec&, const NicSpec&) = default;
};

// NICs that only the machine knows: FitToMachine (config_patterns.h) makes NicSpecs of it.
struct NicPattern {
  NicSpec nic;                 // what all of them have; by a network also the name
  std::string interface_glob;  // matches interfaces, which give the NICs their names; empty: by the network
  std::optional<Network> network;
};

struct PeerSpec {
  std::string node;
  std::string address;  // host:port

  friend bool operator==(const PeerSpec&, const PeerSpec&) = default;
};

struct TlsSpec {
  std::string certificate_file;
  std::string key_file;
  std::string ca_file;

  // Files next to ca_file, which may be missing: certificates that are refused, by their SHA-256, and CRLs that an authority signed.
  std::string refused_file() const { return ca_file.substr(0, ca_file.rfind('/') + 1) + "refused"; }
  std::string revoked_file() const { return ca_file.substr(0, ca_file.rfind('/') + 1) + "crl.pem"; }

  friend bool operator==(const TlsSpec&, const TlsSpec&) = default;
};

// Roles for the named callers, as in the file: users and groups by name or number.
struct GrantSpec {
  bool view = false;
  bool operate = false;
  bool drill = false;
  std::vector<std::string> users;
  std::vector<std::string> groups;
  bool everyone = false;
  std::vector<std::string> on_nodes;
  std::vector<std::string> operators;
  int line = 0;
};

struct EtcdSpec {
  std::vector<std::string> endpoints;  // host:port
  std::optional<TlsSpec> tls;

  friend bool operator==(const EtcdSpec&, const EtcdSpec&) = default;
};

// Configures the HTTP server.
struct HttpSpec {
  std::string listen = kDefaultHttpListen;  // empty: nothing is
  std::vector<std::string> hosts;           // accepted names in the Host header, in addition to this machine's own; * is any text

  friend bool operator==(const HttpSpec&, const HttpSpec&) = default;
};

struct Config {
  std::string file;   // for messages, the first one; empty: built in
  ConfigParts parts;  // the part of the configuration to which a line belongs
  std::string node;
  std::string listen = kLoopbackListen;
  bool listen_by_default = false;  // it is one of kDefaultListen, which FitToMachine chooses
  std::vector<PeerSpec> peers;
  std::optional<Network> listen_network;  // `listen` has only the port until FitToMachine
  int listen_line = 0;
  std::vector<NicSpec> nics;     // empty: what DefaultNics() finds
  bool nics_by_default = false;  // they are what it found
  std::vector<NicPattern> nic_patterns;
  std::vector<std::string> lacking_globs;  // of interfaces: none of this machine fits
  std::string store_node;                  // the node whose daemon serves the embedded store; empty: none
  std::optional<EtcdSpec> etcd;
  std::optional<TlsSpec> tls;
  bool insecure = false;                           // peers may prove nothing
  std::vector<GrantSpec> grants;                   // empty: the default ones
  bool drills = false;                             // fail-nic is allowed, to those who have the role
  std::string store_prefix = kDefaultStorePrefix;  // of all keys of this cluster
  Nanos wall_clock_offset = 0;                     // for tests: as if CLOCK_REALTIME were that far ahead
  std::string run_dir;
  std::string state_dir;  // what is kept over restarts and reboots
  int nice = kDefaultNice;
  int realtime_priority = kDefaultRealtimePriority;  // 0: none
  AttachAccess attach;
  size_t nics_per_node = kNicsPerNodeDefault;
  size_t nodes_max = kNodesDefault;
  Nanos forget_after = kForgetAfterDefault;  // nodes that have left
  std::optional<Severity> log_level;         // absent: info
  HttpSpec http;
  health::RdmaClass rdma;  // of probes

  std::string control_socket() const { return ControlSocket(run_dir); }
  std::string attach_socket() const { return AttachSocket(run_dir); }
  std::string nodes_prefix() const { return store_prefix + "nodes/"; }
  std::string lock_file() const { return ControlDir(run_dir) + "/r2ccd.lock"; }
  std::string state_file() const { return state_dir + "/state"; }
  std::string audit_file() const { return state_dir + "/audit.log"; }
  std::string state_lock_file() const { return state_dir + "/r2ccd.lock"; }
};

// Values from the command line and the machine for what the file may leave out.
struct ConfigContext {
  std::string run_dir;
  std::string host_name;
  std::string node_flag;  // --node; wins over the file
  std::string state_dir = {};
};

// The configuration without a file.
absl::StatusOr<Config> DefaultConfig(const ConfigContext& context);

// Parses the configuration in `texts`, at least one. Each adds to those before it: repeated fields (peers, nics, grants) grow, others are
// replaced. On failure one line: "FILE:LINE: the mistake".
absl::StatusOr<Config> ParseConfig(const std::vector<ConfigText>& texts, const ConfigContext& context);
// Parses one file.
absl::StatusOr<Config> ParseConfig(std::string_view text, const std::string& file, const ConfigContext& context);

// Refuses a NIC whose interface is not among `present`, because a typing error would otherwise look like a dead NIC forever.
absl::Status CheckInterfaces(const Config& config, const std::vector<std::string>& present);

// `text` as host and port; the host may be [v6] in brackets. Port 0 is allowed where `allow_port_zero` (choose a free one).
struct HostPort {
  std::string host;
  uint16_t port = 0;
};
absl::StatusOr<HostPort> ParseHostPort(std::string_view text, bool allow_port_zero);

// An address of 127.0.0.0/8, ::1 or "localhost".
bool IsLoopback(const std::string& host);

// A numeric IPv4 or IPv6 address in its canonical form; empty if `text` is not one. A scope ("%eth0") is cut off.
std::string CanonicalAddress(std::string_view text);

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_CONFIG_CONFIG_H_
