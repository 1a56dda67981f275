// Turns names that programs use into texts for people. Pure. A name of a later release is shown as it is.
#ifndef R2CC_CLIENT_CORE_TEXTS_H_
#define R2CC_CLIENT_CORE_TEXTS_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "proto/r2cc.pb.h"

namespace r2cc::client {

// The cause of a fault: "link-down": "its link is down".
std::string CauseText(absl::string_view name);

// "rail-silent": "no answer to probes".
std::string EvidenceText(absl::string_view kind);

// The value of evidence of this kind, with its unit; empty: it has none.
std::string EvidenceValueText(absl::string_view kind, int64_t value);

// By which way the AllReduces of a communicator go: "communicator 3: NCCL's tree in another order of nodes from 16 MiB on, expected 0.66
// of the usual time".
std::string WayText(const v1::AllReduceWay& way);

// The meaning of the plan for a NIC for the jobs.
std::string MeaningForJobs(const v1::PlannedNic& planned);

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_CORE_TEXTS_H_
