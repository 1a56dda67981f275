// Chooses which of a peer's links takes the next chunk, and which workers are woken for one. With the peer's lock.
#ifndef R2CC_NETPLUGIN_TRANSPORT_SEND_PUMP_H_
#define R2CC_NETPLUGIN_TRANSPORT_SEND_PUMP_H_

#include <span>
#include <vector>

#include "netplugin/link/send_session.h"
#include "netplugin/transport/link_slots.h"

namespace r2cc::net {

class SendPump {
 public:
  SendPump(SendSession* session, LinkSlots<SendLink>* links) : session_(session), links_(links) {}

  // Moves chunks to links with room, first to the one that finishes first. True if it ended before every link was full or had nothing to
  // send.
  bool PumpAll(Nanos now);
  // Moves chunks of a flow on its home link.
  void PumpHome(FlowId flow);

  // The link may have something new to carry: its workers should check.
  void MarkDirty(LinkId link);
  void MarkAllDirty() { all_dirty_ = true; }
  // Wakes workers, no more than there are chunks to take.
  void OfferToWorkers(Nanos now);

  // Publishes to all links what the session knows of them, if it changed or `always`.
  void Advise(bool always);
  bool advice_is_due() const { return session_->links().spread() != spread_; }

 private:
  void OfferChunks(std::span<const LinkId> links, uint32_t coming, Nanos now);

  SendSession* const session_;
  LinkSlots<SendLink>* const links_;
  std::vector<LinkId> ready_;  // links with room, while chunks are striped
  std::vector<bool> dirty_;    // there may be more to carry than when its workers last checked
  bool all_dirty_ = false;
  bool spread_ = false;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_SEND_PUMP_H_
