#include "client/conditions/node_conditions.h"

#include <utility>

#include "base/names.h"
#include "client/core/table.h"
#include "proto/ready.h"

namespace r2cc::client {
namespace {

constexpr size_t kMessageBytesMax = 1024;
constexpr char kProving[] = "Proving";
constexpr char kLeft[] = "Left";
constexpr char kUnreachable[] = "Unreachable";

std::string Clean(std::string text) {
  text = Printable(text);
  if (text.size() <= kMessageBytesMax) return text;
  text.resize(kMessageBytesMax);
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0x80) != 0) text.pop_back();
  return text;
}

}  // namespace

std::string ToText(ConditionStatus status) {
  return status == ConditionStatus::kTrue ? "True" : status == ConditionStatus::kFalse ? "False" : "Unknown";
}

NodeCondition ConditionOf(const v1::NodeView& node) {
  if (node.word() == v1::NODE_UNREACHABLE) return {ConditionStatus::kUnknown, kUnreachable, "no daemon hears r2ccd of this node"};
  const v1::ReadyReport report = JudgeReady(node, kEachRail);
  const std::string message = Clean(NpdLine(report));
  if (report.exit_code() == kReady) return {ConditionStatus::kFalse, "RailsWork", message};
  if (report.exit_code() == kNotReady) return {ConditionStatus::kTrue, "RailDegraded", message};
  return {ConditionStatus::kUnknown, kProving, message};
}

bool NodeConditions::Write::may_have_left() const { return condition.reason == kLeft || condition.reason == kUnreachable; }

void NodeConditions::Adopt(const std::string& node, const NodeCondition& condition, Nanos now) {
  if (!IsNodeName(node) || condition.reason == kLeft || known_.size() >= kNodesMax) return;
  const auto [place, is_new] = known_.try_emplace(node);
  if (is_new) place->second = {.condition = condition, .written = true, .written_at = now - kHeartbeat, .not_before = now, .seen = now};
}

std::vector<NodeConditions::Write> NodeConditions::Look(const std::vector<v1::NodeView>& nodes, Nanos now) {
  std::vector<Write> writes;
  for (const v1::NodeView& node : nodes) {
    // Its name becomes part of the path of a request that carries our token.
    if (!IsNodeName(node.node()) || node.node() == "." || node.node() == "..") continue;
    // A daemon that keeps the store and watches no NICs.
    if (node.nics().empty()) continue;
    if (known_.size() >= kNodesMax && !known_.contains(node.node())) continue;
    Known& known = known_[node.node()];
    known.seen = now;
    NodeCondition condition = ConditionOf(node);
    // A start of a daemon and a short proof are no news.
    if (known.written && condition.reason == kProving) condition = known.condition;
    if (IsDue(known, condition, now) && writes.size() < kPerLookMax)
      writes.push_back({node.node(), condition, known.written && known.condition.status != condition.status});
  }
  std::erase_if(known_, [&](const auto& entry) { return !entry.second.written && now - entry.second.seen >= kGone; });
  for (auto& [name, known] : known_)
    if (now - known.seen >= kGone && now >= known.not_before && writes.size() < kPerLookMax)
      writes.push_back({name,
                        {ConditionStatus::kUnknown, kLeft, "r2ccd of this node has left R2CC's cluster"},
                        known.condition.status != ConditionStatus::kUnknown});
  return writes;
}

bool NodeConditions::IsDue(const Known& known, const NodeCondition& condition, Nanos now) {
  if (now < known.not_before) return false;
  if (!known.written || known.condition.status != condition.status) return true;
  return now - known.written_at >= (known.condition == condition ? kHeartbeat : kTextInterval);
}

void NodeConditions::Delivered(const Write& write, Nanos now) {
  if (write.condition.reason == kLeft) {
    known_.erase(write.node);
    return;
  }
  Known& known = known_[write.node];
  known.condition = write.condition;
  known.written = true;
  known.written_at = now;
  known.not_before = now + kPause;
}

void NodeConditions::Failed(const Write& write, Nanos now, Nanos pause) { known_[write.node].not_before = now + pause; }

void NodeConditions::NotOurs(const Write& write, Nanos now) {
  if (write.condition.reason == kLeft)
    known_.erase(write.node);
  else
    Failed(write, now, kHeartbeat);
}

}  // namespace r2cc::client
