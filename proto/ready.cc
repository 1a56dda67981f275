#include "proto/ready.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"

namespace r2cc {
namespace {

bool ShouldWork(const v1::NicView& nic) {
  return nic.state() != v1::UNCABLED && nic.state() != v1::DRAINED && !nic.drill_failed() && nic.operator_weight_permille() > 0;
}

}  // namespace

bool CarriesJobs(const v1::NicView& nic) {
  const bool carries = nic.state() == v1::HEALTHY || nic.state() == v1::DEGRADED || nic.state() == v1::SUSPECT;
  return carries && nic.operator_weight_permille() > 0;
}

std::string NpdLine(const v1::ReadyReport& report) {
  std::string line = report.text();
  if (report.exit_code() != kUndecided || !report.node().empty()) {
    const std::string rails = absl::StrCat(report.rails_usable(), " of ", report.rails(), " rails usable");
    line = absl::StrJoin(report.causes(), "; ");
    line = line.empty() ? rails : line.size() + rails.size() + 2 > kNpdBytesMax ? line : absl::StrCat(line, "; ", rails);
  }
  if (line.size() <= kNpdBytesMax) return line;
  constexpr absl::string_view kMore = "...";
  line.resize(kNpdBytesMax - kMore.size());
  // Not in the midst of a letter: UTF-8 goes on with 10xxxxxx.
  while (!line.empty() && (static_cast<unsigned char>(line.back()) & 0xc0) == 0x80) line.pop_back();
  if (!line.empty() && static_cast<unsigned char>(line.back()) >= 0xc0) line.pop_back();
  return absl::StrCat(line, kMore);
}

v1::ReadyReport JudgeReady(const absl::StatusOr<v1::NodeView>& own, size_t rails_min) {
  v1::ReadyReport report;
  if (!own.ok()) {
    report.set_exit_code(kUndecided);
    report.set_text(absl::StrCat("cannot tell: ", own.status().message()));
    return report;
  }
  std::vector<std::string> others;
  uint32_t usable = 0, proving = 0, should_work = 0;
  for (const v1::NicView& nic : own->nics()) {
    should_work += ShouldWork(nic) ? 1 : 0;
    if (CarriesJobs(nic)) {
      ++usable;
      continue;
    }
    proving += nic.state() == v1::PROVING ? 1 : 0;
    others.push_back(absl::StrCat(nic.name(), " ", v1::NicState_Name(nic.state()), nic.reason().empty() ? "" : ": ", nic.reason()));
    if (ShouldWork(nic)) report.add_causes(others.back());
  }
  if (rails_min == kEachRail) rails_min = should_work;
  const bool ready = usable >= rails_min;
  const bool later = !ready && usable + proving >= rails_min;
  report.set_node(own->node());
  report.set_rails(static_cast<uint32_t>(own->nics_size()));
  report.set_rails_usable(usable);
  report.set_exit_code(ready ? kReady : later ? kUndecided : kNotReady);
  report.set_text(absl::StrCat(ready   ? "ready: "
                               : later ? "cannot tell yet: "
                                       : "not ready: ",
                               own->node(), " has ", usable, " of ", report.rails(), " rails"));
  if (!ready) absl::StrAppend(report.mutable_text(), ", needs ", rails_min);
  if (!others.empty()) absl::StrAppend(report.mutable_text(), " (", absl::StrJoin(others, "; "), ")");
  return report;
}

}  // namespace r2cc
