// Checks whether a job that is started here loads the plugin and uses its rails. Pure.
#ifndef R2CC_CLIENT_DOCTOR_JOB_CHECKS_H_
#define R2CC_CLIENT_DOCTOR_JOB_CHECKS_H_

#include <map>
#include <string>

#include "client/doctor/facts.h"
#include "client/doctor/finding.h"

namespace r2cc::client {

// The first NCCL with the v7 net tables, 2.19.1: the oldest that the plugin serves.
constexpr int kNcclVersionMin = 21901;
// Registered memory of the RDMA transport; what distributions give by default is less.
constexpr uint64_t kLockedMemoryMin = 64 << 20;

// The variables of NCCL's conf file `text`: NAME=VALUE a line, # begins a comment. Those of the environment win over them.
std::map<std::string, std::string> ParseNcclConf(const std::string& text);

Findings CheckJob(const JobFacts& job);

// Whether it finds its node's daemon.
Findings CheckAttach(const JobFacts& job);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_DOCTOR_JOB_CHECKS_H_
