#include "tests/world/operator.h"

#include <algorithm>
#include <utility>

namespace r2cc::world {
namespace {

// An operator's patience with one request: r2ccctl's time-out is of this order.
constexpr Nanos kAskAgain = 4 * kNanosPerSecond;
constexpr Nanos kPause = 200 * kNanosPerMs;

}  // namespace

void Operator::Drain(const Nic& nic, int how, bool drained) {
  Word& word = words_[nic];
  const bool before = word.wanted > 0;
  word.wanted += drained ? 1 : -1;
  if (before == (word.wanted > 0)) return;
  word.how = how;
  word.settled = false;
  // From here on either answer may be in force.
  word.promised_since = 0;
  if (!word.asking) Ask(nic);
}

cluster::Node* Operator::DaemonFor(const Nic& nic, int how) const {
  const size_t count = nodes_->size(), own = static_cast<size_t>(nic.node);
  const size_t first = (how & 2) == 0 ? own : (own + 1) % count;
  for (size_t i = 0; i < count; ++i)
    if (cluster::Node* const node = (*nodes_)[(first + i) % count].get(); node->running()) return node;
  return nullptr;
}

void Operator::Ask(const Nic& nic) {
  Word& word = words_[nic];
  word.asking = true;
  cluster::Node* const daemon = DaemonFor(nic, word.how);
  if (daemon == nullptr) return timeline_->After(kPause, [this, nic] { Ask(nic); });
  const bool drain = word.wanted > 0;
  v1::NicActionRequest request;
  request.set_node(cluster::NodeName(nic.node));
  request.set_nic((*nodes_)[static_cast<size_t>(nic.node)]->nic_name(nic.rail));
  request.set_action(!drain ? v1::UNDRAIN : (word.how & 4) != 0 ? v1::DRAIN_NOW : v1::DRAIN);
  request.set_force((word.how & 1) != 0);
  const auto answered = std::make_shared<bool>(false);
  daemon->Ask(request, [this, nic, drain, answered](const absl::StatusOr<v1::NicActionReply>& reply) {
    if (!std::exchange(*answered, true)) Heard(nic, drain, reply);
  });
  timeline_->After(kAskAgain, [this, nic, drain, answered] {
    if (!std::exchange(*answered, true)) Heard(nic, drain, absl::DeadlineExceededError("no answer"));
  });
}

void Operator::Heard(const Nic& nic, bool drain, const absl::StatusOr<v1::NicActionReply>& reply) {
  Word& word = words_[nic];
  word.asking = false;
  const bool news = (word.wanted > 0) != drain;
  // The last NIC that carries traffic: that is an answer, too.
  const bool refused = reply.status().code() == absl::StatusCode::kFailedPrecondition && drain;
  if (!news && (reply.ok() || refused)) {
    word.settled = true;
    if (reply.ok() && drain && reply->not_kept().empty()) word.promised_since = timeline_->now();
    return;
  }
  timeline_->After(kPause, [this, nic] {
    if (!words_[nic].asking && !words_[nic].settled) Ask(nic);
  });
}

bool Operator::answered() const {
  return std::all_of(words_.begin(), words_.end(), [](const auto& entry) { return entry.second.settled; });
}

Nanos Operator::promised_since(const Nic& nic) const {
  const auto word = words_.find(nic);
  return word == words_.end() ? 0 : word->second.promised_since;
}

}  // namespace r2cc::world
