// Which link may carry the next chunk of which flow. Pure.
#ifndef R2CC_NETPLUGIN_FLOW_STRIPE_H_
#define R2CC_NETPLUGIN_FLOW_STRIPE_H_

#include <cstdint>
#include <span>

#include "netplugin/flow/types.h"

namespace r2cc::net {

// The page's word on one rail.
struct RailVerdict {
  bool failed = false;
  uint16_t weight_permille = 1000;

  friend bool operator==(const RailVerdict&, const RailVerdict&) = default;
};

struct LinkShare {
  bool usable = false;           // an incarnation is up
  uint16_t weight_permille = 0;  // the smaller of both ends'
  uint64_t carried_bytes = 0;    // since the shares last changed
  bool home = true;              // joins rails of the same number; else it is a cross-rail link
  bool dealt = false;            // somebody wants chunks on all links, however sound they are
};

// No link is heavier: what the rules below say of it is plain, and most links are so most of the time.
bool IsFull(const LinkShare& link);

// False while all home links are usable with equal weights and nobody wants it otherwise: each flow then stays on its own NIC. True
// otherwise: the chunks of all flows go to whichever link has room.
bool Spread(std::span<const LinkShare> links);

// R2CC_MODE, as far as point-to-point traffic goes.
enum class StripeMode {
  kOneRail,  // a flow stays on its own link, whatever happens: no protection
  kMigrate,  // a flow whose link is gone goes whole to the next one
  kBalance,  // chunks of all flows go to all links as soon as one is gone or weights differ
};

// True if chunks of a flow whose own link is `home` may travel on `link`.
bool Carries(std::span<const LinkShare> links, StripeMode mode, LinkId home, LinkId link);

// Bytes carried per weight: links with room pull in ascending order of it, so that shares follow the weights also where the rails are
// not the limit.
inline double LoadOf(const LinkShare& link) {
  return static_cast<double>(link.carried_bytes) / (link.weight_permille > 0 ? link.weight_permille : 1);
}

// How many links carry chunks, if all of them have the same weight; else 0.
size_t LinksAlike(std::span<const LinkShare> links);

// Which link carries the small messages of a flow: its home, but one that is slowed down, or ramped, leaves them to a quicker one. Always
// the same while shares do not change: the receiver looks where the last one came from.
LinkId SmallMessageLink(std::span<const LinkShare> links, LinkId home);

// True if `link` may pull another chunk. A weight is a cap relative to the heaviest usable link: a link of weight w may have
// carried at most w/w_max of what the busiest link of full weight has; links of full weight pull as they have room. If no usable link
// has a weight at all, every usable one counts as full: a notice moves traffic but never takes the last way to a peer. Only where chunks
// are dealt out: a flow that travels on one link waits in vain for another to take what is over the cap.
bool MayPull(std::span<const LinkShare> links, StripeMode mode, LinkId link);

// What the busiest of the heaviest links has carried.
uint64_t BusiestBytes(std::span<const LinkShare> links);
// True while chunks are dealt out and `link` has carried of that all that its weight allowed, so that its real capacity is unknown.
bool CapBinds(std::span<const LinkShare> links, LinkId link);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_STRIPE_H_
