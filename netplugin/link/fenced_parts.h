// Splits a FENCED answer into numbered parts, and detects when all parts have come. FENCED names the arrivals of all flows, which may be
// more than one packet carries. Pure.
#ifndef R2CC_NETPLUGIN_LINK_FENCED_PARTS_H_
#define R2CC_NETPLUGIN_LINK_FENCED_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "netplugin/link/frames.h"

namespace r2cc::net {

// Splits one answer into frames that each fit into a packet whose body has `body_bytes_max` bytes; usually one. If the arrivals of a flow
// do not fit into the rest of a part, they continue in the next one. `answer` distinguishes the parts of this answer from those of others.
std::vector<frames::Fenced> SplitFenced(const frames::Fenced& fenced, uint64_t answer, size_t body_bytes_max = kControlBodyBytesMax);

// The initiator's end: which parts of each link's newest answer have come. The arrivals in a part stay true, so the session enters them at
// once. This class keeps only the numbers of the parts.
class FencedParts {
 public:
  // True if `part` is the whole answer, or the last missing part of one. Parts may come more than once, on several channels, in any order.
  // A part of a newer answer, or for a later incarnation, starts over; older parts are ignored.
  bool Add(const frames::Fenced& part);

 private:
  struct Answer {
    Incarnation incarnation = 0;
    uint64_t number = 0;
    uint32_t missing = 0;
    std::vector<bool> seen;  // by part; empty: no part is awaited
  };
  std::vector<Answer> answers_;  // by link
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_FENCED_PARTS_H_
