#include "client/core/texts.h"

#include <algorithm>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/core/causes.h"
#include "client/core/units.h"
#include "plan/page/ring.h"

namespace r2cc::client {

std::string CauseText(absl::string_view name) {
  for (uint32_t i = 0; i <= static_cast<uint32_t>(plan::kEvidenceCauseNewest); ++i) {
    const auto cause = static_cast<plan::EvidenceCause>(i);
    if (name == plan::CauseName(cause)) return plan::CauseText(cause, 0);
  }
  return std::string(name);
}

std::string WayText(const v1::AllReduceWay& way) {
  const std::string communicator = absl::StrCat("communicator ", way.communicator(), ": ");
  if (way.way() == "nccl") return absl::StrCat(communicator, "NCCL's own choice");
  const std::string name = way.way() == "tree" ? "NCCL's tree in another order of nodes" : way.way() == "collnet" ? "CollNet" : way.way();
  return absl::StrCat(communicator, name, " from ", FormatBytes(way.bytes_min()), " on, expected ",
                      absl::StrFormat("%.2f", way.expected_permille() / 1000.0), " of the usual time");
}

std::string EvidenceText(absl::string_view kind) {
  const std::span<const Explanation> all = Evidences();
  const auto found = std::find_if(all.begin(), all.end(), [&](const Explanation& one) { return one.name == kind; });
  return std::string(found == all.end() ? kind : found->text);
}

std::string EvidenceValueText(absl::string_view kind, int64_t value) {
  if (value == 0 && kind != "weight" && kind != "errors") return "";
  if (value < 0) return absl::StrCat(value);
  // Permille of what the fullest counter's rule allows; beyond that it may be more.
  if (kind == "errors") return absl::StrCat(value / 10, "% of the limit");
  if (kind == "drill-fail") return absl::StrCat("for ", FormatDuration(value));
  if (kind == "rate") return FormatRate(static_cast<uint64_t>(value));
  if (kind == "weight" || kind == "job-slow" || kind == "job-steady")
    return FormatPermille(static_cast<uint32_t>(std::min<int64_t>(value, 1000)));
  return absl::StrCat(value);
}

std::string MeaningForJobs(const v1::PlannedNic& planned) {
  if (planned.weight_permille() == 0) {
    switch (planned.state()) {
      case v1::FAILED: return "send nothing over it; their data goes over the node's other NICs";
      case v1::PROVING: return "send nothing over it yet: it has to work for a while first";
      case v1::DRAINED: return "begin nothing new over it; what is in flight ends";
      case v1::UNCABLED: return "do not use it";
      default: return "send nothing over it, as its weight is 0";
    }
  }
  if (planned.weight_permille() < 1000)
    return absl::StrCat("send ", FormatPermille(planned.weight_permille()), " of a full NIC's share over it");
  if (planned.state() == v1::SUSPECT) return "go on over it, and leave it as soon as it loses data";
  return "use it fully";
}

}  // namespace r2cc::client
