#include "tests/sim/path_watch.h"

namespace r2cc::sim {

void PathWatch::Note() {
  const Nanos now = network_->timeline()->now();
  const int count = static_cast<int>(rails_.size());
  for (int a = 0; a < count; ++a)
    for (int b = a + 1; b < count; ++b) {
      bool joins = false;
      for (int i = 0; i < rails_[static_cast<size_t>(a)]; ++i)
        for (int j = 0; j < rails_[static_cast<size_t>(b)]; ++j) joins |= Joins({a, i}, {b, j});
      if (!joins) {
        lost_since_.emplace(PairOf(a, b), now);
      } else if (lost_since_.erase(PairOf(a, b)) > 0) {
        back_at_[PairOf(a, b)] = now;
      }
      NoteRails(a, b);
      NoteRails(b, a);
    }
}

void PathWatch::NoteRails(int from, int to) {
  for (int there = 0; there < rails_[static_cast<size_t>(to)]; ++there) {
    bool joins = false;
    for (int here = 0; here < rails_[static_cast<size_t>(from)]; ++here) joins |= Joins({from, here}, {to, there});
    const std::tuple name(from, to, there);
    joins ? void(cut_off_since_.erase(name)) : void(cut_off_since_.emplace(name, network_->timeline()->now()));
  }
}

}  // namespace r2cc::sim
