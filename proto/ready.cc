#include "proto/ready.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace r2cc {

bool CarriesJobs(const v1::NicView& nic) {
  const bool carries = nic.state() == v1::HEALTHY || nic.state() == v1::DEGRADED || nic.state() == v1::SUSPECT;
  return carries && nic.operator_weight_permille() > 0;
}

v1::ReadyReport JudgeReady(const absl::StatusOr<v1::NodeView>& own, size_t rails_min) {
  v1::ReadyReport report;
  if (!own.ok()) {
    report.set_exit_code(kCannotTell);
    report.set_text(absl::StrCat("cannot tell: ", own.status().message()));
    return report;
  }
  std::vector<std::string> others;
  uint32_t usable = 0, proving = 0;
  for (const v1::NicView& nic : own->nics()) {
    if (CarriesJobs(nic)) {
      ++usable;
      continue;
    }
    proving += nic.state() == v1::PROVING ? 1 : 0;
    others.push_back(absl::StrCat(nic.name(), " ", v1::NicState_Name(nic.state()), nic.reason().empty() ? "" : ": ", nic.reason()));
  }
  const bool ready = usable >= rails_min;
  const bool later = !ready && usable + proving >= rails_min;
  report.set_node(own->node());
  report.set_rails(static_cast<uint32_t>(own->nics_size()));
  report.set_rails_usable(usable);
  report.set_exit_code(ready ? kReady : later ? kCannotTell : kNotReady);
  report.set_text(absl::StrCat(ready   ? "ready: "
                               : later ? "cannot tell yet: "
                                       : "not ready: ",
                               own->node(), " has ", usable, " of ", report.rails(), " rails"));
  if (!ready) absl::StrAppend(report.mutable_text(), ", needs ", rails_min);
  if (!others.empty()) absl::StrAppend(report.mutable_text(), " (", absl::StrJoin(others, "; "), ")");
  return report;
}

}  // namespace r2cc
