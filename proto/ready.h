// Judges whether a job may start on a node: the policy of `r2ccctl ready` and of r2ccd's /readyz.
#ifndef R2CC_PROTO_READY_H_
#define R2CC_PROTO_READY_H_

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "proto/doctor.pb.h"
#include "proto/r2cc.pb.h"

namespace r2cc {

// Exit codes of `ready`, as Nagios plugins' and the node-problem-detector's of Kubernetes.
constexpr int kReady = 0;
constexpr int kNotReady = 1;
constexpr int kUndecided = 2;

// The plan gives it traffic: HEALTHY, DEGRADED or SUSPECT, and its weight is not 0.
bool CarriesJobs(const v1::NicView& nic);

// Each rail that should work: without a cable, or by a drill or an operator, it should not.
constexpr size_t kEachRail = SIZE_MAX;
// As much as the node-problem-detector keeps of a line (max_output_length).
constexpr size_t kNpdBytesMax = 80;

// The report in at most this many bytes, the cause first: "rail1 FAILED: link down; 3 of 4 rails usable". Pure.
std::string NpdLine(const v1::ReadyReport& report);

// Judges the view that a daemon has of its own node. A rail is usable if it carries jobs. It cannot tell while PROVING rails would make up
// the number, as they do for some milliseconds after a start of the daemon. An error means that the daemon gave no answer. Pure.
v1::ReadyReport JudgeReady(const absl::StatusOr<v1::NodeView>& own, size_t rails_min);

}  // namespace r2cc

#endif  // R2CC_PROTO_READY_H_
