#include "daemon/http/map.h"

namespace r2cc::daemon {
namespace {

constexpr uint32_t kWholePermille = 1000;

// Nothing is to be shown but its name.
bool IsWell(const v1::NicView& nic) {
  return nic.state() == v1::HEALTHY && nic.operator_weight_permille() == kWholePermille && !nic.drained() && !nic.drill_failed() &&
         nic.drill_ends_ns() == 0 && nic.drained_jobs().empty();
}

}  // namespace

v1::ClusterMap MapOf(const v1::ListNicsReply& nics, const v1::StatusReply& asked) {
  v1::ClusterMap map;
  map.set_node(asked.node());
  map.set_release(asked.release());
  for (const v1::NodeView& view : nics.nodes()) {
    v1::MapNode* const node = map.add_nodes();
    node->set_node(view.node());
    node->set_word(view.word());
    for (const v1::NicView& nic : view.nics()) {
      if (IsWell(nic)) {
        node->add_healthy(nic.name());
        continue;
      }
      v1::MapNic* const shown = node->add_nics();
      shown->set_name(nic.name());
      shown->set_state(nic.state());
      shown->set_reason(nic.reason());
      shown->set_since_ns(nic.since_ns());
      shown->set_operator_weight_permille(nic.operator_weight_permille());
      if (nic.has_share_permille()) shown->set_share_permille(nic.share_permille());
      shown->set_drained(nic.drained());
      shown->set_drill_failed(nic.drill_failed());
      shown->set_drill_ends_ns(nic.drill_ends_ns());
      *shown->mutable_drained_jobs() = nic.drained_jobs();
    }
  }
  return map;
}

}  // namespace r2cc::daemon
