// The control channels of one peer: the out-of-band one and that of each link. With the peer's lock.
#ifndef R2CC_NETPLUGIN_TRANSPORT_CONTROL_CHANNELS_H_
#define R2CC_NETPLUGIN_TRANSPORT_CONTROL_CHANNELS_H_

#include <utility>
#include <vector>

#include "base/core/function_ref.h"
#include "netplugin/link/action.h"
#include "netplugin/transport/links.h"
#include "netplugin/transport/oob.h"

namespace r2cc::net {

class ControlChannels {
 public:
  // It outlives this.
  void set_oob(Oob* oob) { oob_ = oob; }
  void Resize(size_t links) { links_.resize(links); }
  // Null: the link has none.
  void Set(LinkId link, Link* of) { links_[link] = of; }

  // For the next Flush(). Nothing happens on a channel that is not open.
  void Queue(Lane lane, const Frame& frame) {
    queued_ = true;
    if (lane == kOobLane)
      oob_->Queue(frame);
    else if (Link* const link = links_[static_cast<size_t>(lane)]; link != nullptr)
      link->Queue(frame);
  }
  bool queued() const { return queued_; }
  // Calls `broken` for each channel that is.
  void Flush(FunctionRef<void(Lane)> broken);
  bool flushed() const;
  void HalfClose();

 private:
  Oob* oob_ = nullptr;
  std::vector<Link*> links_;
  bool queued_ = false;  // some channel may have queued frames
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_TRANSPORT_CONTROL_CHANNELS_H_
