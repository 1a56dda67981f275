// Which link may carry the next chunk of which flow. Pure.
#ifndef R2CC_NETPLUGIN_FLOW_STRIPE_H_
#define R2CC_NETPLUGIN_FLOW_STRIPE_H_

#include <cstdint>
#include <span>

#include "base/core/clock.h"
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
  bool home = true;              // joins rails of the same number; else it is a detour
};

// No link is heavier: what the rules below say of it is plain, and most links are so most of the time.
bool IsFull(const LinkShare& link);

// False while all home links are usable with equal weights: each flow then stays on its own NIC. True otherwise: the chunks of all
// flows go to whichever link has room.
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

// Of how many bytes the chunks of a message are whose flow keeps to a rail of this rate, by itself 128 KiB: each chunk costs its sender and
// its receiver a turn, so that on a quick rail larger ones are better, as far as none lasts much longer than a fifth of a millisecond.
// 0: not known yet.
constexpr uint32_t kChunkBytesBase = 128 * 1024;
uint32_t ChunkBytesOfRate(double rate_bytes_per_s);

// The same while chunks are dealt out to all rails, of which the slowest has this rate: 32 to 128 KiB. A message is whole when its last
// chunk is, so that none may take a slow rail much longer than two milliseconds.
uint32_t DealtChunkBytes(double slowest_bytes_per_s);

// The same for a message of so many bytes where `links` links that are alike share it, each as many chunks: else some of them wait at its
// end for the others. At most half as large again as `chunk_bytes`; a multiple of kChunkAlignment.
uint32_t EvenChunkBytes(uint64_t message_bytes, uint32_t chunk_bytes, size_t links);
// How many links carry chunks, if all of them have the same weight; else 0.
size_t LinksAlike(std::span<const LinkShare> links);

// With workers a message goes by several sockets at a time, each in its own thread: none takes more than this with one call, or one chunk.
// Else chunks leave together as far as the queue has room, which saves calls.
constexpr uint32_t kWorkerCallBytes = 256 * 1024;
// How many bytes of chunks leave a socket together that may queue `limit_bytes`.
constexpr uint32_t CallBytes(uint32_t limit_bytes, bool by_worker) {
  return by_worker && limit_bytes > kWorkerCallBytes ? kWorkerCallBytes : limit_bytes;
}

// How many bytes may wait in a rail's sockets, not sent yet. Many are good for speed while flows keep to their own rails, but what a fault
// makes the rail carry besides waits behind them: no more than it sends in a few milliseconds. While chunks are dealt out to all rails
// (`spread`) no rail takes more than it can carry soon. `rate_bytes_per_s`: while busy; 0: not known yet.
uint32_t QueueLimitBytes(double rate_bytes_per_s, bool spread);

// How many bytes the kernel may hold of a rail's socket, sent or not, until the peer has acknowledged them; 0: as many as it likes, because
// the rate is not known or what TCP holds at most is little for it. TCP fills a slow rail's queue with all that its window allows, tens of
// milliseconds: packets fall, and what a fault makes the rail carry besides waits behind them. `round_trip`: with the queues empty.
// `spread`: chunks are dealt out, and a message waits for those that a slow rail holds, so that it holds less; else a rate is not trusted
// as far, since small messages make any rail look slow.
uint64_t HoldLimitBytes(double rate_bytes_per_s, Nanos round_trip, bool spread);

// How many of a link's `sockets` take chunks. One stream is the work of one processor at either end, so that a quick rail wants several;
// but they share the rail, and each message takes longer.
size_t SocketsInUse(double rate_bytes_per_s, size_t sockets);

// Which link carries the small messages of a flow: its home, but one that is slowed down, or ramped, leaves them to a quicker one. Always
// the same while shares do not change: the receiver looks where the last one came from.
LinkId SmallCarrier(std::span<const LinkShare> links, LinkId home);

// True if `link` may pull another chunk. A weight is a ceiling relative to the heaviest usable link: a link of weight w may have
// carried at most w/w_max of what the busiest link of full weight has; links of full weight pull as they have room. If no usable link
// has a weight at all, every usable one counts as full: a notice moves traffic but never takes the last way to a peer. Only where chunks
// are dealt out: a flow that travels on one link waits in vain for another to take what is over the ceiling.
bool MayPull(std::span<const LinkShare> links, StripeMode mode, LinkId link);

// What the busiest of the heaviest links has carried.
uint64_t BusiestBytes(std::span<const LinkShare> links);
// While chunks are dealt out, what `link` has carried of that: so much it can move at least. 0: not known.
double CarriedFraction(std::span<const LinkShare> links, LinkId link);
// True if that is all that its weight allowed it, so that nobody has seen what more it could have carried.
bool CeilingBinds(std::span<const LinkShare> links, LinkId link);

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_FLOW_STRIPE_H_
