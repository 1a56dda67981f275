// Holds the flows that a receiver has closed while links could still place into their buffers. Each such link is a writer, until the peer
// has confirmed the BYE and has then answered a ping on the link: it places nothing more of the flow, and nothing is in flight. A writer
// that does not answer must end its incarnation. Pure; with its owner's lock.
#ifndef R2CC_NETPLUGIN_LINK_RETIRING_FLOWS_H_
#define R2CC_NETPLUGIN_LINK_RETIRING_FLOWS_H_

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/flow/tuning.h"
#include "netplugin/flow/types.h"

namespace r2cc::net {

class RetiringFlows {
 public:
  struct Writer {
    LinkId link = 0;
    Incarnation incarnation = 0;
    // Frames on the link's channel arrive after all data that the link placed before them. If not, the incarnation must end.
    bool orders = false;
  };

  void Add(FlowId flow, MessageId placed_through, const std::vector<Writer>& writers, Nanos now) {
    if (writers.empty()) return;
    Retiring& retiring = flows_[flow] = {placed_through, now, false, {}};
    for (const Writer& writer : writers) retiring.writers.emplace_back(writer, ++last_ping_);
  }
  bool empty() const { return flows_.empty(); }
  bool contains(FlowId flow) const { return flows_.contains(flow); }
  // Finds the flow whose number is `slot` modulo `slots`.
  bool Find(uint32_t slot, uint32_t slots, FlowId* flow, MessageId* placed_through) const {
    for (const auto& [id, retiring] : flows_) {
      if (id % slots != slot) continue;
      *flow = id;
      *placed_through = retiring.placed_through;
      return true;
    }
    return false;
  }

  // The peer has confirmed the BYE.
  void Confirmed(FlowId flow) {
    if (const auto it = flows_.find(flow); it != flows_.end()) it->second.confirmed = true;
  }
  // Calls `ask` for each writer that has a ping to answer. Call it repeatedly: a ping may be dropped while the peer reads nothing.
  template <typename Ask>
  void ForEachToAsk(Ask ask) const {
    for (const auto& [id, retiring] : flows_)
      for (const auto& [writer, ping] : retiring.writers)
        if (retiring.confirmed && writer.orders) ask(writer, ping);
  }
  void Answered(LinkId link, uint64_t number) {
    Erase([&](const Writer& writer, uint64_t ping) { return writer.link == link && ping == number; });
  }
  void Ended(LinkId link, Incarnation incarnation) {
    Erase([&](const Writer& writer, uint64_t) { return writer.link == link && writer.incarnation == incarnation; });
  }
  // Returns the writers that have not answered in time, each once: they must end.
  std::vector<Writer> TakeLate(Nanos now) {
    std::vector<Writer> late;
    for (auto& [id, retiring] : flows_)
      for (auto& [writer, ping] : retiring.writers)
        if (now - retiring.since >= tuning::kRetireMost && std::exchange(writer.orders, false)) late.push_back(writer);
    return late;
  }

 private:
  struct Retiring {
    MessageId placed_through = 0;
    Nanos since = 0;
    bool confirmed = false;
    std::vector<std::pair<Writer, uint64_t>> writers;  // each with the number of its ping
  };
  template <typename IsDone>
  void Erase(IsDone is_done) {
    for (auto& [id, retiring] : flows_)
      std::erase_if(retiring.writers, [&](const auto& entry) { return is_done(entry.first, entry.second); });
    std::erase_if(flows_, [](const auto& entry) { return entry.second.writers.empty(); });
  }

  std::map<FlowId, Retiring> flows_;
  uint64_t last_ping_ = 0;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_RETIRING_FLOWS_H_
