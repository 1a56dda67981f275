#include "daemon/jobs/reduced_rails.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

namespace r2cc::daemon {
namespace {

constexpr uint32_t kRailsMost = 64;

struct Span {
  int64_t begun = 0;
  int64_t ended = 0;
  uint32_t usable = 0;
  uint32_t rails = 0;
};

// Usable rails of a, and of b: the smaller part of all its rails.
bool Fewer(const Span& a, const Span& b) {
  const uint64_t left = uint64_t{a.usable} * b.rails, right = uint64_t{b.usable} * a.rails;
  return left != right ? left < right : std::pair(a.usable, a.rails) < std::pair(b.usable, b.rails);
}

void AddSpans(const ReducedList& list, int64_t now_ns, std::vector<Span>* spans) {
  const int count = std::min(list.size(), kReducedMax);
  for (int i = 0; i < count; ++i) {
    const v1::ReducedRails& one = list[i];
    const Span span{one.begun_ns(), one.ended_ns() == 0 ? now_ns : one.ended_ns(), one.usable(), one.rails()};
    if (span.begun < 0 || span.ended <= span.begun || span.rails == 0 || span.rails > kRailsMost || span.usable >= span.rails) continue;
    spans->push_back(span);
  }
}

void Shorten(std::vector<Span>* spans) {
  while (spans->size() > static_cast<size_t>(kReducedMax)) {
    size_t nearest = 0;
    int64_t least = std::numeric_limits<int64_t>::max();
    for (size_t i = 0; i + 1 < spans->size(); ++i)
      if (const int64_t between = (*spans)[i + 1].begun - (*spans)[i].ended; between < least) least = between, nearest = i;
    Span& first = (*spans)[nearest];
    const Span& second = (*spans)[nearest + 1];
    // The one that lasted longer gives the number of rails.
    if (second.ended - second.begun > first.ended - first.begun) first.usable = second.usable, first.rails = second.rails;
    first.ended = second.ended;
    spans->erase(spans->begin() + static_cast<ptrdiff_t>(nearest) + 1);
  }
}

void Write(const std::vector<Span>& spans, ReducedList* list) {
  list->Clear();
  for (const Span& span : spans) {
    v1::ReducedRails* const one = list->Add();
    one->set_begun_ns(span.begun);
    one->set_ended_ns(span.ended);
    one->set_usable(span.usable);
    one->set_rails(span.rails);
  }
}

}  // namespace

void NoteUse(uint32_t usable, uint32_t rails, int64_t when_ns, ReducedList* list) {
  EndReduced(when_ns, list);
  if (usable >= rails || rails > kRailsMost) return;
  if (list->size() >= kReducedMax) {
    std::vector<Span> spans;
    AddSpans(*list, when_ns, &spans);
    if (spans.size() >= static_cast<size_t>(kReducedMax)) {
      // Shortens to one less than is kept.
      spans.push_back({when_ns, std::numeric_limits<int64_t>::max(), usable, rails});
      Shorten(&spans);
      spans.pop_back();
    }
    Write(spans, list);
  }
  v1::ReducedRails* const one = list->Add();
  one->set_begun_ns(when_ns);
  one->set_usable(usable);
  one->set_rails(rails);
}

void EndReduced(int64_t end_ns, ReducedList* list) {
  if (list->empty()) return;
  v1::ReducedRails* const last = list->Mutable(list->size() - 1);
  if (last->ended_ns() == 0) last->set_ended_ns(std::max(end_ns, last->begun_ns()));
  if (last->ended_ns() <= last->begun_ns()) list->RemoveLast();
}

void MergeReduced(const ReducedList& other, int64_t now_ns, ReducedList* list) {
  std::vector<Span> all;
  AddSpans(*list, now_ns, &all);
  AddSpans(other, now_ns, &all);
  std::set<int64_t> edges;
  for (const Span& span : all) edges.insert({span.begun, span.ended});
  std::sort(all.begin(), all.end(), [](const Span& a, const Span& b) { return a.begun < b.begun; });
  std::vector<Span> merged, at;
  size_t next = 0;
  for (auto edge = edges.begin(); edge != edges.end() && std::next(edge) != edges.end(); ++edge) {
    for (; next < all.size() && all[next].begun <= *edge; ++next) at.push_back(all[next]);
    std::erase_if(at, [&](const Span& span) { return span.ended <= *edge; });
    if (at.empty()) continue;
    Span fewest = *std::min_element(at.begin(), at.end(), Fewer);
    fewest.begun = *edge;
    fewest.ended = *std::next(edge);
    if (!merged.empty() && merged.back().ended == fewest.begun && merged.back().usable == fewest.usable &&
        merged.back().rails == fewest.rails)
      merged.back().ended = fewest.ended;
    else
      merged.push_back(fewest);
  }
  Shorten(&merged);
  Write(merged, list);
}

}  // namespace r2cc::daemon
