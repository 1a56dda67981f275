#include "daemon/services/disagreement_service.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/time.h"
#include "base/names.h"

namespace r2cc::daemon {
namespace {

// Shares whose allowance is remembered.
constexpr size_t kSharesMax = 4096;

std::string Clean(const std::string& text) { return CleanText(text.data(), std::min(text.size(), DisagreementService::kNameBytesMax)); }

}  // namespace

absl::StatusOr<v1::DisagreementReply> DisagreementService::Report(const v1::DisagreementRequest& request, const Caller& caller,
                                                                  const absl::Status& may) {
  uint64_t left_out = 0;
  const absl::Status status = may.ok() ? Check(request, caller, &left_out) : may;
  if (!status.ok()) {
    // One of too many is counted by the next event, and takes no place from other refusals.
    if (!absl::IsResourceExhausted(status)) audit_->Add({.action = "disagreement", .node = reporter_->node(), .status = status}, caller);
    return status;
  }
  std::vector<std::string> ranks;
  for (const std::string& rank : request.ranks())
    if (ranks.size() < kRanksShown) ranks.push_back(Clean(rank));
  const int more = request.ranks_size() - static_cast<int>(ranks.size());
  v1::Event event = reporter_->New(
      "disagreement",
      absl::StrCat("ranks of run ", Clean(request.run()), " disagree at step ", request.step(), ", point ", Clean(request.point()), ": ",
                   absl::StrJoin(ranks, ", "), more > 0 ? absl::StrCat(" and ", more, " more") : "",
                   ranks.size() + static_cast<size_t>(more) == 1 ? " differs" : " differ", "; reported by ", Describe(caller),
                   left_out > 0 ? absl::StrCat("; ", left_out, " more reports before it are left out") : ""));
  audit_->AddOf(std::move(event), "disagreement", caller);
  v1::DisagreementReply reply;
  reply.set_node(reporter_->node());
  return reply;
}

absl::Status DisagreementService::Check(const v1::DisagreementRequest& request, const Caller& caller, uint64_t* left_out) {
  const auto is_empty = [](const std::string& text) { return Clean(text).empty(); };
  if (is_empty(request.run()) || is_empty(request.point()) || request.ranks().empty() ||
      std::any_of(request.ranks().begin(), request.ranks().end(), is_empty))
    return absl::InvalidArgumentError("a disagreement has a run, a point and at least one rank");
  const std::string share = ShareOf(caller);
  if (allowances_.size() >= kSharesMax && !allowances_.contains(share)) allowances_.clear();
  RefusalAllowance& allowance = allowances_.try_emplace(share, kBurst, kInterval).first->second;
  if (allowance.Take(reporter_->Now().monotonic_ns, left_out)) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("rate limit: ", share, " reports more than ", kBurst,
                                                   " disagreements at once or one per ", absl::FormatDuration(absl::Nanoseconds(kInterval)),
                                                   "; this one is counted and not recorded"));
}

}  // namespace r2cc::daemon
