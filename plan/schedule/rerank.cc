// A better order for a ring on a fabric where rail k reaches only rail k.
#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "plan/schedule/generators.h"

namespace r2cc::plan {
namespace {

// Local search over orders: take a member out and put it between two others, or turn a stretch round, as long as it helps. An edge
// costs so much more for each rail that its ends do not share that the narrowest edge always counts first: the ring is as slow as that.
class Search {
 public:
  explicit Search(std::span<const uint64_t> rails) : rails_(rails), order_(rails.size()) {
    std::iota(order_.begin(), order_.end(), 0);
    for (int common = 0; common <= 64; ++common) cost_[common] = std::pow(static_cast<double>(rails.size()) + 1, -common);
  }

  std::vector<uint32_t> Run() {
    for (bool better = rails_.size() > 3; better;) {
      better = false;
      for (uint32_t i = 0; i < n(); ++i)
        if (Narrow(i)) better |= Widen(i);
    }
    std::rotate(order_.begin(), std::find(order_.begin(), order_.end(), 0), order_.end());
    return order_;
  }

 private:
  uint32_t n() const { return static_cast<uint32_t>(order_.size()); }
  uint32_t At(uint32_t place) const { return order_[place % n()]; }
  int Common(uint32_t a, uint32_t b) const { return std::popcount(rails_[a] & rails_[b]); }
  double Cost(uint32_t a, uint32_t b) const { return cost_[Common(a, b)]; }
  static bool Gains(double before, double after) { return after < before * (1 - 1e-12); }

  // Whether the edge from place i on has fewer rails than either of its ends.
  bool Narrow(uint32_t i) const {
    return Common(At(i), At(i + 1)) < std::min(std::popcount(rails_[At(i)]), std::popcount(rails_[At(i + 1)]));
  }

  // Tries to better the edge from place i to the next: true if that was done.
  bool Widen(uint32_t i) {
    const uint32_t a = At(i);
    const uint32_t b = At(i + 1);
    for (uint32_t away = 2; away < n(); ++away) {
      const uint32_t j = i + away;
      const uint32_t w = At(j);
      const uint32_t before_w = At(j - 1);
      const uint32_t after_w = At(j + 1);
      // w goes between a and b.
      {
        const double before = Cost(a, b) + Cost(before_w, w) + Cost(w, after_w);
        const double after = Cost(a, w) + Cost(w, b) + Cost(before_w, after_w);
        if (Gains(before, after)) {
          order_.erase(order_.begin() + j % n());
          const auto place_b = std::find(order_.begin(), order_.end(), b);
          order_.insert(place_b == order_.begin() ? order_.end() : place_b, w);
          return true;
        }
      }
      // The stretch from b to w is turned round: a-b ... w-x becomes a-w ... b-x.
      if (after_w != a && Gains(Cost(a, b) + Cost(w, after_w), Cost(a, w) + Cost(b, after_w))) {
        std::rotate(order_.begin(), order_.begin() + (i + 1) % n(), order_.end());
        std::reverse(order_.begin(), order_.begin() + away);
        return true;
      }
    }
    return false;
  }

  std::span<const uint64_t> rails_;
  std::vector<uint32_t> order_;
  double cost_[65] = {};
};

}  // namespace

std::vector<uint32_t> RerankRing(std::span<const uint64_t> rails) { return Search(rails).Run(); }

}  // namespace r2cc::plan
