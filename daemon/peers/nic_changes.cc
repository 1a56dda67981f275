#include "daemon/peers/nic_changes.h"

#include <utility>

#include "base/log.h"

namespace r2cc::daemon {
namespace {

// Changes of one node's NICs that are events: a node with 16 NICs that dies and comes back has some 50.
constexpr int kChangesPerSecond = 4;
constexpr int kChangesBurst = 128;
// Nodes that are not there any more, and are still known here.
constexpr size_t kGoneMax = 256;

}  // namespace

void NicChanges::Report(const health::NodeState* before, const health::NodeState& after) {
  if (before == nullptr) return;
  const Nanos now = reporter_->Now().monotonic_ns;
  for (const auto& nic : after.nics) {
    const auto* old = before->Find(nic.identity.name);
    if (old == nullptr || old->state == nic.state) continue;
    Changes& changes = changes_.try_emplace(after.node, Changes{{kChangesPerSecond, kChangesBurst}}).first->second;
    if (!changes.allowance.Take(now)) {
      if (changes.suppressed++ == 0) LogWarning("a node's NICs change too often: that is counted, and no event", {{"node", after.node}});
      continue;
    }
    if (const uint64_t suppressed = std::exchange(changes.suppressed, 0); suppressed > 0)
      LogWarning("changes of a node's NICs were no events", {{"node", after.node}, {"changes", suppressed}});
    reporter_->ReportState({after.node, nic.identity.name}, old->state, nic.state, nic.reason);
  }
  // Nodes that are not there any more.
  if (changes_.size() > view_->nodes().size() + kGoneMax)
    std::erase_if(changes_, [this](const auto& entry) { return view_->Find(entry.first) == nullptr; });
}

}  // namespace r2cc::daemon
