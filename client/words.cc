#include "client/words.h"

#include <algorithm>
#include <iterator>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/units.h"
#include "plan/page/ring.h"

namespace r2cc::client {
namespace {

struct Words {
  absl::string_view name;
  absl::string_view text;
};

constexpr Words kEvidence[] = {
    {"link-up", "the link is up"},
    {"link-down", "the link is down"},
    {"rate", "speed of the link"},
    {"errors", "error counters of the port"},
    {"carrier-flips", "the carrier came and went"},
    {"link-bounces", "the link came and went"},
    {"drain", "drained by an operator"},
    {"drain-now", "drained at once by an operator"},
    {"undrain", "drain taken back by an operator"},
    {"drain-job", "drained for one job by an operator"},
    {"undrain-job", "drain for one job taken back by an operator"},
    {"weight", "limit set by an operator"},
    {"drill-fail", "drill: failed by an operator"},
    {"drill-restore", "drill ended"},
    {"job-fenced", "a job gave up its link"},
    {"job-link-up", "a job's link carries data"},
    {"job-slow", "slow for a job"},
    {"job-steady", "no longer slow for a job"},
    {"peer-suspects", "a job elsewhere gave up its link to it"},
    {"peer-nic-failed", "the NIC of the other end failed"},
    {"peer-nic-back", "the NIC of the other end is back"},
    {"rail-silent", "no answer to probes"},
    {"rail-answers", "probes are answered again"},
    {"path-broken", "no answer on this path alone"},
    {"path-back", "the path answers again"},
    {"rail-doubtful", "no answer, and nobody can say which end"},
    {"large-lost", "large packets are lost"},
    {"large-passes", "large packets pass again"},
    {"fabric-gone", "the port left the InfiniBand fabric"},
    {"fabric-back", "the port is back in the InfiniBand fabric"},
    {"rdma-down", "RDMA does not work"},
    {"rdma-up", "RDMA works again"},
    {"rdma-event", "the RDMA device reports"},
};

}  // namespace

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
  const auto found = std::find_if(std::begin(kEvidence), std::end(kEvidence), [&](const Words& words) { return words.name == kind; });
  return std::string(found == std::end(kEvidence) ? kind : found->text);
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
