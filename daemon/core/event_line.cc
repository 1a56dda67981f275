#include "daemon/core/event_line.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/core/hash.h"

namespace r2cc::daemon {
namespace {

constexpr std::string_view kWarnings[] = {"disagreement", "duplicate-node", "job-gave-up", "job-hang",
                                          "link-flaps",   "peer-held",      "peer-lost",   "plan-refused"};

}  // namespace

std::string EventLine(const v1::Event& event) {
  std::string line;
  if (!event.nic().empty()) absl::StrAppend(&line, event.node(), "/", event.nic(), ": ");
  if (event.to_state() != v1::NIC_STATE_UNSPECIFIED)
    absl::StrAppend(&line, v1::NicState_Name(event.from_state()), " -> ", v1::NicState_Name(event.to_state()), ": ");
  return line + event.message();
}

std::string EventMessageId(const std::string& kind) {
  return absl::StrFormat("%016x%016x", Fnv1a64(absl::StrCat("r2cc event ", kind)), Fnv1a64(absl::StrCat("r2cc event ", kind, " (2)")));
}

Severity EventLevel(const v1::Event& event) {
  const bool warning = event.to_state() == v1::FAILED || event.to_state() == v1::DEGRADED ||
                       std::find(std::begin(kWarnings), std::end(kWarnings), event.kind()) != std::end(kWarnings);
  return warning ? Severity::kWarning : Severity::kInfo;
}

}  // namespace r2cc::daemon
