// Every evidence and every verdict by name: the text that r2ccctl prints, its effect on the NIC, and what to do. One table for r2ccctl and
// for docs/reference/causes.md (`./bazelw run //client:causes_reference`). Pure. Free of charge: constant tables.
#ifndef R2CC_CLIENT_CORE_CAUSES_H_
#define R2CC_CLIENT_CORE_CAUSES_H_

#include <span>
#include <string>

#include "absl/strings/string_view.h"

namespace r2cc::client {

struct Explanation {
  absl::string_view name;    // as in JSON: an evidence kind (health/evidence), or a verdict (daemon/services/explain_service.cc)
  absl::string_view text;    // as r2ccctl prints an evidence; of a verdict its meaning
  absl::string_view effect;  // on the NIC's state and on jobs
  absl::string_view advice;  // what an operator can do
};

// In the order of the enum EvidenceKind.
std::span<const Explanation> Evidences();

std::span<const Explanation> Verdicts();

// The whole text of docs/reference/causes.md.
std::string CausesReference();

}  // namespace r2cc::client

#endif  // R2CC_CLIENT_CORE_CAUSES_H_
