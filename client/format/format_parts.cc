#include "client/format/format_parts.h"

#include <algorithm>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "client/core/units.h"

namespace r2cc::client {

std::string StateName(v1::NicState state) {
  return state == v1::NIC_STATE_UNSPECIFIED ? "?" : v1::NicState_IsValid(state) ? v1::NicState_Name(state) : absl::StrCat("state ", state);
}

Colour StateColour(v1::NicState state) {
  switch (state) {
    case v1::HEALTHY: return Colour::kGreen;
    case v1::FAILED: return Colour::kRed;
    case v1::DRAINED: return Colour::kBlue;
    case v1::UNCABLED: return Colour::kDim;
    default: return Colour::kYellow;
  }
}

std::string NicName(absl::string_view node, absl::string_view nic) { return absl::StrCat(node, "/", nic); }

std::string EpochText(const v1::Epoch& epoch) {
  return absl::StrCat(epoch.counter(), " (life ", absl::Hex(epoch.incarnation(), absl::kZeroPad16), ")");
}

std::string Ago(int64_t then_ns, const Style& style) {
  if (then_ns <= 0) return "";
  return absl::StrCat(FormatDuration(style.now_ns - then_ns), " ago");
}

std::string Drill(const v1::NicView& nic, const Style& style) {
  if (nic.drill_ends_ns() == 0) return "fail-nic";
  return absl::StrCat("fail-nic, ", FormatDuration(std::max<int64_t>(nic.drill_ends_ns() - style.now_ns, 0)), " left");
}

std::string OperatorSettings(const v1::NicView& nic, const Style& style) {
  std::vector<std::string> parts;
  if (nic.drained()) parts.push_back(nic.drained_now() ? "drained at once" : "drained");
  for (const std::string& job : nic.drained_jobs()) parts.push_back(absl::StrCat("drained for job ", job));
  if (nic.drill_failed()) parts.push_back(Drill(nic, style));
  return absl::StrJoin(parts, ", ");
}

}  // namespace r2cc::client
