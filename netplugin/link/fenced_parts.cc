#include "netplugin/link/fenced_parts.h"

#include <utility>

#include "base/core/check.h"
#include "netplugin/link/frame_size.h"

namespace r2cc::net {

std::vector<frames::Fenced> SplitFenced(const frames::Fenced& fenced, uint64_t answer, size_t body_bytes_max) {
  frames::Fenced empty = fenced;
  empty.answer = answer;
  empty.arrivals.clear();
  std::vector<frames::Fenced> parts;
  size_t left_bytes = 0;
  const auto begin_part = [&] {
    parts.push_back(empty);
    left_bytes = body_bytes_max - BodyBytes(empty);
  };
  const auto fits = [&](size_t bytes) { return bytes <= left_bytes; };
  const auto put = [&](auto what, auto* into) {
    R2CC_CHECK(fits(WireBytes(what)));
    left_bytes -= WireBytes(what);
    into->push_back(std::move(what));
  };
  begin_part();
  for (const FlowArrivals& flow : fenced.arrivals) {
    const FlowArrivals head{flow.flow, flow.placed_through, {}};
    if (!fits(WireBytes(head))) begin_part();
    put(head, &parts.back().arrivals);
    for (const MessageArrivals& message : flow.partial) {
      if (!fits(WireBytes(message))) {
        begin_part();
        put(head, &parts.back().arrivals);
      }
      put(message, &parts.back().arrivals.back().partial);
    }
  }
  for (uint32_t part = 0; part < parts.size(); ++part) {
    parts[part].part = part;
    parts[part].parts = static_cast<uint32_t>(parts.size());
  }
  return parts;
}

bool FencedParts::Add(const frames::Fenced& part) {
  if (part.parts == 1) return true;
  if (part.link >= answers_.size()) answers_.resize(size_t{part.link} + 1);
  Answer& answer = answers_[part.link];
  if (part.incarnation < answer.incarnation) return false;
  if (part.incarnation == answer.incarnation && part.answer < answer.number) return false;
  const bool begins = part.incarnation > answer.incarnation || part.answer > answer.number || part.parts != answer.seen.size();
  if (begins) answer = {part.incarnation, part.answer, part.parts, std::vector<bool>(part.parts)};
  if (answer.seen[part.part]) return false;
  answer.seen[part.part] = true;
  return --answer.missing == 0;
}

}  // namespace r2cc::net
