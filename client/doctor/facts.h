// Holds the facts that the checks of `r2ccctl doctor` judge. A missing fact is a status with the reason.
#ifndef R2CC_CLIENT_DOCTOR_FACTS_H_
#define R2CC_CLIENT_DOCTOR_FACTS_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/core/address_choice.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

struct LocalInterface {
  std::string name;
  bool up = false;
  int mtu = 0;
  struct Address {
    std::string text;  // numeric
    int prefix = 0;
    AddressState state{};
  };
  std::vector<Address> addresses;
};

// One NIC of this node, as its daemon reports it.
struct RailFacts {
  std::string nic;
  std::string address;       // IPv4, or empty
  LocalInterface interface;  // without a name: the NIC is an address without an interface
  absl::StatusOr<int> rp_filter = absl::UnknownError("not read");
  absl::StatusOr<int> arp_ignore = absl::UnknownError("not read");
  // Others that answer for `address`: their hardware addresses. Other interfaces of this machine that do: their names.
  absl::StatusOr<std::vector<std::string>> other_owners = absl::UnknownError("not asked");
  std::vector<std::string> own_owners = {};
};

// From one NIC of this node to that of the same rail of another.
struct PairFacts {
  std::string nic;
  std::string interface;
  std::string address;
  std::string peer;
  std::string peer_address;
  // By which interface a packet leaves that has `address` as its source.
  absl::StatusOr<std::string> route = absl::UnknownError("not asked");
  // OK: answered. DEADLINE_EXCEEDED: no answer. Anything else: it could not be asked.
  absl::Status small_ping = absl::UnknownError("not asked");
  absl::Status full_ping = absl::UnknownError("not asked");
  int full_bytes = 0;  // of a whole packet of full_ping
  // The first of some TCP ports, like those of jobs, that does not answer.
  absl::Status job_ports = absl::UnknownError("not asked");
  // "up", "silent", ..., as r2ccd's probes see it; empty: they do not look at it.
  std::string probes;
};

struct PeerFacts {
  std::string node;
  std::string address;  // host:port of its daemon
  absl::Status port = absl::UnknownError("not asked");
};

// r2ccd as the kernel shows it.
struct ProcessFacts {
  int pid = 0;
  uint64_t open_files_max = 0;
  bool realtime = false;
  int nice = 0;
};

struct CertificateFacts {
  std::vector<std::string> wrong;  // a line each
  int64_t until_s = 0;             // 0: not known
};

struct DaemonFacts {
  absl::Status connection;  // to the control socket; if not OK, the other facts are not known
  absl::Status attach;      // to the jobs' socket
  v1::StatusReply status;
  std::vector<v1::Event> duplicates;  // events that two daemons have one name, lately
  absl::StatusOr<size_t> plan_entries = absl::UnknownError("not asked");
  absl::StatusOr<CertificateFacts> certificates = absl::UnknownError("not asked");
  absl::StatusOr<ProcessFacts> process = absl::UnknownError("not looked at");
  std::vector<v1::PairStatus> pairs;  // of this node's probes
  // From the configuration in force.
  int realtime_priority = 0;
  int nice = 0;
  std::map<std::string, uint64_t> configured_rates;                         // by NIC; what it was set to on purpose
  std::map<std::string, std::string> interfaces;                            // by NIC
  absl::StatusOr<int64_t> receive_buffer = absl::UnknownError("not read");  // net.core.rmem_default
};

// Facts about the job that would be started here.
struct JobFacts {
  std::map<std::string, std::string> environment;  // with what nccl.conf adds
  std::string attach_path;
  absl::Status attach;                                                       // as the plugin would do it
  std::vector<std::string> plugin_files;                                     // in the order of the loader; the first is taken
  absl::Status plugin_loads;                                                 // NOT_FOUND: there is none
  absl::StatusOr<int> nccl_version = absl::NotFoundError("not looked for");  // 21803 is 2.18.3
  absl::StatusOr<std::string> congestion = absl::UnknownError("not read");   // the system's
  std::vector<std::string> interfaces;                                       // that this machine has
  std::vector<std::string> daemon_rails;                                     // r2ccd's NICs, for jobs without R2CC_RAILS; may be none
  std::vector<std::string> devices;                                          // of RDMA, of those that R2CC_RAILS names
  uint64_t locked_memory_max = 0;
  bool has_rdma = false;
};

struct Facts {
  bool without_daemon = false;  // there is to be none here
  int64_t now_ns = 0;           // CLOCK_REALTIME
  DaemonFacts daemon;
  std::vector<RailFacts> rails;
  std::vector<PeerFacts> peers;
  std::vector<PairFacts> pairs;
  std::optional<JobFacts> job;  // nothing: it was not asked for
};

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_FACTS_H_
