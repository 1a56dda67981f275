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
  Setting& setting = settings_[nic];
  const bool before = setting.wanted > 0;
  setting.wanted += drained ? 1 : -1;
  if (before == (setting.wanted > 0)) return;
  setting.how = how;
  setting.settled = false;
  // From here on either answer may be in force.
  setting.promised_since = 0;
  if (!setting.asking) Ask(nic);
}

cluster::Node* Operator::DaemonFor(const Nic& nic, int how) const {
  const size_t count = nodes_->size(), own = static_cast<size_t>(nic.node);
  const size_t first = (how & 2) == 0 ? own : (own + 1) % count;
  for (size_t i = 0; i < count; ++i)
    if (cluster::Node* const node = (*nodes_)[(first + i) % count].get(); node->running()) return node;
  return nullptr;
}

void Operator::Ask(const Nic& nic) {
  Setting& setting = settings_[nic];
  setting.asking = true;
  cluster::Node* const daemon = DaemonFor(nic, setting.how);
  if (daemon == nullptr) return timeline_->After(kPause, [this, nic] { Ask(nic); });
  const bool drain = setting.wanted > 0;
  v1::NicActionRequest request;
  request.set_node(cluster::NodeName(nic.node));
  request.set_nic((*nodes_)[static_cast<size_t>(nic.node)]->nic_name(nic.rail));
  request.set_action(!drain ? v1::UNDRAIN : (setting.how & 4) != 0 ? v1::DRAIN_NOW : v1::DRAIN);
  request.set_force((setting.how & 1) != 0);
  const auto answered = std::make_shared<bool>(false);
  daemon->Ask(request, [this, nic, drain, answered](const absl::StatusOr<v1::NicActionReply>& reply) {
    if (!std::exchange(*answered, true)) Answered(nic, drain, reply);
  });
  timeline_->After(kAskAgain, [this, nic, drain, answered] {
    if (!std::exchange(*answered, true)) Answered(nic, drain, absl::DeadlineExceededError("no answer"));
  });
}

void Operator::Answered(const Nic& nic, bool drain, const absl::StatusOr<v1::NicActionReply>& reply) {
  Setting& setting = settings_[nic];
  setting.asking = false;
  const bool news = (setting.wanted > 0) != drain;
  // The last NIC that carries traffic: that is an answer, too.
  const bool refused = reply.status().code() == absl::StatusCode::kFailedPrecondition && drain;
  if (!news && (reply.ok() || refused)) {
    setting.settled = true;
    if (reply.ok() && drain && reply->not_kept().empty()) setting.promised_since = timeline_->now();
    return;
  }
  timeline_->After(kPause, [this, nic] {
    if (!settings_[nic].asking && !settings_[nic].settled) Ask(nic);
  });
}

bool Operator::answered() const {
  return std::all_of(settings_.begin(), settings_.end(), [](const auto& entry) { return entry.second.settled; });
}

Nanos Operator::promised_since(const Nic& nic) const {
  const auto setting = settings_.find(nic);
  return setting == settings_.end() ? 0 : setting->second.promised_since;
}

}  // namespace r2cc::world
