// What each link moves while it has work, and which move far less than they should: slow is a fault too, and nobody reports it. Pure.
//
// What counts is the rate while a link is busy, so that a link with little to do is not taken for a slow one; the kernel keeps that
// account. A link is compared with the middle one of the others, or with a better one that is at its limit too: one that carries little
// looks quick, its bursts run through buffers. So does one that has just begun, and a slow one that is sound again and not at its limit. A
// slow link is reported, and not fenced.
//
// A link is judged slow only while it has more than it can send. With fewer chunks it is busy until the last acknowledgement, which waits
// in the peer's queue, and so it looks slower the less it carries. A slow link that is left with little to do shows what it moves at least.
#ifndef R2CC_NETPLUGIN_LINK_RATE_ESTIMATOR_H_
#define R2CC_NETPLUGIN_LINK_RATE_ESTIMATOR_H_

#include <cstdint>
#include <vector>

#include "base/core/clock.h"
#include "netplugin/flow/types.h"

namespace r2cc::net {

class RateEstimator {
 public:
  explicit RateEstimator(size_t links) : links_(links) {}

  // Since the last sample the link delivered `bytes` and had something to deliver for `busy`. `limited`: it had more than it could send
  // when the sample was taken.
  void Sample(LinkId link, uint64_t bytes, Nanos busy, bool limited);
  // The link is gone: what it moved is history, and nobody is compared with it. The verdict stays until it is measured again.
  void Forget(LinkId link);
  // It joins other rails than before.
  void Clear(LinkId link) { links_[link] = {}; }

  // True if a verdict has changed since the last call. Call once after each round of samples.
  bool Judge();

  // While it is busy; 0: not known.
  double rate_bytes_per_s(LinkId link) const { return links_[link].rate_bytes_per_s; }
  bool slow(LinkId link) const { return links_[link].slow; }
  // What the link moves, compared with the others: 1000 unless it is slow.
  uint16_t SharePermille(LinkId link) const { return links_[link].slow ? links_[link].share_permille : 1000; }

 private:
  // How many samples were taken, and in how many the link was at its limit.
  struct Votes {
    int samples = 0, limited = 0;

    void Add(bool at_limit) { ++samples, limited += at_limit; }
    // Three of four: a link that waits for acknowledgements has something left to send in half of its samples.
    bool most() const { return samples > 0 && 4 * limited >= 3 * samples; }
  };
  struct Link {
    double rate_bytes_per_s = 0;
    uint64_t bytes = 0;  // gathered for the next estimate
    Nanos busy = 0;
    Votes votes;
    int estimates = 0;      // since it was forgotten, or is sound again
    bool fresh = false;     // a new one since the last Judge()
    bool limiting = false;  // the last estimate is of a link at its limit
    bool slow = false;
    int for_change = 0;  // estimates in a row that speak for the other verdict
    int unused = 0;      // rounds in which the others moved, and this slow link did not
    uint16_t share_permille = 1000;
  };
  // True if it is known well enough to be compared.
  static bool Known(const Link& link);
  // What `link` is compared with; 0: there is nothing.
  double Reference(size_t link) const;
  // True if the verdict has changed.
  bool JudgeSound(Link* link, double reference);
  bool JudgeSlow(Link* link, double reference, bool others_moved);
  void SetSlow(Link* link, bool slow);

  std::vector<Link> links_;
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_RATE_ESTIMATOR_H_
