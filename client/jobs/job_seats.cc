#include "client/jobs/job_seats.h"

#include <algorithm>
#include <map>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/core/table.h"
#include "plan/collective/seats.h"
#include "proto/ready.h"

namespace r2cc::client {
namespace {

constexpr uint32_t kPermille = 1000;
// Two channels for each NIC, as NCCL makes them.
constexpr uint32_t kChannelsOfNic = 2;

// How much the node's NICs carry of what all would.
uint32_t KeptPermille(const v1::NodeView& node) {
  if (node.nics().empty()) return kPermille;
  uint64_t kept = 0;
  for (const v1::NicView& nic : node.nics()) {
    if (!CarriesJobs(nic)) continue;
    const uint32_t share = nic.has_share_permille() ? std::min(nic.share_permille(), kPermille) : kPermille;
    kept += std::min(nic.operator_weight_permille(), share);
  }
  return static_cast<uint32_t>(kept / static_cast<uint64_t>(node.nics_size()));
}

absl::StatusOr<std::vector<const v1::NodeView*>> Chosen(const JobSeatsCommand& command, const v1::ListNicsReply& nics) {
  std::vector<const v1::NodeView*> chosen;
  std::map<std::string, const v1::NodeView*> known;
  for (const v1::NodeView& node : nics.nodes()) {
    known[node.node()] = &node;
    if (command.hosts.empty()) chosen.push_back(&node);
  }
  for (const std::string& host : command.hosts) {
    const auto found = known.find(host);
    if (found == known.end())
      return absl::NotFoundError(absl::StrCat("unknown node '", host, "'; `r2ccctl status` shows the nodes by their names"));
    if (std::count(command.hosts.begin(), command.hosts.end(), host) > 1)
      return absl::InvalidArgumentError(absl::StrCat("'", host, "' is named twice; name each host once"));
    chosen.push_back(found->second);
  }
  return chosen;
}

}  // namespace

absl::StatusOr<v1::JobSeats> MakeJobSeats(const JobSeatsCommand& command, const v1::ListNicsReply& nics) {
  const auto chosen = Chosen(command, nics);
  if (!chosen.ok()) return chosen.status();
  const auto count = static_cast<uint32_t>(chosen->size());
  if (count > plan::kSeatNodesMax)
    return absl::InvalidArgumentError(absl::StrCat(count, " nodes are more than ", plan::kSeatNodesMax, "; name the hosts of the job"));
  plan::SeatNodes nodes{.ranks = count * static_cast<uint32_t>(command.gpus)};
  v1::JobSeats seats;
  for (const v1::NodeView* node : *chosen) {
    const uint32_t kept = KeptPermille(*node);
    nodes.kept_permille.push_back(kept);
    nodes.channels = std::max(nodes.channels, kChannelsOfNic * static_cast<uint32_t>(node->nics_size()));
    if (kept == kPermille) continue;
    v1::DegradedNode* const degraded = seats.add_degraded();
    degraded->set_node(node->node());
    degraded->set_kept_permille(kept);
  }
  const plan::SeatDecision decision = plan::DecideSeats(nodes);
  for (uint32_t position = 0; position < count; ++position)
    seats.add_hosts((*chosen)[decision.order.empty() ? position : decision.order[position]]->node());
  seats.set_changed(!decision.order.empty());
  seats.set_time_over_usual(decision.over_usual);
  return seats;
}

std::string FormatJobSeats(const v1::JobSeats& seats) {
  std::string text;
  for (const v1::DegradedNode& node : seats.degraded())
    absl::StrAppend(&text, "# ", Printable(node.node()), " has ", (node.kept_permille() + 5) / 10, " % of its rails\n");
  if (seats.degraded().empty())
    absl::StrAppend(&text, "# all nodes have all their rails: any order will do\n");
  else if (!seats.changed())
    absl::StrAppend(&text, "# no order gains 3 % for a large all_reduce\n");
  else
    absl::StrAppend(&text, "# in this order, and with NCCL_ALGO=allreduce:tree, a large all_reduce takes ",
                    absl::StrFormat("%.2f", seats.time_over_usual()), " of the time of NCCL's own choice\n");
  for (const std::string& host : seats.hosts()) absl::StrAppend(&text, Printable(host), "\n");
  return text;
}

}  // namespace r2cc::client
