// Which links move far less than they should while they have work: slow is a fault too, and nobody reports it. Pure.
//
// What counts is the rate while a link is busy, so that a link with little to do is not taken for a slow one; the kernel keeps that
// account. A link is compared with the middle one of the others, or with a better one that is at its limit too: one that carries little
// looks quick, its bursts run through buffers. So does one that has just begun, and a slow one that is sound again while its cap holds it
// back. A slow link is weighted, not fenced.
//
// The account errs where a link has few chunks at a time: it is busy until the last of them is acknowledged, and that word waits in the
// peer's queue, behind what comes the other way. A link that was slow for a moment and is held to that has few: it would look as slow for
// ever. So its cap lies a little above what it moves, and while others are at their limit it moves at least what it has carried. Who
// carries all that his weight allows is not slow for moving no more.
#ifndef R2CC_NETPLUGIN_LINK_RATE_ESTIMATOR_H_
#define R2CC_NETPLUGIN_LINK_RATE_ESTIMATOR_H_

#include <cstdint>
#include <span>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/flow/stripe.h"
#include "netplugin/flow/types.h"
#include "plan/model.h"

namespace r2cc::net {

class RateEstimator {
 public:
  explicit RateEstimator(size_t links) : links_(links) {}

  // In the last `wall` the link delivered `bytes` and had something to deliver for `busy` of it.
  void Sample(LinkId link, uint64_t bytes, Nanos busy, Nanos wall);
  // The link is gone: what it moved is history, and nobody is compared with it. What was judged stays until it is measured again.
  void Forget(LinkId link);
  // It joins other rails than before.
  void Clear(LinkId link) { links_[link] = {}; }

  // True if a share has changed since the last call. Call once per round of samples. `shares`: as they are; none where chunks are not dealt
  // out, so that what a link carries is no choice.
  bool Judge(std::span<const LinkShare> shares);
  // What the links have carried is counted anew.
  void SharesChanged();

  // While it is busy; 0: not known.
  double rate_bytes_per_s(LinkId link) const { return links_[link].rate_bytes_per_s; }
  // Of the links that may carry chunks, which `shares` tells of each; 0: none is known.
  double SlowestBytesPerSecond(std::span<const LinkShare> shares) const;
  bool straggler(LinkId link) const { return links_[link].straggler; }
  // What the link moves, compared with the others: 1000 unless it is slow.
  uint16_t SharePermille(LinkId link) const { return links_[link].straggler ? links_[link].share_permille : 1000; }
  // What it may carry, compared with the others.
  uint16_t CapPermille(LinkId link) const { return plan::CapOfShare(SharePermille(link)); }

 private:
  struct Link {
    double rate_bytes_per_s = 0;
    uint64_t bytes = 0;  // gathered for the next estimate
    Nanos busy = 0;
    Nanos wall = 0;
    int estimates = 0;   // since it was forgotten, or is sound again
    bool fresh = false;  // a new one since the last Judge()
    bool limiting = false;
    bool straggler = false;
    int for_change = 0;  // rounds in a row that speak for the other verdict
    uint16_t share_permille = 1000;
    uint64_t judged_bytes = 0;  // what it had carried at the last Judge()
  };
  // With what each link has carried since the last Judge(), or since the shares changed.
  std::vector<LinkShare> OfThisRound(std::span<const LinkShare> shares) const;
  // True if it is known well enough to be compared.
  static bool Known(const Link& link);
  bool OthersAtLimit(size_t link) const;
  // What `link` is compared with; 0: there is nothing.
  double Reference(size_t link) const;

  std::vector<Link> links_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_RATE_ESTIMATOR_H_
