// Which link may carry the next chunk of which flow. Pure.
//
// Chunks are striped by earliest completion: a link pulls a chunk if it would finish it before the others would. Each link is modelled as a
// rate and the time at which it has sent what it has. The model errs: a rail may be slower than its rate, and then it has no room, or
// quicker, and then it pulls as soon as it has room while enough is ready for all.
#ifndef R2CC_NETPLUGIN_FLOW_STRIPE_H_
#define R2CC_NETPLUGIN_FLOW_STRIPE_H_

#include <cstdint>
#include <optional>
#include <span>

#include "base/core/clock.h"
#include "netplugin/flow/types.h"

namespace r2cc::net {

// What the page states of one rail.
struct RailVerdict {
  bool failed = false;
  uint16_t weight_permille = 1000;

  friend bool operator==(const RailVerdict&, const RailVerdict&) = default;
};

struct LinkShare {
  bool usable = false;           // an incarnation is up
  uint16_t weight_permille = 0;  // what the plan allows it, compared with the others: the smaller of both ends'
  uint64_t carried_bytes = 0;    // since the weights last changed
  bool home = true;              // joins rails of the same number; else it is a cross-rail link
  bool slow = false;             // it moves far less than the others
  double rate_bytes_per_s = 0;   // 0: not known
  Nanos free_at = 0;             // when it has sent what it has pulled, at that rate
};

// Whether the link is as good as any: up, of full weight, and not slow. Most links are, most of the time.
bool IsFull(const LinkShare& link);

// False while all home links are usable with equal weights, and none is slow: each flow then stays on its own NIC. True otherwise: the
// chunks of all flows are striped.
bool Spread(std::span<const LinkShare> links);

// R2CC_MODE, as far as point-to-point traffic goes.
enum class StripeMode {
  kOneRail,  // a flow stays on its own link, whatever happens: no protection
  kMigrate,  // a flow whose link is gone goes whole to the next one
  kBalance,  // chunks of all flows are striped as soon as one link is gone, or they differ
};

// True if chunks of a flow whose own link is `home` may travel on `link`. `striped`: Spread(), or a flow wants it however sound the links
// are; kBalance alone heeds it.
bool Carries(std::span<const LinkShare> links, StripeMode mode, bool striped, LinkId home, LinkId link);

// Bytes carried per weight.
inline double LoadOf(const LinkShare& link) {
  return static_cast<double>(link.carried_bytes) / (link.weight_permille > 0 ? link.weight_permille : 1);
}

// Which link carries the small messages of a flow: its home, but one that is slow, or of less weight, leaves them to another one. Always
// the same while the links do not change: the receiver looks where the last one came from.
LinkId SmallMessageLink(std::span<const LinkShare> links, LinkId home);

// ---- while chunks are striped ----

// When `link` would have finished a chunk that it pulls now. A link whose rate is not known is as good as the best.
Nanos FinishAt(std::span<const LinkShare> links, LinkId link, uint64_t chunk_bytes, Nanos now);

// `now`: the usable `link` may pull a chunk of `chunk_bytes`. Later: it leaves that to the others, which have finished it then at the
// latest, and all of `ready_bytes`, which are ready now, the chunk among them. It would take longer itself.
//
// Nothing: the plan's weights allow it no more. It may have carried w/w_max of what the busiest of the heaviest links has. If no usable
// link has a weight at all, all are equal: the plan moves traffic but never takes the last way to a peer.
//
// One usable link at least may pull: of those that the weights allow the one that finishes first.
std::optional<Nanos> LeavesUntil(std::span<const LinkShare> links, LinkId link, uint64_t chunk_bytes, uint64_t ready_bytes, Nanos now);

// `link` has pulled a chunk.
void Pulled(std::span<LinkShare> links, LinkId link, uint64_t chunk_bytes, Nanos now);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_STRIPE_H_
