#include "health/probe/rdma_path_judge.h"

#include "absl/strings/str_cat.h"

namespace r2cc::health {

void RdmaPathJudge::Answered() {
  misses_ = 0;
  if (state_ == RdmaPathState::kBroken && ++answers_ < kRdmaProofAnswers) return;
  state_ = RdmaPathState::kAnswering;
  answers_ = 0;
}

void RdmaPathJudge::Missed(Nanos sent, Nanos udp_answered_sent) {
  answers_ = 0;
  if (udp_answered_sent < sent || ++misses_ < kRdmaMisses) return;
  state_ = RdmaPathState::kBroken;
}

std::string RdmaFault(std::span<const RdmaPathStatus> paths) {
  size_t known = 0;
  size_t broken = 0;
  std::string first;
  for (const RdmaPathStatus& path : paths) {
    if (path.state != RdmaPathState::kUnknown) ++known;
    if (path.state == RdmaPathState::kBroken && broken++ == 0) first = path.peer.ToString();
  }
  if (2 * broken <= known) return "";
  const std::string others = broken > 1 ? absl::StrCat(" and ", broken - 1, " more") : "";
  return absl::StrCat("RDMA writes to ", first, others, " are not answered, UDP probes are");
}

RdmaStep NextRdmaStep(const RdmaEnd& own, const std::optional<RdmaEnd>& peer) {
  if (own.meets == 0) return peer.has_value() && (peer->meets == 0 || peer->meets == own.number) ? RdmaStep::kConnect : RdmaStep::kWait;
  if (!peer.has_value() || peer->number != own.meets) return RdmaStep::kRenew;
  return peer->meets == own.number ? RdmaStep::kWrite : RdmaStep::kWait;
}

}  // namespace r2cc::health
