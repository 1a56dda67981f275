// Holds the values of the metrics of this node: gathered on the core's thread, rendered on another. Plain values.
#ifndef R2CC_DAEMON_METRICS_FACTS_H_
#define R2CC_DAEMON_METRICS_FACTS_H_

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace r2cc::daemon {

// A Prometheus histogram: how many observations were at most each bound.
struct Histogram {
  static constexpr std::array<double, 6> kBounds = {0.002, 0.005, 0.02, 0.05, 0.2, 2};
  std::array<uint64_t, kBounds.size() + 1> counts{};  // of each interval; the last has no end
  double sum = 0;

  void Observe(double value) {
    size_t i = 0;
    while (i < kBounds.size() && value > kBounds[i]) ++i;
    ++counts[i];
    sum += value;
  }
  friend bool operator==(const Histogram&, const Histogram&) = default;
};

// Turns of the core's loop, by the processor time that each took.
struct TurnFacts {
  // The jobs' page, the probes and the other nodes wait for a turn.
  static constexpr double kLongS = 0.05;

  uint64_t over = 0;  // that took more than kLongS
  double longest_s = 0;

  void Observe(double seconds) {
    over += seconds > kLongS ? 1 : 0;
    longest_s = std::max(longest_s, seconds);
  }
};

struct NicFacts {
  std::string nic;
  std::string device;  // of RDMA, or else the interface: as the exporters of RDMA ports and of the node call it
  std::string port;    // of the RDMA device; "1" without one
  std::string interface, pci, address;
  std::string state;  // "HEALTHY"
  double since_s = 0;
  double weight = 0;  // by the plan
  double speed_bytes_per_s = 0;
  bool link_up = false, drill = false, probing = false;
  uint64_t flaps = 0, verdicts = 0;
  // The sums of all jobs since r2ccd started.
  uint64_t sent_bytes = 0, received_bytes = 0, replayed_bytes = 0, failovers = 0;
  uint64_t probes = 0, probes_answered = 0;
  // Among the pairs that were probed in the last 10 s: the loss of the worst, the round trip of the median.
  std::optional<double> loss_worst, round_trip_s;
};

struct JobFacts {
  std::string job;
  uint32_t processes = 0, rails = 0, rails_usable = 0, faults = 0;
  double waited_s = 0;  // of the process that has made no progress for the longest time
};

// The savings of the last 30 days.
struct SavedFacts {
  uint32_t faults_masked = 0;
  double gpu_low_s = 0, gpu_high_s = 0, alive_s = 0, reduced_s = 0;
  std::map<std::string, uint32_t> died;  // by cause: all of a closed list
};

struct MetricFacts {
  std::string node, release;
  int peer_protocol = 0, attach_version = 0, page_version = 0;
  double start_time_s = 0;
  std::vector<NicFacts> nics;
  // Attached ones by name, at most kJobFactsMax; all others are one entry, "other".
  std::vector<JobFacts> jobs;
  uint32_t jobs_attached = 0, jobs_of_other_releases = 0;
  SavedFacts saved;
  std::map<std::string, uint32_t> nodes;  // of the cluster, by status
  uint32_t peers_connected = 0, peers_lost = 0;
  std::optional<bool> store_connected;  // nothing: there is no store
  bool plan_refused = false, insecure = false;
  double plan_published_s = 0;
  uint64_t plan_entries = 0, plan_entries_max = 0;
  std::map<std::string, uint32_t> alarms;  // by what they are about: all of a closed list
  uint32_t config_pending = 0, config_refused = 0;
  uint64_t attach_refused = 0, job_errors = 0, evidence_dropped = 0, duplicate_nodes = 0;
  std::map<std::string, uint64_t> failovers_by_cause;
  std::map<std::pair<std::string, std::string>, uint64_t> refusals;  // by listener and reason
  std::map<std::string, uint64_t> operator_actions;
  Histogram failover_seconds;
  TurnFacts core_turns;
  uint64_t probes_sent = 0;
  std::map<std::string, uint64_t> probes_refused;  // by reason
  double certificate_until_s = 0;                  // 0: there is none
};

// Jobs that have series of their own.
constexpr size_t kJobFactsMax = 16;

// Facts about this process, from its own kernel; not from the core.
struct ProcessFacts {
  double cpu_s = 0;
  uint64_t resident_bytes = 0, open_descriptors = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_METRICS_FACTS_H_
