// Counters that only grow, of events and of sums that begin again. Pure. One thread at a time.
#ifndef R2CC_DAEMON_METRICS_COUNTERS_H_
#define R2CC_DAEMON_METRICS_COUNTERS_H_

#include <cstdint>
#include <map>
#include <string>

#include "daemon/metrics/facts.h"
#include "proto/r2cc.pb.h"

namespace r2cc::daemon {

// Adds up what many sources count each for itself: sources come and go, and some begin again at 0.
class GrowingSums {
 public:
  // The present count of each source: by group, then by source. A source that is missing is gone; its count stays in its group's sum.
  using Counts = std::map<std::string, std::map<std::string, uint64_t>>;
  void Update(Counts now);
  uint64_t Of(const std::string& group) const;

 private:
  Counts last_;
  std::map<std::string, uint64_t> sums_;
};

// Counts events.
class EventCounters {
 public:
  // `node`: the own one.
  explicit EventCounters(std::string node) : node_(std::move(node)) {}

  void Count(const v1::Event& event);

  // Verdicts on a NIC of the own node: it became SUSPECT, DEGRADED or FAILED.
  uint64_t VerdictsOn(const std::string& nic) const;
  uint64_t job_errors() const { return job_errors_; }
  uint64_t duplicate_nodes() const { return duplicate_nodes_; }
  int64_t plan_published_ns() const { return plan_published_ns_; }
  const std::map<std::string, uint64_t>& failovers_by_cause() const { return failovers_by_cause_; }
  const std::map<std::string, uint64_t>& operator_actions() const { return operator_actions_; }
  const Histogram& failover_seconds() const { return failover_seconds_; }

 private:
  const std::string node_;
  std::map<std::string, uint64_t> verdicts_;
  std::map<std::string, uint64_t> failovers_by_cause_;
  std::map<std::string, uint64_t> operator_actions_;
  Histogram failover_seconds_;
  uint64_t job_errors_ = 0;
  uint64_t duplicate_nodes_ = 0;
  int64_t plan_published_ns_ = 0;
};

}  // namespace r2cc::daemon

#endif  // R2CC_DAEMON_METRICS_COUNTERS_H_
