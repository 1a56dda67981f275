// FENCED names the arrivals of all flows, which may be more than one packet carries: it travels in numbered parts. Pure.
#ifndef R2CC_NETPLUGIN_LINK_FENCED_PARTS_H_
#define R2CC_NETPLUGIN_LINK_FENCED_PARTS_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "netplugin/link/frames.h"

namespace r2cc::net {

// One answer as frames that each fit into a packet whose body has `body_bytes_max` bytes; mostly one. A flow whose arrivals do not fit into
// what is left of a part goes on in the next one. `answer` tells the parts of this answer from those of others.
std::vector<frames::Fenced> SplitFenced(const frames::Fenced& fenced, uint64_t answer, size_t body_bytes_max = kControlBodyBytesMax);

// The initiator's end: which parts of each link's newest answer are there. What a part says of arrivals stays true, so it is used at once
// and not kept: here only the numbers are.
class FencedParts {
 public:
  // True if `part` is the whole answer, or the last missing part of one. Parts may come more than once and on several channels, in any
  // order. A part of a newer answer, or one for a later incarnation, begins anew; older ones are ignored.
  bool Add(const frames::Fenced& part);

 private:
  struct Answer {
    Incarnation incarnation = 0;
    uint64_t number = 0;
    uint32_t missing = 0;
    std::vector<bool> seen;  // by part; empty: nothing is awaited
  };
  std::vector<Answer> answers_;  // by link
};

}  // namespace r2cc::net

#endif  // R2CC_NETPLUGIN_LINK_FENCED_PARTS_H_
