// A simulation's figures, for machines and for people.
#ifndef R2CC_TESTS_CLUSTER_REPORT_H_
#define R2CC_TESTS_CLUSTER_REPORT_H_

#include <cstdint>
#include <string>
#include <vector>

#include "tests/cluster/scenario.h"

namespace r2cc::cluster {

struct Report {
  ClusterOptions options;
  uint64_t memory_start_bytes = 0;  // of the process, when all know each other
  uint64_t memory_end_bytes = 0;    // after all faults
  size_t connections = 0;           // between daemons
  Healthy healthy;
  std::vector<Outcome> outcomes;
  std::vector<std::string> wrong;
};

// Of this process, now.
uint64_t ResidentBytes();

std::string ToJson(const Report& report);
std::string ToTable(const Report& report);

}  // namespace r2cc::cluster

#endif  // R2CC_TESTS_CLUSTER_REPORT_H_
