#include "daemon/services/fleet_pages.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "base/core/glob.h"
#include "daemon/core/convert.h"

namespace r2cc::daemon {
namespace {

bool IsBad(const health::NicStatus& nic) { return nic.state != health::NicState::kHealthy && nic.state != health::NicState::kUncabled; }

auto Behind(const health::ClusterView& view, const std::string& after) {
  return after.empty() ? view.nodes().begin() : view.nodes().upper_bound(after);
}

bool Fits(const std::string& glob, const std::string& node) {
  return glob.empty() || (glob.size() <= kGlobBytesMax && GlobFits(glob, node));
}

// Which NICs a list is to name.
class NicFilter {
 public:
  explicit NicFilter(const v1::ListNicsRequest& request) : bad_(request.bad()), states_(request.states().begin(), request.states().end()) {}

  bool everything() const { return !bad_ && states_.empty(); }
  bool Takes(const health::NicStatus& nic) const {
    if (bad_ && !IsBad(nic)) return false;
    return states_.empty() || std::find(states_.begin(), states_.end(), ToProto(nic.state)) != states_.end();
  }

 private:
  const bool bad_;
  const std::vector<int> states_;
};

}  // namespace

v1::ClusterSummary Summarise(const health::ClusterView& view) {
  std::map<v1::NodeStatus, uint32_t> nodes;
  std::map<v1::NicState, uint32_t> nics;
  for (const auto& [name, entry] : view.nodes()) {
    ++nodes[ToProto(view.StatusOf(entry))];
    for (const health::NicStatus& nic : entry.state.nics) ++nics[ToProto(nic.state)];
  }
  v1::ClusterSummary summary;
  for (const auto& [word, count] : nodes) {
    auto* out = summary.add_nodes();
    out->set_word(word);
    out->set_nodes(count);
  }
  for (const auto& [state, count] : nics) {
    auto* out = summary.add_nics();
    out->set_state(state);
    out->set_nics(count);
  }
  return summary;
}

v1::ListNicsReply NicsPage(const v1::ListNicsRequest& request, const health::ClusterView& view, const ShowNode& show, size_t bytes_max) {
  v1::ListNicsReply reply;
  if (request.after_node().empty()) *reply.mutable_summary() = Summarise(view);
  const NicFilter filter(request);
  const std::string* last = nullptr;
  size_t bytes = 0;
  for (auto it = Behind(view, request.after_node()); it != view.nodes().end(); ++it) {
    const auto& [name, entry] = *it;
    if (bytes >= bytes_max) {
      reply.set_next_after(*last);
      break;
    }
    last = &name;
    if ((!request.node().empty() && name != request.node()) || !Fits(request.node_glob(), name)) continue;
    const auto& nics = entry.state.nics;
    const bool takes_any = std::any_of(nics.begin(), nics.end(), [&](const health::NicStatus& nic) { return filter.Takes(nic); });
    if (!takes_any && !filter.everything()) continue;
    v1::NodeView shown = show(entry);
    google::protobuf::RepeatedPtrField<v1::NicView> taken;
    for (int i = 0; i < shown.nics_size() && static_cast<size_t>(i) < nics.size(); ++i)
      if (filter.Takes(nics[static_cast<size_t>(i)])) *taken.Add() = std::move(*shown.mutable_nics(i));
    shown.mutable_nics()->Swap(&taken);
    bytes += shown.ByteSizeLong();
    *reply.add_nodes() = std::move(shown);
  }
  return reply;
}

void AddStatusNodes(const v1::StatusRequest& request, const health::ClusterView& view, const ShowNode& show, v1::StatusReply* reply,
                    size_t bytes_max) {
  if (request.after_node().empty()) *reply->mutable_summary() = Summarise(view);
  const bool few = request.nodes_max() > 0 && view.nodes().size() > request.nodes_max();
  const std::string* last = nullptr;
  size_t bytes = 0;
  for (auto it = Behind(view, request.after_node()); it != view.nodes().end(); ++it) {
    const auto& [name, entry] = *it;
    if (bytes >= bytes_max) return reply->set_next_after(*last);
    last = &name;
    const bool well = view.StatusOf(entry) == health::NodeStatus::kHealthy;
    if (!Fits(request.node_glob(), name) || ((few || request.bad()) && well)) continue;
    if (few && static_cast<uint32_t>(reply->nodes_size()) >= request.nodes_max()) {
      reply->set_left_out(reply->left_out() + 1);
      continue;
    }
    v1::NodeView shown = show(entry);
    bytes += shown.ByteSizeLong();
    *reply->add_nodes() = std::move(shown);
  }
}

plan::Plan PlanPage(const plan::Plan& plan, std::string after_node, std::string* next_after, size_t nics_max) {
  next_after->clear();
  plan::Plan page = {plan.epoch, {}, {}};
  if (after_node.empty()) page.broken_paths = plan.broken_paths;
  auto nic = std::partition_point(plan.nics.begin(), plan.nics.end(),
                                  [&](const plan::PlannedNic& one) { return !after_node.empty() && one.node <= after_node; });
  for (; nic != plan.nics.end(); ++nic) {
    if (page.nics.size() >= nics_max && nic->node != page.nics.back().node) {
      *next_after = page.nics.back().node;
      break;
    }
    page.nics.push_back(*nic);
  }
  return page;
}

}  // namespace r2cc::daemon
